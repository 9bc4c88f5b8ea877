"""The stations of arms on other machines: nodes of a scheduler, pocket hosts, hosts over ssh."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import Address, Arm, Hosts, MachineError, Scheduler, Study, UserError
from paribus.designs import design_of
from paribus.launch.local import LocalStation
from paribus.launch.station import Station
from paribus.store import read_count

if TYPE_CHECKING:
    from paribus.hosts.guests import SwitchedStation
    from paribus.hosts.reached import Host
    from paribus.hosts.remote import HostStation
    from paribus.hosts.ssh import Accepts
    from paribus.schedulers.allocations import Allocations

PLATFORMS = ("cluster", "instance")
"""The factors whose arms are not on the same machines."""


class Others:
    """Makes the stations of all arms with hosts; see stations.stations.

    Making this waits until schedulers have given the allocations. What is opened ends with `stack`.
    """

    def __init__(
        self,
        study: Study,
        stack: ExitStack,
        directory: Path | None,
        notify: Callable[[str], None],
        accepts: Accepts,
    ) -> None:
        self.study, self.stack, self.accepts = study, stack, accepts
        self._switched = {arm.hosts for arm in study.arms if arm.before or arm.after or arm.observe}
        self._lent = self._allocated(directory, notify)
        self._entered: dict[str, HostStation] = {}

    def station_of(self, arm: Arm, local: LocalStation) -> Station:
        """Return the station of an arm, entered; `local` is a station of this machine, its own."""
        if arm.hosts is None:
            return local
        from paribus.hosts.guests import SwitchedStation
        from paribus.hosts.remote import HostStation
        from paribus.schedulers.allocations import LentStation

        try:
            reached = self._reached(arm.hosts, local)
        except MachineError as error:
            if arm.before:
                error.fix += "; guests that are off must have keys that are known:"
                error.fix += " start them once, and accept the keys"
            raise
        station: HostStation
        if arm.hosts.scheduler and self._lent:
            station = LentStation(reached, local, self._lent, tied=self._lent.dialect.TIED)
        elif arm.hosts in self._switched or arm.hosts.hypervisors:
            station = SwitchedStation(reached, local, self._hypervisors(arm.hosts, local))
        else:
            station = HostStation(reached, local)
        self.stack.enter_context(station)
        station.check_machines(f"{self.study.path}: arms.{arm.name}.hosts")
        self._check_apart(arm, station)
        return station

    def _check_apart(self, arm: Arm, station: HostStation) -> None:
        """Raise UserError where arms that are platforms have the same machines: other names, say.

        Else the verdict on a machine against itself would be "equivalent".
        """
        same = (name for name, other in self._entered.items() if other.machines == station.machines)
        if self.study.factor in PLATFORMS and station.machines and (name := next(same, "")):
            raise UserError(
                f"the hosts of the arms {name} and {arm.name} are the same machines",
                place=f"{self.study.path}: arms.{arm.name}.hosts",
                fix="name machines of each platform; or name what differs on these machines as the"
                ' factor, such as factor = "interconnect"',
            )
        self._entered[arm.name] = station

    def _allocated(
        self, directory: Path | None, notify: Callable[[str], None]
    ) -> Allocations | None:
        """Return the allocations of all arms, granted; arms with equal requests share one.

        A study that goes on in `directory` asks for the nodes that it had (plan.same_nodes) or for
        others (plan.allocations).
        """
        study = self.study
        asked: dict[str, Scheduler] = {}
        for arm in study.arms:
            wanted = arm.hosts.scheduler if arm.hosts else None
            if wanted and wanted not in asked.values():
                asked[arm.name] = wanted
        if not asked:
            return None
        from paribus.launch.lease import key_for, nodes_before, nodes_had
        from paribus.schedulers.allocations import Allocations
        from paribus.schedulers.known import in_job

        inside, several = in_job(next(iter(asked.values())).name), design_of(study).allocations
        if inside and several:
            cause = "asks for nodes several times, and this job has them already"
            fix = "start the study from the login node; it submits a job for each arm"
            raise UserError(cause, place=f"{study.path}: plan.allocations", fix=fix)
        key = key_for(directory) if directory else ""
        begun = directory if directory and read_count(directory).launches else None
        nodes = nodes_before(begun) if begun and study.settings.same_nodes else ()
        had = nodes_had(begun) if begun and several else {}
        allocations = Allocations(asked, key, study.path, notify, inside, nodes, had)
        return self.stack.enter_context(allocations)

    def _reached(self, hosts: Hosts, local: LocalStation) -> tuple[Host, ...]:
        """Return how each of `hosts` is reached from here; a pocket cluster is made for that."""
        if hosts.scheduler and self._lent:
            nodes = self._lent.hosts[hosts.scheduler]
            if all(node.shell for node in nodes):
                return nodes
            hosts = replace(hosts, addresses=tuple(Address(node.name, node.name) for node in nodes))
        if hosts.pocket:
            from paribus.hosts.pocket import Pocket
            from paribus.launch.sharing import shown

            directory, needed = f"{local.here}/pocket", shown(self.study)
            pocket = Pocket(hosts.pocket, link=hosts.link, directory=directory, needed=needed)
            return self.stack.enter_context(pocket).hosts
        return self._known(hosts, Path(local.here))

    def _hypervisors(self, hosts: Hosts, local: LocalStation) -> tuple[Host, ...]:
        """Return how the hypervisors of `hosts` are reached: with the same ssh settings."""
        if not hosts.hypervisors:
            return ()
        directory = Path(local.here, "h")
        directory.mkdir(mode=0o700)
        return self._known(replace(hosts, addresses=hosts.hypervisors), directory)

    def _known(self, hosts: Hosts, directory: Path) -> tuple[Host, ...]:
        """Return how `hosts` are reached over ssh; their keys are in a known_hosts file by then.

        That is the file that the study names, else STUDY.known_hosts beside it, never the user's.
        """
        from paribus.hosts.ssh import reach

        beside = str(Path(self.study.path).absolute().with_suffix(".known_hosts"))
        return reach(hosts, hosts.ssh.known_hosts or beside, directory, self.accepts)


def switched(station: Station | None) -> SwitchedStation | None:
    """Return `station` if it has hosts that commands switch, else None."""
    if station is None or isinstance(station, LocalStation):
        return None  # so that the room `hosts` need not be loaded
    from paribus.hosts.guests import SwitchedStation

    return station if isinstance(station, SwitchedStation) else None
