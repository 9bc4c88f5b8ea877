"""The stations of a study: which of its arms are carried out where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from paribus.design import Study
from paribus.hosts import Hosts
from paribus.platform.hostkeys import reach
from paribus.platform.hosts import Host
from paribus.platform.local import LocalStation
from paribus.platform.pocket import Pocket
from paribus.platform.remote import HostStation
from paribus.platform.station import Station


@contextmanager
def stations(study: Study) -> Iterator[Mapping[str, Station]]:
    """Open the station of each arm of `study`, by the arm's name, and close all at the end.

    Arms on the same hosts share one, and so do arms on this machine, but for those of a duet, which
    launch at the same time. Raises UserError or MachineError for a host that cannot be used.
    """
    with ExitStack() as stack:
        found: dict[str, Station] = {}
        opened: dict[Hosts | None, Station] = {}
        for arm in study.arms:
            if arm.hosts not in opened or study.settings.layout == "duet":
                local = stack.enter_context(LocalStation())
                opened[arm.hosts] = local
                if arm.hosts is not None:
                    reached = _reached(arm.hosts, local, stack, study.path)
                    station = stack.enter_context(HostStation(reached, local))
                    station.check_machines(f"{study.path}: arms.{arm.name}.hosts")
                    opened[arm.hosts] = station
            found[arm.name] = opened[arm.hosts]
        yield found


def _reached(hosts: Hosts, local: LocalStation, stack: ExitStack, study: str) -> tuple[Host, ...]:
    """Return how each of `hosts` is reached from here; a pocket cluster is made for it."""
    if hosts.pocket:
        directory = f"{local.here}/pocket"
        pocket = stack.enter_context(Pocket(hosts.pocket, link=hosts.link, directory=directory))
        return pocket.hosts
    return reach(hosts, hosts.ssh.known_hosts or known_hosts_of(study), Path(local.here))


def known_hosts_of(study: str) -> str:
    """Return the file of host keys of a study that names none: beside it, not the user's."""
    return str(Path(study).absolute().with_suffix(".known_hosts"))
