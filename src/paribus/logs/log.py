"""What files of logs hold: outputs that were read, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from paribus.core import Metric, Reading, Scalar, Unreadable, grouped
from paribus.readers.settings import NOTHING_PRINTED, Printed

Test = tuple[str, tuple[tuple[str, Scalar], ...], int | None]


@dataclass(frozen=True, slots=True)
class Log:
    """One output that was read: what it says, and whose it is.

    `date` is when it says that it was made (seconds since the epoch), and whether in a known zone;
    `part` its number, from 1, in a text that holds several, else 0. `metrics` are those of a
    harness's file, otherwise those of the tool; `within` is what the launch is of where that file
    holds all arms. `printed` are settings that the output shows beside those of the reading.
    `labels` are what its script printed above it, by their form, and `counted` the number of the
    launch there (labels.py). `ranks` are those that may have written it and others like it in its
    file, 0 where nothing says so.

    `name` is the file's path below its arm's folder, with #2 for the second output in one file;
    `written` is when the file was, and `at` the date or, without one, that. `alone` is False for
    one of several outputs of a tool in one file.
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
        """Return what logs that can be compared have in common: tool, parameters and ranks."""
        reading = self.reading
        return reading.benchmark, tuple(sorted(reading.parameters.items())), reading.ranks

    @property
    def file(self) -> tuple[str, str]:
        """Return its file, which is that of one arm."""
        return self.arm, self.path

    def with_parameters(self, more: Mapping[str, Scalar]) -> Log:
        """Return the log with more parameters of its reading."""
        if not more:
            return self
        parameters = {**self.reading.parameters, **more}
        return replace(self, reading=replace(self.reading, parameters=parameters))


T = TypeVar("T")


def in_groups(
    logs: Sequence[Log], key: Callable[[Log], Hashable], of: Callable[[list[Log]], Iterable[T]]
) -> list[T]:
    """Return what `of` says of each log of those that have the same key, in the order of all."""
    found: dict[int, T] = {}
    for places in grouped((key(log), at) for at, log in enumerate(logs)).values():
        found |= zip(places, of([logs[at] for at in places]), strict=True)
    return [found[at] for at in range(len(logs))]


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a part of one, that was not read, and why; `tool` if one was recognised in it.

    `detail` is what the reason names: a path, what the system says, what a reader refused.
    `of` are the parameters of one launch that failed. `output` is the number of an output that was
    found in the file, from 1, and not read, else 0, and `line` that of the line of the file that
    shows why, 0 where none does. The others are those of a Log.
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
