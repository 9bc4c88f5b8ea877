"""A program of the user's own, without Python: how long it takes, or the one figure it prints."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePosixPath
from types import FrameType
from typing import Any

from paribus.benchmarks.parameters import argv, one_of, word
from paribus.border import printable
from paribus.core import (
    Benchmark,
    Case,
    Direction,
    Metric,
    Parameter,
    Parsed,
    ParseError,
    Program,
    Request,
    Sample,
    UserError,
    count,
    format_bytes,
)
from paribus.readers.units import better_of, canonical

NAME = "command"

LONGEST = 1000
"""The most characters of a regular expression."""

MOST_SEARCHED = 16 << 20
"""The most characters of an output to which a regular expression is applied."""

SEARCH_S = 5.0
"""The most seconds that this may take: an expression that backtracks would search for years."""

SHOWN = 80
"""Characters of the end of an output that an error quotes."""

MOST_MATCHES = 1000
"""The most matches that are counted: an expression may match at every character."""

OF_ARM = "{argv}"
"""A placeholder for the program, if each arm names its own."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_WALL = Metric("wall", "s", "lower")
FIGURE = "figure"


def pattern(value: Any) -> str:
    """Return a regular expression with exactly one group, the figure; raises ValueError."""
    text = word(value)
    if len(text) > LONGEST:
        raise ValueError(f"use {LONGEST} characters at most")
    try:
        groups = re.compile(text, re.MULTILINE).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    if groups != 1:
        fix = "put one pair of parentheses around the figure, as in 'Elapsed: (.*) s'"
        other = "; (?:...) is no group in this sense" if groups else ""
        raise ValueError(f"it has {count(groups, 'group')}: {fix}{other}")
    return text


def metrics(parameters: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return what is measured: the wall time, or the figure in the unit that the study gives."""
    if parameters.get("regex") is None:
        return (_WALL,)
    return (Metric(FIGURE, parameters["unit"], parameters["better"]),)


def command(request: Request) -> Program:
    """Return the program; raises UserError for parameters that contradict each other.

    A relative path is relative to the working directory. Without ranks the program is started by
    itself, and not bound to a core, as it may have threads.
    """
    asked = request.parameters
    _check(asked)
    program, *rest = asked["argv"] or (OF_ARM,)
    directory = asked["directory"] or ""
    if "/" in program and directory and not program.startswith(("/", "{")):
        program = str(PurePosixPath(directory, program))
    alone = not request.ranks
    return Program((program, *rest), mpi=not alone, bound=not alone, cwd=directory)


def _check(asked: Mapping[str, Any]) -> None:
    figure = asked["regex"] is not None
    if figure and asked["measure"]:
        fix = 'remove measure = "wall", or remove regex'
        raise UserError("two measures: `regex` is one by itself", place="measure", fix=fix)
    for key, example in (("unit", '"s"'), ("better", '"lower" or "higher"')):
        if figure and asked[key] is None:
            fix = f"add {key} = {example}"
            raise UserError("a figure has a unit and a direction", place=key, fix=fix)
        if not figure and asked[key] is not None:
            fix = "remove it, or add regex = '...' for a figure that the program prints"
            raise UserError("the wall time is in s, and lower is better", place=key, fix=fix)


def better(unit: str, *, higher: bool) -> Direction:
    """Return which values of a figure are better, as `--unit` and `--higher` say.

    Raises UserError for a rate without `--higher`: the slower would be called faster.
    """
    if not higher and better_of(canonical(unit)[1]) == "higher":
        fix = "add --higher; where less is better, name the unit without a time, such as faults"
        raise UserError(f"{unit} is a rate: more is better", place="--unit", fix=fix)
    return "higher" if higher else "lower"


def parse(text: str, request: Request) -> Parsed:
    """Return the wall time of the launch, or the figure; raises ParseError, quoting the end."""
    asked = request.parameters
    if (proof := asked["success"]) is not None and proof not in text:
        raise ParseError(f"success = {_cut(proof)} is not in the output; {_end(text)}")
    if asked["regex"] is None:
        return Parsed((Sample(_WALL.name, Case(), (request.wall_s,)),))
    return Parsed((Sample(FIGURE, Case(), (_figure(request, text),)),))


def reads(parameters: Mapping[str, Any]) -> bool:
    """Return whether `parse` needs what the program prints, and not its wall time alone."""
    return parameters.get("regex") is not None or parameters.get("success") is not None


def _figure(request: Request, text: str) -> float:
    """Return the figure of the only match of the regular expression."""
    regex = str(request.parameters["regex"])
    if len(text) > MOST_SEARCHED:
        raise ParseError(
            f"the output has {format_bytes(len(text))}, more than regex is applied to"
            f" ({format_bytes(MOST_SEARCHED)}): let the program print less"
        )
    try:
        with _within(SEARCH_S):
            matches = re.finditer(regex, text.replace("\r\n", "\n"), re.MULTILINE)
            found = [match[1] for match in islice(matches, MOST_MATCHES)]
    except TimeoutError:
        raise ParseError(
            f"regex {_cut(regex)} was stopped after {SEARCH_S:g} s: it backtracks; name what stands"
            f" beside the figure, and repeat no group that repeats; {_end(text)}"
        ) from None
    if not found:
        raise ParseError(f"regex {_cut(regex)} matches nothing: correct it; {_end(text)}")
    if len(found) > 1:
        fix = "let one rank alone print it" if request.ranks > 1 else "make it match one line only"
        times = f"{len(found)} times{' or more' * (len(found) == MOST_MATCHES)}"
        raise ParseError(
            f"regex {_cut(regex)} matches {times}, where one figure decides: {fix}; {_end(text)}"
        )
    figure = (found[0] or "").strip()
    if not (_NUMBER.fullmatch(figure) and 0 < float(figure) < math.inf):
        raise ParseError(
            f"regex {_cut(regex)} gives {_cut(figure)}, which is no number above zero: put the"
            f" parentheses around the figure alone; {_end(text)}"
        )
    return float(figure)


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the context after `seconds`, by a signal, which re also handles.

    That works in the main thread, in which launches are read.
    """

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _cut(text: str) -> str:
    shown = printable(text)
    return f"'{shown[:40]}' [cut]" if len(shown) > 40 else f"'{shown}'"


def _end(text: str) -> str:
    """Return the clause of an error that quotes the end of an output."""
    end = " ".join(printable(text[-4 * SHOWN :], keep="\n\t").split())[-SHOWN:]
    return f"the output ends with '{end}'" if end else "there is no output"


BENCHMARK = Benchmark(
    name=NAME,
    layer="application",
    summary="a program of your own: its wall time, or a figure that it prints",
    metrics=(_WALL,),
    command=command,
    parse=parse,
    parameters={
        "argv": Parameter(None, argv, "the program and its arguments, unless each arm has its own"),
        "measure": Parameter(None, one_of("wall"), '"wall": the wall time of a launch (default)'),
        "regex": Parameter(None, pattern, "instead: matches once, its one group is the figure"),
        "unit": Parameter(None, word, "of the figure"),
        "better": Parameter(None, one_of("lower", "higher"), "which figure is better"),
        "success": Parameter(None, word, "a text that the output contains after a success"),
        "directory": Parameter(
            None, word, 'the working directory; by default that of the study; "{scratch}": its own'
        ),
    },
    ranks=0,
    choose=metrics,
    stderr=True,
    reads=reads,
)
