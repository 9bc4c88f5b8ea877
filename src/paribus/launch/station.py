"""Where launches happen: a station of one or more nodes, and what it can be asked.

The local machine is one (local.py). Whoever runs a study gets a station as an argument, so
that one which hangs, dies, lies or is slow can take its place in a test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from paribus.core import Command, Completed, MachineError, Scheduler

DETACHED = "PARIBUS_DETACHED"
"""The variable of a `paribus run` that is a job of its own."""

ANSWER_S = 120.0
"""Seconds that a busy scheduler may take to answer."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: its name ("" for this one) and the hardware threads of each core to be used."""

    name: str
    cores: tuple[tuple[int, ...], ...]


class Lease(Protocol):
    """What lends hosts for a time."""

    @property
    def ends_at(self) -> float:
        """When it ends, in seconds since the epoch."""

    def prolonged_s(self) -> float:
        """Return by how much later than before it ends, in seconds: as after a suspension."""

    def job(self, asked: Scheduler) -> str:
        """Return the number of the allocation that `asked` became."""

    def nodes_of(self, asked: Scheduler) -> Sequence[str]:
        """Return the nodes of that allocation, by the names that their scheduler gives them."""

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return the joules of each node so far, by what counted them, {} if not known."""

    def ended(self) -> MachineError | None:
        """Return why the hosts cannot be used any more, None if they can."""


class Station(Protocol):
    """Runs one launch at a time. Used as a context manager.

    `scratch` is its own directory, where launches are run; that of a launch lies directly
    below it. `here` is its own directory on this machine, which is the same where that is one.
    """

    scratch: str
    lease: Lease | None
    """What lends its hosts for a time, if they are lent."""

    asleep: MachineError | None
    """Why its hosts do not answer yet, None where they do."""

    @property
    def here(self) -> str:
        """Its own directory on this machine."""

    def run(
        self,
        command: Command,
        *,
        stdout: str,
        stderr: str,
        timeout_s: float,
        scratch: str,
        cwd: str = "",
        stay: bool = False,
    ) -> Completed:
        """Return how `command` ended, its output in the files `stdout` and `stderr`.

        The files are of this machine. On time-out, and when the caller dies, everything that the
        command started is ended.
        `scratch` is made before (as TMPDIR) and removed after. With `cwd` the command is run
        there, with the user's TMPDIR; with `stay`, what it leaves running stays.
        """

    def cancel(self) -> None:
        """End the launch in flight, if there is one; `run` then returns or raises."""

    def check_room(self, *others: str) -> None:
        """Raise MachineError unless a launch has room to write here, and in `others`."""
