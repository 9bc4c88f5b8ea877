"""Stations of hosts that a switch starts, stops or reboots, such as virtual machines.

Before a switch the connections are closed (`leave`), and after it the hosts are waited for
(`wait`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from paribus.core import MachineError
from paribus.hosts.host_machine import HostMachine
from paribus.hosts.keeper import Keeper, Task
from paribus.hosts.reached import Host
from paribus.hosts.remote import AT_ONCE, PROBE_S, HostStation
from paribus.launch.local import LocalStation
from paribus.launch.machine import of_each

BACK_S = 600.0
"""Seconds in which hosts must answer after `before`: servers test their memory when they boot."""

PAUSE_S = 1.0
"""Seconds between two tries."""


class SwitchedStation(HostStation):
    """Hosts of an arm that commands switch; `asleep`: why they do not answer yet, None if they do.

    `hypervisors`: further hosts, on which the commands are run, but no launches.
    """

    def __init__(
        self, hosts: Sequence[Host], local: LocalStation, hypervisors: Sequence[Host] = ()
    ) -> None:
        super().__init__(hosts, local)
        self.hypervisors = tuple(hypervisors)

    def __enter__(self) -> SwitchedStation:
        try:
            super().__enter__()
        except MachineError as error:
            self.asleep = error
        return self

    def check_machines(self, place: str) -> None:
        """As HostStation does, where the hosts answer."""
        if not self.asleep:
            super().check_machines(place)

    def host(self, name: str) -> Host:
        """Return the host or hypervisor of this name; a study that was checked has one."""
        return next(one for one in (*self.hypervisors, *self.hosts) if one.name == name)

    def said_below(self, argv: Sequence[str], timeout_s: float) -> dict[str, str]:
        """Return what `argv` prints on each hypervisor, by name; raises UserError, naming one."""

        def printed(host: Host) -> str:
            return HostMachine(host).capture(argv, timeout_s=timeout_s).stdout

        answers = of_each(self.hypervisors, printed, AT_ONCE)
        return {host.name: text for host, text in zip(self.hypervisors, answers, strict=True)}

    def wait(self, place: str) -> None:
        """Return when every host answers; raises MachineError for one that does not in BACK_S."""
        begin = time.monotonic()
        while True:
            try:
                self._answer()
                break
            except MachineError as error:
                if time.monotonic() - begin > BACK_S:
                    raise MachineError(
                        f"{error.place} does not answer {BACK_S:.0f} s after `before`:"
                        f" {error.cause}",
                        place=place,
                        fix="see on its console whether it starts and has its network; then"
                        " continue with --resume: every stored launch is kept",
                    ) from error
            time.sleep(PAUSE_S)
        if self.asleep:
            self.asleep = None
            self.check_machines(place)

    def leave(self) -> None:
        """Close the connections before a switch may stop the hosts; `wait` opens them again."""
        of_each(self._keepers, Keeper.close, AT_ONCE)

    def _answer(self) -> None:
        """Connect to every host that does not answer; raises what the first raised."""
        if self.asleep:
            super().__enter__()
            return

        def answer(keeper: Keeper) -> None:
            if not (keeper.alive() and _answers(keeper)):
                keeper.drop()
                self._open_again(keeper)

        of_each(self._keepers, answer, AT_ONCE)


def _answers(keeper: Keeper) -> bool:
    """Return whether a host runs an empty script: the connection may be of before its reboot."""
    task = Task(len, len)
    keeper.start(f"{secrets.token_hex(16)}.0", ":", task)
    return task.over.wait(PROBE_S) and not task.lost
