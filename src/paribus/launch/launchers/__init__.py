"""From a program to the command that starts it once per rank: pure builders of argv.

A family is one module with one `launch` function, imported by the name that stands below.
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
"""Each has `launch`, and all but msmpi `direct`: what srun starts, without the number of ranks."""

NEVER_RUN = frozenset({"msmpi"})
"""The families whose launcher is written from documentation alone."""


def port_of(scratch: str) -> int:
    """Return the port of a launch: below those that kernels give away, drawn by its directory."""
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

    `mpi` of None is a program that needs no launcher: then one process, whatever `ranks` says.
    `scratch` is the launch's own directory; the launcher's state goes there, or where the host
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
