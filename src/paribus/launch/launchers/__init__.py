"""From a program to the command that starts it once per rank: pure builders of argv.

A family is one module with one `launch` function; the table below is the whole registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paribus.core import Command, Mpi, Placement, Transport
from paribus.launch.launchers import intelmpi, mpich, msmpi, openmpi, serial, srun
from paribus.launch.launchers.serial import adapter_env, bind
from paribus.launch.launchers.serving import listens, port_of, serve

__all__ = ["LAUNCHERS", "NEVER_RUN", "adapter_env", "bind", "launch", "listens", "port_of", "serve"]


Launcher = Callable[[Command, int, Mpi, Placement, Transport, str], Command]
"""What each family's module offers: `launch`, with the arguments of the function below."""

Direct = Callable[[Command, Mpi, Placement, Transport, str], Command]
"""What a family's module offers whose ranks srun can start: `direct`, without their number."""

LAUNCHERS: Mapping[str, Launcher] = {
    "openmpi": openmpi.launch,
    "mpich": mpich.launch,
    "intelmpi": intelmpi.launch,
    "msmpi": msmpi.launch,
}

NEVER_RUN = frozenset({"msmpi"})
"""The families whose launcher is written from documentation alone."""

_DIRECT: Mapping[str, Direct] = {
    "openmpi": openmpi.direct,
    "mpich": mpich.direct,
    "intelmpi": intelmpi.direct,
}


def launch(
    program: Command,
    *,
    ranks: int,
    mpi: Mpi | None,
    placement: Placement,
    transport: Transport,
    scratch: str,
) -> Command:
    """Return the command that starts `ranks` copies of `program`, by the launcher of `mpi` or srun.

    `mpi` of None is a program that needs no launcher: then one process, whatever `ranks` says.
    `scratch` is the launch's own directory; the launcher's state goes there, or where the host
    removes it together with it. Ranks are not bound: `bind` does that, the same for every family.
    Raises UserError for a placement that the family cannot run.
    """
    if mpi is None:
        return serial.launch(program, placement=placement)
    if placement.pmi:
        direct = _DIRECT[mpi.family](program, mpi, placement, transport, scratch)
        return srun.launch(direct, ranks=ranks, placement=placement, scratch=scratch)
    return LAUNCHERS[mpi.family](program, ranks, mpi, placement, transport, scratch)
