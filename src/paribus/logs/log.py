"""What reading logs gives: `Log`, an output that was read, and `Unread`, one that was not.

A file with two outputs of OSU and a torn third gives two Logs, "run.out#1" and "run.out#2", and an
Unread that says what the third lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from paribus.core import Metric, Reading, Scalar, Unreadable, grouped
from paribus.readers.settings import NOTHING_PRINTED, Printed

Test = tuple[str, tuple[tuple[str, Scalar], ...], int | None]
"""What logs must share to be compared: tool, parameters by name, and number of ranks."""

_RARE = re.compile(r"\d++\.\d++|(?<![:\d])(?!00:)\d\d:\d\d:\d\d(?![:\d])")


@dataclass(frozen=True, slots=True)
class Log:
    """One output that was read: what it says, and which file and arm it is of.

    What the text says:
    `reading`: tool, version, parameters, samples and facts, as its reader returned them.
    `date`: seconds since the epoch that it prints, and whether their time zone is known.
    `part`: its number, from 1, among several outputs of the text; 0 if it is the only one.
    `metrics`: those that a harness's file names; empty for a tool, whose metrics are listed.
    `within`: its arm as a harness's file names it, where one file holds all arms.
    `printed`: settings that the output shows beside those of the reading.
    `labels`: what a script printed above it, by form, and `counted` the launch's number there
    (labels.py).
    `ranks`: how many ranks may have written it and others like it, 0 where nothing says so.
    `rare`: what is `rare` in it, with blanks between; "" in a harness's file.

    What is known of its file (logs.py):
    `name`: the path below the folder of its `arm`, with #2 for the second output in one file.
    `written`: when the file was last written; `at`: when it was measured, as far as is known: the
    date, or `written` if there is none or dates do not show the order (pairing.py).
    `alone`: whether it is the only output of its tool in the file.
    """

    reading: Reading
    date: tuple[float, bool] | None = None
    part: int = 0
    metrics: tuple[Metric, ...] = ()
    within: str = ""
    printed: Printed = NOTHING_PRINTED
    labels: Mapping[str, str] = field(default_factory=dict)
    counted: str = ""
    ranks: int = 0
    rare: str = ""
    arm: str = ""
    name: str = ""
    path: str = ""
    written: float = 0.0
    at: float = 0.0
    alone: bool = True

    @property
    def dated(self) -> bool:
        """Return whether the log itself says when it was measured."""
        return self.date is not None

    @property
    def zoned(self) -> bool:
        """Return whether the time zone of its date is known."""
        return self.date is not None and self.date[1]

    @property
    def test(self) -> Test:
        """Return what logs must share to be compared."""
        reading = self.reading
        return reading.benchmark, tuple(sorted(reading.parameters.items())), reading.ranks

    @property
    def file(self) -> tuple[str, str]:
        """Return what identifies its file: arm and path."""
        return self.arm, self.path

    def with_parameters(self, more: Mapping[str, Scalar]) -> Log:
        """Return the log with more parameters of its reading."""
        if not more:
            return self
        parameters = {**self.reading.parameters, **more}
        return replace(self, reading=replace(self.reading, parameters=parameters))


T = TypeVar("T")


def rare(text: str) -> list[str]:
    """Return what two launches seldom both print: numbers with a decimal point, times of day.

    A time in the first hour may be how long something took.

    >>> rare("at 12:30:05 Triad: 21902.3 of 00:01:00, ab:12:30:05")
    ['12:30:05', '21902.3']
    """
    return _RARE.findall(text)


def in_groups(
    logs: Sequence[Log], key: Callable[[Log], Hashable], of: Callable[[list[Log]], Iterable[T]]
) -> list[T]:
    """Return what `of` gives for each log: `of` is called with all logs of the same `key` together.

    The values are in the order of `logs`, one for each.
    """
    found: dict[int, T] = {}
    for places in grouped((key(log), at) for at, log in enumerate(logs)).values():
        found |= zip(places, of([logs[at] for at in places]), strict=True)
    return [found[at] for at in range(len(logs))]


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or an output in one, that was not read, and why.

    `code` is the reason, and `detail` what it names: a path, what the system says, what a reader
    refused. `tool` is the tool that was recognised in it, "" if none was; `of` are the parameters
    of a launch that failed, as far as a harness's file says them. `output` is its number, from 1,
    among the outputs of its file, 0 for a whole file; `line` is the number of the line that shows
    why, 0 if none does. The other fields are those of a Log.
    """

    code: Unreadable
    detail: str = ""
    tool: str = ""
    of: Mapping[str, Scalar] = field(default_factory=dict)
    within: str = ""
    output: int = 0
    line: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    arm: str = ""
    name: str = ""
    path: str = ""

    @property
    def lost(self) -> bool:
        """Return whether a launch failed before its tool said which it is."""
        return self.code is Unreadable.LAUNCH_FAILED
