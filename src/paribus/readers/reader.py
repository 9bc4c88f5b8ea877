"""`Reader`: all that is known of the output of a tool, and how an output is read by it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from paribus.core import Case, ParseError, Reading, Row, Sample, Scalar, of_case, of_tool
from paribus.readers.dates import Date, started
from paribus.readers.heads import Head
from paribus.readers.launches import check_launch
from paribus.readers.text import HEAD, LONGEST, WINDOW, line_at, line_of, plain, refuse

_RUN = re.compile(r"(.)\1{299}")
_MAP = "Nodemap: "
"""How a line of mdtest begins that has a digit for each task."""

Read = TypeVar("Read")

WORK = "work."
"""Prefix of facts that say what was computed: two arms must agree in them."""

SAME_WORK = 1e-6
"""Relative difference up to which figures of the work count as the same: rounding in a sum."""

LARGEST = 2**63 - 1
"""The largest size or number of a case: tools count in 64 bits."""

OTHER_WORK = "another amount of work was done: the figures do not compare"
"""The reason for which a fact of the work must be the same."""

NO_POINT = Case()
"""The case of what is measured at one point only."""


class Work(NamedTuple):
    """Facts on what was computed, and the relative difference of figures that count as the same."""

    facts: Mapping[str, Any]
    tolerance: float = SAME_WORK


@lru_cache(maxsize=4096, typed=True)
def point(**parameters: Scalar) -> Case:
    """Return the case of these parameters; cached, for a reader meets few, each of them often."""
    return Case.of(**parameters)


def single(case: Case = NO_POINT, /, **values: float) -> tuple[Sample, ...]:
    """Return a sample of one value for each metric, at `case`; raises ValueError as Sample does."""
    return tuple(Sample(metric, case, (value,)) for metric, value in values.items())


def of_device(key: str) -> Row:
    """Return how the audit judges a fact on which device was measured, or what it could do."""
    reason = "another device was measured, or one that cannot do all that is tried"
    return of_tool(key, reason=reason, follows=("gpu.*", "cpu.model"))


def of_nodes(key: str) -> Row:
    """Return how the audit judges the number of nodes on which a tool ran."""
    reason = "another number of nodes, each with a network and caches of its own"
    return of_tool(key, reason=reason, follows=("container.*", "layers.*", "rank.hosts"))


def work_of(reading: Reading) -> Work:
    """Return the facts of a reading that say what was computed."""
    return Work({key: value for key, value in reading.facts.items() if key.startswith(WORK)})


@dataclass(frozen=True, slots=True)
class Reader:
    """What is known of a tool's output.

    `of_plain`: reads a whole text without colour codes, tags of ranks and carriage returns.
    `marks`: texts of which one is near the beginning of every output, also of one that was pasted
    without its title; `belongs`: decides instead where a mark is ambiguous.
    `versions`: were seen; `proof`: what an output must have; `means`: what its figures mean.
    `heads`: how its outputs begin in a file of several; where readers share one, the marks decide.
    `library`: a word in lines of a library that the reader needs: they are put before the output.
    `several`: where the launches of an output begin that has one title for several.
    `complaints`: what the tool says if it fails before it prints a mark.
    `dates`: how it writes when it ran; `work`: what two outputs of the same work agree in.
    `facts`: how the audit judges facts that only this tool gives; their keys begin with its name.
    `from_text`: no output of a real run was seen, only the source or documentation of the tool.
    """

    name: str
    of_plain: Callable[[str], Reading]
    marks: tuple[str, ...]
    versions: str
    proof: str
    means: str
    heads: tuple[Head, ...] = ()
    library: str = ""
    several: Callable[[str], list[int]] | None = None
    belongs: Callable[[str], bool] | None = None
    complaints: tuple[str, ...] = ()
    dates: tuple[Date, ...] = ()
    work: Callable[[Reading], Work] = work_of
    facts: tuple[Row, ...] = ()
    from_text: bool = False

    def read(self, text: str) -> Reading:
        """Return the reading of a text; raises ParseError also if a launcher says it failed."""
        text = plain(text)
        try:
            reading = self.read_clean(text)
        except ParseError as error:
            if not error.line:
                check_launch(text)
            raise
        check_launch(text)
        return reading

    def read_clean(self, text: str) -> Reading:
        """Return the reading of a `plain` text, without a search for words on failed launches.

        For texts whose whole file was made plain and searched before.
        """
        reading = read_with(self.of_plain, self.name, text)
        check_reading(reading)
        return reading

    def recognise(self, text: str) -> bool:
        """Return whether a text is of the tool, by its marks or `belongs`."""
        if self.belongs is not None:
            return self.belongs(text)
        head = plain(text[:HEAD])
        return any(mark in head for mark in self.marks)

    def started(self, text: str) -> tuple[float, bool] | None:
        """Return the date of an output in s since the epoch, and whether its zone is known."""
        return started(self.dates, text)


def read_with(of_plain: Callable[[str], Read], name: str, text: str) -> Read:
    """Return what `of_plain` reads in a text; turns other errors of it into ParseError."""
    _check_runs(text)
    try:
        return of_plain(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise ParseError(str(error)[:LONGEST]) from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        cause = f"is not laid out as {name} writes it: {error!r}"
        raise ParseError(cause[:LONGEST]) from error


def check_reading(reading: Reading) -> None:
    """Raise ParseError for no figure, for one that is there twice, and for a huge parameter."""
    places = [sample[:2] for sample in reading.samples]
    if len(set(places)) < len(places):
        (metric, case), _ = Counter(places).most_common(1)[0]
        refuse(f"{metric}{of_case(case)} is there twice")
    for _, case in places:
        for key, value in case.items:
            if isinstance(value, int) and value > LARGEST:
                refuse(f"{key} of {len(str(value))} digits: the output is damaged")
    if not places:
        refuse(f"nothing that {reading.benchmark} measures is in it")


def _check_runs(text: str) -> None:
    """Refuse a line with hundreds of one character in a row, on which patterns take long.

    No tool prints one but mdtest (_MAP), whose reader has no pattern for that line. Only windows
    without an end of a line are searched, so it costs nothing elsewhere.
    """
    for at in range(0, len(text), WINDOW):
        if text.find("\n", at, at + WINDOW) < 0 and (run := _RUN.search(text, at, at + WINDOW)):
            if line_at(text, at).startswith(_MAP):
                continue
            cause = f"a line with hundreds of {run[1]!r} in a row: the output is damaged"
            refuse(cause, line_of(text, at))
