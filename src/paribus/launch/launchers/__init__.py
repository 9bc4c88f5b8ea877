"""From a program to the command that starts it once per rank: builders of argv, without I/O.

Each MPI family is one module, of the family's name, with a function `launch`: from `./solver` that
of MPICH makes `mpiexec -n 4 -bind-to none -ppn 4 ./solver`.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from types import ModuleType

from paribus.core import Command, Mpi, Placement, Transport
from paribus.launch.launchers import serial
from paribus.launch.launchers.serial import adapter_env, bind

__all__ = ["LAUNCHERS", "NEVER_RUN", "adapter_env", "bind", "launch", "port_of"]


LAUNCHERS = ("openmpi", "mpich", "intelmpi", "msmpi")
"""The families. All but msmpi also have `direct`, which returns the command that srun starts."""

NEVER_RUN = frozenset({"msmpi"})
"""The families whose launcher is written from documentation alone."""


def port_of(scratch: str) -> int:
    """Return the port of a launch: a hash of its directory, below the kernel's ephemeral ports."""
    return 20000 + zlib.crc32(scratch.encode()) % 10000


def _family(name: str) -> ModuleType:
    return import_module(f"paribus.launch.launchers.{name}")


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

    With `mpi` None the program needs no launcher, and one process is started whatever `ranks`
    is. `scratch` is the launch's own directory; the launcher's state goes there, or where the host
    removes it together with it. Ranks are not bound: `bind` does that, the same for every family.
    Raises UserError for a placement that the family cannot run.
    """
    if mpi is None:
        return serial.launch(program, placement=placement)
    family = _family(mpi.family)
    if placement.pmi:
        from paribus.launch.launchers import srun

        direct: Command = family.direct(program, mpi, placement, transport, scratch)
        return srun.launch(direct, ranks=ranks, placement=placement, scratch=scratch)
    command: Command = family.launch(program, ranks, mpi, placement, transport, scratch)
    return command
