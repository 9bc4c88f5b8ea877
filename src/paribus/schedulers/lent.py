"""A station of hosts that a scheduler lends: where it takes them back, no launch is to blame."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paribus.core import Command, Completed, LaunchError, MachineError
from paribus.hosts.reached import Host
from paribus.hosts.remote import PROBE_S, HostStation
from paribus.launch.local import LocalStation
from paribus.launch.station import Lease
from paribus.schedulers.slurm_energy import joules

PAUSE_S = 1.0
"""Seconds between two tries to reach a host."""


class LentStation(HostStation):
    """As HostStation, of hosts that are there as long as `lease` runs.

    `tied`: what runs there ends with the lease. Otherwise the lease is looked at after each launch:
    the hosts may be somebody else's by then.
    """

    def __init__(
        self, hosts: Sequence[Host], local: LocalStation, lease: Lease, *, tied: bool
    ) -> None:
        super().__init__(hosts, local)
        self.lease = lease
        self._ended, self._counters = lease.ended, lease.counters
        self._tied = tied

    def _clear(self, node: int, nonce: str) -> str:
        """As HostStation does it, and once more when the scheduler answers.

        The way to its hosts may lead through it.
        """
        boot = super()._clear(node, nonce)
        if boot or self._ended():  # this waits until the scheduler answers
            return boot
        deadline = time.monotonic() + PROBE_S
        while not boot and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            boot = super()._clear(node, nonce)
        return boot

    def run(self, command: Command, **how: Any) -> Completed:
        """Return how `command` ended; see HostStation. Raises AllocationError if the lease has."""
        before = self._counters()
        try:
            done = super().run(command, **how)
        except (LaunchError, MachineError) as error:
            if ended := self._ended():
                raise ended from error
            raise
        if not self._tied and (ended := self._ended()):
            raise ended
        if not before:
            return done
        used = joules(before, self._counters(), [one.name for one in self.hosts])
        return done if used is None else replace(done, energy_j={**done.energy_j, "slurm": used})
