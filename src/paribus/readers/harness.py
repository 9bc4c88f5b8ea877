"""What is known of the file of a harness: a program that launched others and wrote their figures.

A tool's output is one launch. A harness's file holds as many as it started processes, whose names,
units and directions are its user's, and says of some that they failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from statistics import median
from typing import Any, NamedTuple

from paribus.border import printable
from paribus.core import Metric, Reading, Scalar
from paribus.readers.figures import near
from paribus.readers.heads import Head
from paribus.readers.json import amount, inner
from paribus.readers.reader import check_reading, read_with
from paribus.readers.text import HEAD, plain, refuse

NOT_WRITTEN = "not printed"
"""The version in readings of a harness that writes none."""

LONGEST_NAME = 100
"""Characters of a name; longer ones are distinguished by a digest of the whole."""


class Measured(NamedTuple):
    """One launch: what the file says of it, in which metrics, and when it was, as in Reader.

    `arm` is what the launch is of where one file holds all arms of a comparison.
    """

    reading: Reading
    date: tuple[float, bool] | None
    metrics: tuple[Metric, ...]
    arm: str = ""


class Failed(NamedTuple):
    """One launch that gave no figure, and why; `parameters` are those of its Reading, or some."""

    cause: str
    parameters: Mapping[str, Scalar]
    arm: str = ""


Launches = Sequence[Measured | Failed]


@dataclass(frozen=True, slots=True)
class Harness:
    """What is known of a harness's file; fields that a Reader has too mean the same.

    `launches` says what counts as a launch in it, and what as a sample. `arms` is the parameter
    that names the arms where one file is all that is compared, "" if a file is one arm; `alike`
    is what makes the launches of two files comparable.
    """

    name: str
    of_plain: Callable[[str], Launches]
    marks: tuple[str, ...]
    heads: tuple[Head, ...]
    launches: str
    versions: str
    proof: str
    arms: str = ""
    alike: str = ""
    complaints: tuple[str, ...] = ()
    from_text: bool = False

    def read(self, text: str) -> Launches:
        """Return the launches in any text; raises ParseError where it is not whole."""
        return self.read_clean(plain(text))

    def read_clean(self, text: str) -> Launches:
        """Return the launches in a text that is `plain`; raises ParseError as `read` does."""
        found = read_with(self.of_plain, self.name, text)
        for one in found:
            if isinstance(one, Measured):
                check_reading(one.reading)
                known = {metric.sampled or metric.name for metric in one.metrics}
                if strange := {sample.metric for sample in one.reading.samples} - known:
                    refuse(f"samples of {min(strange)}, which is none of its metrics")
        return found

    def recognise(self, text: str) -> bool:
        """Return whether a text begins as a file of this harness."""
        head = plain(text[:HEAD])
        return any(mark in head for mark in self.marks)


def name_of(tree: Any, *path: str | int) -> str:
    """Return the name that `path` leads to, fit to be printed; raises ParseError where it lacks."""
    said = inner(tree, *path)
    name = printable(" ".join(str(said).split()))
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 10]}... {sha256(name.encode()).hexdigest()[:6]}"


def check_statistics(tree: Any, values: Sequence[float], share: float, what: str) -> None:
    """Raise ParseError where a mean, median, smallest or largest is not that of the values."""
    said = {"mean": math.fsum(values) / len(values), "median": median(values)}
    for key, value in {**said, "min": min(values), "max": max(values)}.items():
        if not near(amount(tree, key), value, share):
            refuse(f"{what} have another {key} than the {tree[key]} beside them")


def when(said: object) -> tuple[float, bool] | None:
    """Return a date in ISO 8601 as seconds since the epoch, and whether its zone is known.

    >>> when("2026-11-22T15:57:48+00:00"), when("2026-11-22 15:57:48"), when("soon")
    ((1795363068.0, True), (1795363068.0, False), None)
    """
    try:
        date = datetime.fromisoformat(str(said))
        zoned = date.tzinfo is not None
        return (date if zoned else date.replace(tzinfo=UTC)).timestamp(), zoned
    except (ValueError, OverflowError):
        return None
