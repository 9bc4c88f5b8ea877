"""MPICH: hydra's argv, and what makes the library take one transport.

With TCP asked for, ranks on one machine must be kept from shared memory twice: MPICH's own
(NOLOCAL) and, where the network layer is UCX, that of UCX. With NOLOCAL alone the 8-byte latency
of MPICH 5.0.2 and 4.0.2 is that of shared memory and the loopback counters stand still. UCX
refuses the loopback interface; libfabric takes it, so it is preferred where a build has both.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus.core import Command, Mpi, Placement, Transport, UserError

_TRANSPORTS: Mapping[Transport, Mapping[str, str]] = {
    "auto": {},
    "shm": {"MPIR_CVAR_NOLOCAL": "0", "UCX_TLS": "sm,self"},
    "tcp": {
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "UCX_TLS": "tcp,self",
    },
}


def launch(
    program: Command, ranks: int, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return the mpiexec command line; see launchers.launch.

    Hydra keeps no state in files. The library removes its segment, /dev/shm/mpich_shm_*, itself;
    a launch that is killed leaves one of 1 MB behind, and MPICH has no setting to put it elsewhere.
    """
    env = {**mpi.env, **_TRANSPORTS[transport], **program.env}
    if transport == "tcp" and not (placement.hosts or placement.network):
        env = {"FI_TCP_IFACE": "lo", **env}
    command = Command(program.argv, env, program.files)
    return hydra(command, _interfaces(placement), ranks, mpi, placement)


def direct(
    program: Command, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return `program` with the variables that its library needs where srun starts it."""
    env = {**mpi.env, **_TRANSPORTS[transport], **program.env}
    return on_its_network(replace(program, env=env), _interfaces(placement), placement)


def on_its_network(program: Command, variables: tuple[str, ...], placement: Placement) -> Command:
    """Return `program` with `variables`, unless they are set, naming the interface to use."""
    if placement.network is None:
        return program
    # An RDMA device that the arm or the user names is no interface of that network.
    variables = tuple(name for name in variables if name not in program.env)
    return on_network(program, placement.network, variables)


def _interfaces(placement: Placement) -> tuple[str, ...]:
    return ("FI_TCP_IFACE",) if placement.network == "lo" else ("FI_TCP_IFACE", "UCX_NET_DEVICES")


def hydra(
    program: Command, variables: tuple[str, ...], ranks: int, mpi: Mpi, placement: Placement
) -> Command:
    """Return the command of a hydra mpiexec; `variables` name the interface that ranks use."""
    argv = [mpi.mpirun, "-n", str(ranks), "-bind-to", "none"]
    if placement.in_turn:
        argv += ["-hosts", ",".join(_in_turn(placement)), "-ppn", "1"]
    elif placement.hosts:
        if len(counts := {count for _, count in placement.hosts}) == 1:
            # Not c1:2: Intel MPI takes that for the name where there is one host alone.
            names = ",".join(name for name, _ in placement.hosts)
            argv += ["-hosts", names, "-ppn", str(counts.pop())]
        else:
            argv += ["-hosts", ",".join(f"{name}:{count}" for name, count in placement.hosts)]
    else:
        # Without it, Intel MPI takes each rank for a host of its own and refuses shared memory.
        argv += ["-ppn", str(ranks)]
    if placement.agent:
        # As rsh: the ssh launcher puts an option of ssh before the host name.
        argv += ["-launcher", "rsh", "-launcher-exec", placement.agent]
    if placement.network is None:
        return Command((*argv, *program.argv), program.env, program.files)
    inner = on_its_network(program, variables, placement)
    whole = Command((*argv, *inner.argv), inner.env, inner.files)
    return on_network(whole, placement.network, ("HYDRA_IFACE",))


def _in_turn(placement: Placement) -> tuple[str, ...]:
    """Return the nodes in the order in which hydra deals out ranks, one by one.

    Raises UserError if in some round a node would have to be left out.
    """
    names = tuple(name for name, _ in placement.hosts)
    rounds = [slot.node for slot in placement.slots]
    if rounds != [names[at % len(names)] for at in range(len(rounds))]:
        raise UserError(
            "MPICH and Intel MPI number ranks over hosts in turn only where all take as many",
            place='order = "host"',
            fix='give all hosts as many slots, or use order = "slot"',
        )
    return names


# /proc/net/route holds addresses as the machine's own 32-bit words in hexadecimal: masking one
# word with another needs no knowledge of the byte order. A zero gateway is an attached network.
_SCRIPT = """\
net=$1 mask=$2 text=$3 names=$4
shift 4
while read -r iface dest gateway _ _ _ _ width _; do
  case $dest in *[!0-9A-F]*) continue ;; esac
  [ "$gateway" = 00000000 ] && [ "$((0x$width & mask))" -eq "$mask" ] || continue
  [ "$((0x$dest & mask))" -eq "$net" ] || continue
  for name in $names; do export "$name=$iface"; done
  # shellcheck disable=SC2093 # the first that fits
  exec "$@"
done </proc/net/route
echo "paribus-network: $(uname -n) has no interface in $text" >&2
exit 2
"""


def on_network(command: Command, network: str, variables: Sequence[str]) -> Command:
    """Return `command` with each of `variables` set to the interface that `network` means.

    An interface name is taken as it is. The interface of an address range is looked up where the
    command executes, as containers and nodes name theirs differently. Raises UserError for IPv6.
    """
    try:
        parsed = ipaddress.ip_network(network, strict=False)
    except ValueError:
        return replace(command, env={**command.env, **dict.fromkeys(variables, network)})
    if isinstance(parsed, ipaddress.IPv6Network):
        raise UserError(
            "MPICH and Intel MPI take a range of IPv4 addresses or an interface name",
            place=network,
            fix="give the interface's name or its IPv4 range",
        )
    if parsed.is_loopback:
        return replace(command, env={**command.env, **dict.fromkeys(variables, "lo")})
    words = (str(_word(parsed.network_address)), str(_word(parsed.netmask)))
    wrap = ("/bin/sh", "-c", _SCRIPT, "paribus-network", *words, network, " ".join(variables))
    return replace(command, argv=(*wrap, *command.argv))


def _word(address: ipaddress.IPv4Address) -> int:
    return int.from_bytes(address.packed, sys.byteorder)
