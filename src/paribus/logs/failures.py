"""Which launches of a log failed: each line that says so is that of an output, or of none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple

from paribus.logs.labels import Label, above, starts
from paribus.readers.launches import NEVER_STARTED, says_failed
from paribus.readers.text import within

LONGEST = 160
"""Characters of a line that are said."""


class Failure(NamedTuple):
    """A launch that failed: the number of the line that says so, from 1, the line, and its labels.

    The labels of one without an output are in the line with which it begins.
    """

    line: int
    said: str
    labels: tuple[Label, ...] = ()


def failures(
    text: str, phrases: Sequence[str], titles: Sequence[int], forms: Collection[str]
) -> tuple[dict[int, Failure], list[Failure]]:
    """Return which outputs failed, by their place, and the launches that failed without a title.

    A line with one of the `phrases` says so; `titles` are the lines of the titles, in order, and
    `forms` those of headings between outputs. It is of the output above it, or of the one below if
    a launch begins between the two, or if none is above. It is of neither if launches begin on both
    sides, or if the program was never started. Lines of one launch count once.
    """
    begun: dict[int, str] = {}
    said: list[Failure] = []
    for number, line in enumerate(text.split("\n"), 1):
        if says_failed(line, phrases):
            said.append(Failure(number, line.strip()[:LONGEST]))
        elif starts(line, forms):
            begun[number] = line
    numbers = [*begun]
    of: dict[int, Failure] = {}
    lost: dict[tuple[int, int], Failure] = {}
    for one in said:
        below, after = bisect_left(titles, one.line), bisect_left(numbers, one.line)
        least, most = ([0, *titles][below], [*titles, one.line + len(text)][below])
        parted = bool(after) and numbers[after - 1] > least
        again = after < len(numbers) and numbers[after] < most
        never = bool(within(NEVER_STARTED, one.said))
        if below and not parted and not never:
            of.setdefault(below - 1, one)
        elif below < len(titles) and not again and not never:
            of.setdefault(below, one)
        else:
            labels = above([begun[numbers[after - 1]]], 0).labels if parted else ()
            lost.setdefault((below, after), one._replace(labels=labels))
    return of, list(lost.values())
