"""MS-MPI: its mpiexec's argv, for hosts with Windows.

Never run on the real thing: written from its documentation.
Options: the page `mpiexec` of Microsoft HPC Pack 2012's command reference (cc947675). Variables:
its page "Environment Variables for the mpiexec Command" (gg243459).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from paribus.core import Command, Mpi, Placement, Transport, UserError

_TRANSPORTS: Mapping[Transport, Mapping[str, str]] = {
    "auto": {},
    "shm": {"MSMPI_DISABLE_ND": "1", "MSMPI_DISABLE_SOCK": "1"},
    "tcp": {"MSMPI_DISABLE_ND": "1", "MSMPI_DISABLE_SHM": "1"},
}


def launch(
    program: Command, ranks: int, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return the mpiexec command line; see launchers.launch. Its services start remote ranks.

    Raises UserError for ranks in turn, and for a network that is no range of IPv4 addresses.
    """
    env = {**mpi.env, **_TRANSPORTS[transport], **program.env}
    if placement.network:
        env.setdefault("MPICH_NETMASK", _netmask(placement.network))
    argv = [mpi.mpirun]
    if placement.in_turn:
        raise UserError(
            "MS-MPI fills one host after the other", place="order", fix='write order = "slot"'
        )
    if placement.hosts:
        argv += ["-hosts", str(len(placement.hosts))]
        argv += [word for host, count in placement.hosts for word in (host, str(count))]
    else:
        argv += ["-n", str(ranks)]
    for name, value in env.items():
        argv += ["-env", name, value]
    return Command((*argv, *program.argv), env, program.files)


def _netmask(network: str) -> str:
    try:
        return ipaddress.IPv4Network(network, strict=False).with_netmask
    except ValueError:
        raise UserError(
            "MS-MPI takes a range of IPv4 addresses",
            place=f"network {network}",
            fix="write the range of the network, such as 10.1.0.0/16",
        ) from None
