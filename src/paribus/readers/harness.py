"""`Harness`: what is known of the file of a program that launched others and wrote their figures.

A tool's output is one launch. The file of a harness, such as hyperfine's JSON, holds a launch for
each process that it started; names, units and directions are its user's, and some have failed.
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
    """One launch: its reading, when it was (as `Reader.started`), and its metrics.

    `arm` is its arm if one file holds all arms of a comparison, else "".
    """

    reading: Reading
    date: tuple[float, bool] | None
    metrics: tuple[Metric, ...]
    arm: str = ""


class Failed(NamedTuple):
    """One launch without a figure, and why; `parameters` are those of its Reading, or some."""

    cause: str
    parameters: Mapping[str, Scalar]
    arm: str = ""


Launches = Sequence[Measured | Failed]


@dataclass(frozen=True, slots=True)
class Harness:
    """What is known of a harness's file; fields that a Reader has too mean the same.

    `launches` says what counts as a launch in it, and what as a sample. `arms` is the parameter
    that names the arms if one file is all that is compared, "" if a file is always one arm;
    `alike` says how a user makes the launches of two files comparable.
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
        """Return whether a text is a file of this harness, by its marks."""
        head = plain(text[:HEAD])
        return any(mark in head for mark in self.marks)


def name_of(tree: Any, *path: str | int) -> str:
    """Return the name that `path` leads to, fit to be printed; raises ParseError if it is missing.

    A long name is cut, and ends with a digest of the whole.
    """
    name = printable(" ".join(str(inner(tree, *path)).split()))
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 10]}... {sha256(name.encode()).hexdigest()[:6]}"


def check_statistics(tree: Any, values: Sequence[float], share: float, what: str) -> None:
    """Raise ParseError if mean, median, min or max in `tree` differ by `share` from the values'."""
    of_values = {"mean": math.fsum(values) / len(values), "median": median(values)}
    for key, value in {**of_values, "min": min(values), "max": max(values)}.items():
        if not near(amount(tree, key), value, share):
            refuse(f"{what} have another {key} than the {tree[key]} beside them")


def when(iso: object) -> tuple[float, bool] | None:
    """Return a date in ISO 8601 as seconds since the epoch, and whether its zone is known.

    >>> when("2026-11-22T15:57:48+00:00"), when("2026-11-22 15:57:48"), when("soon")
    ((1795363068.0, True), (1795363068.0, False), None)
    """
    try:
        date = datetime.fromisoformat(str(iso))
        zoned = date.tzinfo is not None
        return (date if zoned else date.replace(tzinfo=UTC)).timestamp(), zoned
    except (ValueError, OverflowError):
        return None
