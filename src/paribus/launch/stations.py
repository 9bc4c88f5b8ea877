"""The stations of a study: which of its arms are run where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import Address, Hosts, MachineError, Scheduler, Study, UserError
from paribus.designs import design_of
from paribus.launch.local import LocalStation
from paribus.launch.station import Station

if TYPE_CHECKING:
    from paribus.hosts.guests import SwitchedStation
    from paribus.hosts.reached import Host
    from paribus.hosts.remote import HostStation
    from paribus.hosts.ssh import Accepts
    from paribus.schedulers.allocations import Allocations


@contextmanager
def stations(
    study: Study,
    key: str = "",
    notify: Callable[[str], None] = lambda _: None,
    nodes: Sequence[str] = (),
    accepts: Accepts = lambda _: False,
    had: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Mapping[str, Station]]:
    """Open the station of each arm of `study`, by the arm's name, and close all at the end.

    Arms on the same hosts share one, and so do arms on this machine, but for those of a duet, which
    launch at the same time. What arms ask a scheduler for is submitted under names with `key`, and
    awaited; `notify` hears of it, and `nodes` are asked for by name, others than the
    nodesets that an arm `had` if there are any. `accepts` decides on host keys
    that are not known, while allocations are held. Raises UserError or MachineError for a host that
    cannot be used; that of an arm with `before` may be asleep.
    """
    at_once = design_of(study).at_once
    with ExitStack() as stack:
        lent = _allocated(study, stack, key, notify, nodes, had or {})
        found: dict[str, Station] = {}
        opened: dict[Hosts | None, Station] = {}
        switched = {arm.hosts for arm in study.arms if arm.before or arm.after or arm.observe}
        for arm in study.arms:
            if arm.hosts not in opened or at_once:
                local = stack.enter_context(LocalStation())
                opened[arm.hosts] = local
                if arm.hosts is not None:
                    from paribus.hosts.guests import SwitchedStation
                    from paribus.hosts.remote import HostStation
                    from paribus.schedulers.allocations import LentStation

                    place = f"{study.path}: arms.{arm.name}.hosts"
                    try:
                        reached = _reached(arm.hosts, local, stack, study, lent, accepts)
                    except MachineError as error:
                        if arm.before:
                            error.fix += "; guests that are off must have keys that are known:"
                            error.fix += " start them once, and accept the keys"
                        raise
                    station: HostStation
                    if arm.hosts.scheduler and lent:
                        station = LentStation(reached, local, lent, tied=lent.dialect.TIED)
                    elif arm.hosts in switched or arm.hosts.hypervisors:
                        below = _hypervisors(arm.hosts, local, study.path, accepts)
                        station = SwitchedStation(reached, local, below)
                    else:
                        station = HostStation(reached, local)
                    stack.enter_context(station)
                    station.check_machines(place)
                    opened[arm.hosts] = station
            found[arm.name] = opened[arm.hosts]
            if not arm.before and (why := why_asleep(found[arm.name])):
                raise why
        yield found


def switched(station: Station | None) -> SwitchedStation | None:
    """Return a station with hosts that commands switch, None for any other."""
    if station is None or isinstance(station, LocalStation):
        return None  # without the room of hosts
    from paribus.hosts.guests import SwitchedStation

    return station if isinstance(station, SwitchedStation) else None


def why_asleep(station: Station) -> MachineError | None:
    """Return why the hosts of a station do not answer yet, None where they do."""
    there = switched(station)
    return there.asleep if there else None


def _allocated(
    study: Study,
    stack: ExitStack,
    key: str,
    notify: Callable[[str], None],
    nodes: Sequence[str],
    had: Mapping[str, Sequence[str]],
) -> Allocations | None:
    """Return what the arms ask schedulers for, which is there then: for equal requests one."""
    asked: dict[str, Scheduler] = {}
    for arm in study.arms:
        wanted = arm.hosts.scheduler if arm.hosts else None
        if wanted and wanted not in asked.values():
            asked[arm.name] = wanted
    if not asked:
        return None
    from paribus.schedulers.allocations import Allocations
    from paribus.schedulers.known import in_job

    inside = in_job(next(iter(asked.values())).name)
    if inside and design_of(study).allocations:
        cause = "asks for nodes several times, and this job has them already"
        fix = "start the study from the login node; it submits a job for each arm"
        raise UserError(cause, place=f"{study.path}: plan.allocations", fix=fix)
    return stack.enter_context(Allocations(asked, key, study.path, notify, inside, nodes, had))


def _reached(
    hosts: Hosts,
    local: LocalStation,
    stack: ExitStack,
    study: Study,
    lent: Allocations | None,
    accepts: Accepts,
) -> tuple[Host, ...]:
    """Return how each of `hosts` is reached from here; a pocket cluster is made for it."""
    from paribus.hosts.pocket import Pocket

    if hosts.scheduler and lent:
        nodes = lent.hosts[hosts.scheduler]
        if all(node.shell for node in nodes):
            return nodes
        hosts = replace(hosts, addresses=tuple(Address(node.name, node.name) for node in nodes))
    if hosts.pocket:
        from paribus.launch.sharing import shown

        directory = f"{local.here}/pocket"
        pocket = Pocket(hosts.pocket, link=hosts.link, directory=directory, needed=shown(study))
        return stack.enter_context(pocket).hosts
    return _known(hosts, study.path, Path(local.here), accepts)


def _hypervisors(
    hosts: Hosts, local: LocalStation, study: str, accepts: Accepts
) -> tuple[Host, ...]:
    """Return how the hypervisors of `hosts` are reached, which is as these are."""
    if not hosts.hypervisors:
        return ()
    directory = Path(local.here, "h")
    directory.mkdir(mode=0o700)
    return _known(replace(hosts, addresses=hosts.hypervisors), study, directory, accepts)


def _known(hosts: Hosts, study: str, directory: Path, accepts: Accepts) -> tuple[Host, ...]:
    """Return how `hosts` are reached, whose keys are known by then."""
    from paribus.hosts.ssh import reach

    return reach(hosts, hosts.ssh.known_hosts or known_hosts_of(study), directory, accepts)


def known_hosts_of(study: str) -> str:
    """Return the file of host keys of a study that names none: beside it, not the user's."""
    return str(Path(study).absolute().with_suffix(".known_hosts"))
