"""An address range or an interface name, for MPIs that only understand interface names."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Sequence
from dataclasses import replace

from paribus.core import Command, UserError

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
    """Return `command` with each of `variables` naming the interface that `network` means.

    An interface name is taken as it is. An address range is looked up where the command executes,
    for interfaces of containers and nodes are named differently. Raises UserError for IPv6.
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
