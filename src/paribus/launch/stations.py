"""Opening the stations of a study: where the launches of each arm are run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.core import Hosts, Study
from paribus.designs import design_of
from paribus.launch.local import LocalStation
from paribus.launch.station import Station

if TYPE_CHECKING:
    from paribus.hosts.ssh import Accepts
    from paribus.launch.others import Others


@contextmanager
def stations(
    study: Study,
    directory: Path | None = None,
    notify: Callable[[str], None] = lambda _: None,
    accepts: Accepts = lambda _: False,
) -> Iterator[Mapping[str, Station]]:
    """Open the station of each arm of `study`, by the arm's name, and close all at the end.

    Arms on the same hosts, or all on this machine, share a station, except those of a duet, which
    launch at the same time. Allocations that arms ask for are submitted and awaited, with messages
    to `notify`; `directory` is that of the study, if it has one. `accepts` decides on unknown host
    keys. Raises UserError or MachineError for a host that cannot be used; hosts of an arm with
    `before` may be off.
    """
    at_once = design_of(study).at_once
    with ExitStack() as stack:
        others: Others | None = None
        if any(arm.hosts for arm in study.arms):
            from paribus.launch.others import Others

            others = Others(study, stack, directory, notify, accepts)
        found: dict[str, Station] = {}
        opened: dict[Hosts | None, Station] = {}
        for arm in study.arms:
            if arm.hosts not in opened or at_once:
                local = stack.enter_context(LocalStation())
                opened[arm.hosts] = others.station_of(arm, local) if others else local
            found[arm.name] = opened[arm.hosts]
            if not arm.before and (error := found[arm.name].asleep):
                raise error
        yield found
