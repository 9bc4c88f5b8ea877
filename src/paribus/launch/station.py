"""The interface of a station: one or more nodes on which launches are run.

This machine is one (local.py); hosts over ssh are another (hosts/remote.py). The code that runs a
study gets stations as arguments, so that a test can give it one that hangs, dies or is slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from paribus.core import Command, Completed, MachineError, Scheduler

DETACHED = "PARIBUS_DETACHED"
"""The environment variable of a `paribus run` that is itself a job of a scheduler."""

ANSWER_S = 120.0
"""Seconds that a busy scheduler may take to answer."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine: its name ("": this one), and for each core to be used its hardware threads."""

    name: str
    cores: tuple[tuple[int, ...], ...]


class Lease(Protocol):
    """The allocations from which a station has its hosts, for a limited time."""

    @property
    def ends_at(self) -> float:
        """When it ends, in seconds since the epoch."""

    def prolonged_s(self) -> float:
        """Return by how many seconds its end moved since the last call: a suspension delays it."""

    def job(self, asked: Scheduler) -> str:
        """Return the number of the allocation that `asked` became."""

    def nodes_of(self, asked: Scheduler) -> Sequence[str]:
        """Return the nodes of that allocation, by the names that their scheduler gives them."""

    def counters(self) -> Mapping[str, Mapping[str, int]]:
        """Return the joules of each node so far, by node and source, {} if not known."""

    def ended(self) -> MachineError | None:
        """Return why the hosts cannot be used any more, None if they can."""


class Station(Protocol):
    """Runs one launch at a time. Used as a context manager."""

    scratch: str
    """Its own directory on its nodes; the scratch directories of launches lie directly below it."""

    lease: Lease | None
    """The allocations of its hosts, if a scheduler lends them."""

    asleep: MachineError | None
    """Why its hosts do not answer yet, None where they do."""

    @property
    def here(self) -> str:
        """Its own directory on this machine: `scratch`, if this machine is one of its nodes."""

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
        """Run `command`, its output in files of this machine, and return how it ended.

        At its end, on time-out, and when the caller dies, everything that it started is ended;
        with `stay`, what it leaves running at its end stays. `scratch` is made before, as working
        directory and TMPDIR, and removed after. With `cwd` the command is run there, with the
        user's TMPDIR.
        """

    def cancel(self) -> None:
        """End the launch in flight, if there is one; `run` then returns or raises."""

    def check_room(self, *others: str) -> None:
        """Raise MachineError unless a launch has room to write here, and in `others`."""
