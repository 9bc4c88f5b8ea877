"""Intel MPI: its hydra's argv, and what makes the library take one transport."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paribus.core import Command, Mpi, Placement, Transport
from paribus.launch.launchers.mpich import hydra, on_its_network

_TRANSPORTS: Mapping[Transport, Mapping[str, str]] = {
    "auto": {},
    "shm": {"I_MPI_FABRICS": "shm"},
    "tcp": {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "I_MPI_OFI_PROVIDER": "tcp"},
}

# Binding is Paribus' own (serial.py).
_UNPINNED = {"I_MPI_PIN": "0"}


def launch(
    program: Command, ranks: int, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return the mpiexec command line; see launchers.launch."""
    env = {**mpi.env, **_UNPINNED, **_TRANSPORTS[transport], **program.env}
    command = Command(program.argv, env, program.files)
    return hydra(command, ("FI_TCP_IFACE",), ranks, mpi, placement)


def direct(
    program: Command, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return `program` with the variables that its library needs where srun starts it."""
    env = {**mpi.env, **_UNPINNED, **_TRANSPORTS[transport], **program.env}
    return on_its_network(replace(program, env=env), ("FI_TCP_IFACE",), placement)
