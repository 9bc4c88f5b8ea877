"""What the benchmarks around other people's tools have in common.

Such a benchmark is a reader: text in, `Reading` out, or a ParseError. `tool` makes a Benchmark of
it whose `parse` is that reader plus the check of what it read against what was asked for, so that
`paribus run` and `paribus compare` read with the same code.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from paribus.benchmarks._phrases import Phrases
from paribus.benchmarks._tags import untagged
from paribus.errors import ParseError
from paribus.model import (
    Benchmark,
    Case,
    Metric,
    Parameter,
    Parsed,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

HEAD = 1 << 16
"""Where a tool must show itself, in characters: a banner before it is shorter than that."""

WINDOW = 4096
_RUN = re.compile(r"(.)\1{299}")

LONGEST = 240
"""Characters of a cause: a damaged line may be of any length."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+")

FAILED = (
    "There are not enough slots available",
    "as it could not access",
    "mpirun has detected an attempt to run as root",
    "The user-provided time limit for job execution",
    "are unable to reach each other",
    "noticed that process rank",
    "detected that one or more processes exited",
    "MPI_ABORT was invoked",
    "MPI_ERRORS_ARE_FATAL",
    "BAD TERMINATION OF ONE OF YOUR APPLICATION",
    "application called MPI_Abort",
    "Fatal error in internal_",
    "Fatal error in PMPI_",
    "Caught signal ",
    "Segmentation fault",
    "DUE TO TIME LIMIT",
    "srun: error: ",
    "slurmstepd: error: ",
    "=>> PBS: job killed",
)
"""What launchers, MPI libraries and resource managers say of a launch that failed."""

_FAILED = Phrases(FAILED)

Reader = Callable[[str], Reading]
Cases = Callable[[Request], Iterable[tuple[str, Case]]]

READERS: dict[str, Reader] = {}
"""Readers of tools, for texts that are `plain` and known to hold no word of a launcher that its
launch failed: `Benchmark.read` without what one look at a whole file does once.
"""


def tool(
    name: str,
    *,
    layer: str,
    summary: str,
    metrics: tuple[Metric, ...],
    reader: Reader,
    marks: Sequence[str],
    command: Callable[[Request], Program],
    program: str,
    get: str,
    versions: str,
    proof: str,
    means: str,
    parameters: Mapping[str, Parameter] | None = None,
    cases: Cases | None = None,
    optional: Sequence[str] = (),
    spare: Collection[tuple[str, Case]] = (),
    ranks: int = 2,
) -> Benchmark:
    """Return the benchmark of a tool that others made.

    `reader` gets the whole text without colour codes and carriage returns. `marks`: one of them is
    near the beginning of every output of the tool and of no other's. `cases(request)` returns the
    (metric, case) pairs that must be there exactly once; without it that is every metric at every
    size of a parameter "bytes", or at the empty case. `optional` metrics may be missing, but not at
    some cases only; `spare` cases too, for not every version of the tool has them, and the reader
    knows which. A parameter "path" says where the program is and is not checked.
    """
    unchecked = READERS[name] = partial(_read, name, reader)
    read = partial(_launched, unchecked)
    required = tuple(m.name for m in metrics if m.name not in optional)
    return Benchmark(
        name=name,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=command,
        parse=partial(
            _parse, read, cases or partial(_by_size, required), tuple(optional), frozenset(spare)
        ),
        parameters={
            "path": Parameter(None, _path, "path of the program, if it is not on the PATH"),
            **(parameters or {}),
        },
        ranks=ranks,
        read=read,
        recognise=partial(_recognise, tuple(marks)),
        marks=tuple(marks),
        program=program,
        get=get,
        versions=versions,
        proof=proof,
        means=means,
    )


def path_or(request: Request, program: str) -> str:
    """Return where the program is: the parameter "path", or its name, to be found on the PATH."""
    return str(request.parameters.get("path") or program)


def plain(text: str) -> str:
    """Return `text` without colour codes or tags of ranks, and line feeds alone between lines."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return untagged(text.replace("\r\n", "\n") if "\r" in text else text)


def once(text: str, mark: str, what: str = "") -> int:
    """Return where `mark` stands; raises ParseError if it is missing or there twice.

    The way to refuse two outputs in one: call it for the tool's first line.
    """
    at = text.find(mark)
    what = what or repr(mark)
    if at < 0:
        raise ParseError(f"{what} is missing")
    if (again := text.find(mark, at + len(mark))) >= 0:
        refuse(f"{what} is there twice: two outputs in one", line_of(text, again))
    return at


def line_of(text: str, at: int) -> int:
    """Return the number, from 1, of the line that holds position `at`."""
    return text.count("\n", 0, at) + 1


def line_at(text: str, at: int) -> str:
    """Return the line that holds position `at`, without its end."""
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]


def figure(word: str, line: int = 0) -> float:
    """Return the number above zero that `word` is; raises ParseError for anything else."""
    if not (_FIGURE.fullmatch(word) and 0 < (value := float(word)) < math.inf):
        refuse(f"expected a figure above zero, got {word[:40]!r}", line)
    return value


def count(word: str, line: int = 0) -> int:
    """Return the whole number that `word` is; raises ParseError for anything else."""
    if not (word.isascii() and word.isdigit()):
        refuse(f"expected a whole number, got {word[:40]!r}", line)
    return int(word)


def refuse(cause: str, line: int = 0) -> NoReturn:
    """Raise ParseError with its line; a cause that quotes too much is cut."""
    raise ParseError(cause if len(cause) <= LONGEST else f"{cause[:LONGEST]} ...", line=line)


def _path(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write the path of the program in quotes")
    return value


def _recognise(marks: tuple[str, ...], text: str) -> bool:
    head = plain(text[:HEAD])
    return any(mark in head for mark in marks)


def _launched(read: Reader, text: str) -> Reading:
    """Return what `read` read; raises ParseError also where a launcher says that it failed."""
    text = plain(text)
    try:
        reading = read(text)
    except ParseError as error:
        if not error.line:
            check_launch(text)
        raise
    check_launch(text)
    return reading


def check_launch(text: str) -> None:
    """Raise ParseError where a launcher, an MPI library or a resource manager says it failed."""
    if said := _FAILED.within(text):
        at = text.find(said[0])
        refuse(f"the launch failed: {line_at(text, at).strip()[:160]!r}", line_of(text, at))


def _read(name: str, reader: Reader, text: str) -> Reading:
    """Return what `reader` read."""
    _check_runs(text)
    try:
        reading = reader(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise ParseError(str(error)[:LONGEST]) from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ParseError(f"is not laid out as {name} writes it: {error!r}"[:LONGEST]) from error
    places = [sample[:2] for sample in reading.samples]
    if len(set(places)) < len(places):
        (metric, case), _ = Counter(places).most_common(1)[0]
        refuse(f"{metric} at {case} is there twice")
    if not places:
        refuse(f"nothing that {name} measures is in it")
    return reading


def _check_runs(text: str) -> None:
    """Refuse a line that is mostly one character: no tool prints it, and patterns take long on it.

    Only where a window holds no end of a line, so that it costs nothing elsewhere.
    """
    for at in range(0, len(text), WINDOW):
        if text.find("\n", at, at + WINDOW) < 0 and (run := _RUN.search(text, at, at + WINDOW)):
            said = f"a line with hundreds of {run[1]!r} in a row: the output is damaged"
            refuse(said, line_of(text, at))


def _parse(
    read: Reader,
    cases: Cases,
    optional: tuple[str, ...],
    spare: frozenset[tuple[str, Case]],
    stdout: str,
    request: Request,
) -> Parsed:
    """Return what was read, if it is what was asked for."""
    reading = read(stdout)
    if reading.ranks is not None and reading.ranks != request.ranks:
        refuse(f"{request.ranks} ranks were asked for, the output says {reading.ranks}")
    for key, said in reading.parameters.items():
        asked = request.parameters.get(key)
        if asked is not None and not _equal(asked, said):
            refuse(f"{key} = {asked!r} was asked for, the output says {said!r}")
    _check_cases(reading.samples, list(cases(request)), optional, spare)
    facts: dict[str, Any] = {f"{reading.benchmark}.version": reading.version}
    if reading.guards:
        facts["guard.said"] = list(reading.guards)
    return Parsed(reading.samples, {**facts, **reading.facts})


def _check_cases(
    samples: Sequence[Sample],
    asked: list[tuple[str, Case]],
    optional: tuple[str, ...],
    spare: frozenset[tuple[str, Case]],
) -> None:
    found = {(sample.metric, sample.case) for sample in samples}
    asked = [pair for pair in asked if pair in found or pair not in spare]
    wanted = set(asked)
    for name in {sample.metric for sample in samples}.intersection(optional):
        wanted |= {(name, case) for _, case in asked}
    for metric, case in asked:
        if (metric, case) not in found:
            refuse(f"{metric} at {case} is missing")
    for metric, case in sorted(wanted - found):
        refuse(f"{metric} at {case} is missing")
    for metric, case in sorted(found - wanted, key=str):
        refuse(f"{metric} at {case} is there but was not asked for")


def _by_size(metrics: tuple[str, ...], request: Request) -> list[tuple[str, Case]]:
    sizes = request.parameters.get("bytes")
    every = [Case()] if sizes is None else [Case.of(bytes=size) for size in sizes]
    return [(metric, case) for metric in metrics for case in every]


def _equal(asked: Any, said: Scalar) -> bool:
    if isinstance(asked, float) and isinstance(said, int | float):
        return math.isclose(asked, said, rel_tol=1e-6)
    return bool(asked == said) or (
        not isinstance(asked, bool) and str(asked).lower() == str(said).lower()
    )
