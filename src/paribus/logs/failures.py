"""Which launches of a log failed: each line that says so is that of an output, or of none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple

from paribus.logs.labels import starts
from paribus.readers.launches import FAILED, NEVER_STARTED
from paribus.readers.text import within

LONGEST = 160
"""Characters of a line that are said."""


class Failure(NamedTuple):
    """A launch that failed: the line of the file that says so, from 1, and its number."""

    line: int
    said: str


def failures(
    text: str, titles: Sequence[int], forms: Collection[str]
) -> tuple[dict[int, Failure], list[Failure]]:
    """Return which outputs failed, by their place, and the launches that failed without a title.

    `titles` are the lines of the titles, in order, `forms` those of headings between outputs. A
    line is of the output above it, or of the one below if a launch begins between the two, or if
    none is above. It is of neither if launches begin on both sides, or if the program was never
    started. Lines of one launch count once.
    """
    begun: list[int] = []
    said: list[Failure] = []
    for number, line in enumerate(text.split("\n"), 1):
        if within(FAILED, line):
            said.append(Failure(number, line.strip()[:LONGEST]))
        elif starts(line, forms):
            begun.append(number)
    of: dict[int, Failure] = {}
    lost: dict[tuple[int, int], Failure] = {}
    for one in said:
        below, after = bisect_left(titles, one.line), bisect_left(begun, one.line)
        least, most = ([0, *titles][below], [*titles, one.line + len(text)][below])
        parted = bool(after) and begun[after - 1] > least
        again = after < len(begun) and begun[after] < most
        if within(NEVER_STARTED, one.said):
            lost.setdefault((below, after), one)
        elif below and not parted:
            of.setdefault(below - 1, one)
        elif below < len(titles) and not again:
            of.setdefault(below, one)
        else:
            lost.setdefault((below, after), one)
    return of, list(lost.values())
