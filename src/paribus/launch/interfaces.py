"""Whether every host of an arm has the network that the study names for it.

Open MPI leaves out an address range that a host does not have, with exit code 0: what is measured
then is another network.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from paribus.core import Arm, UserError
from paribus.launch.machine import of_each
from paribus.words.lists import listed

if TYPE_CHECKING:
    from paribus.hosts.host_machine import HostMachine

# Only /proc and sed, which every node has. A router has a million routes, and few addresses.
_SCRIPT = r"""
sed 's/^/dev /' /proc/net/dev
sed -n '1p;/\t00000000\t/p' /proc/net/route | sed 's/^/route /'
sed -n 's/^/trie /;/|-- /h;/host LOCAL/{x;p;x;p;}' /proc/net/fib_trie
sed 's/^/inet6 /' /proc/net/if_inet6
"""

MOST_NAMED = 4
"""Interfaces, and hosts, that an error names."""

Interfaces = Mapping[str, Sequence[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
"""Addresses by the name of their interface."""


def check_network(arm: Arm, path: str, machines: Sequence[HostMachine]) -> None:
    """Raise UserError where a host of `arm`, a study's in `path`, lacks the network that it names.

    Containers that are bridged between hosts have a network of their own.
    """
    bridged = arm.container and arm.container.each == "host" and arm.container.network == "bridge"
    if not (arm.hosts and arm.hosts.network) or bridged:
        return
    wanted = arm.hosts.network
    found = of_each(machines, _interfaces)
    lacking = [
        (machine.host.name, there)
        for machine, there in zip(machines, found, strict=True)
        if there and not _has(there, wanted)
    ]
    if not lacking:
        return
    shown = []
    for one, own in lacking[0][1].items():
        known = [str(a) for a in own if not (a.is_loopback or a.is_link_local)]
        shown += [f"{one} ({', '.join(known)})" if known else one] * bool(one or known)
    names = listed([name for name, _ in lacking], MOST_NAMED, last=" and ")
    has = "has" if len(lacking) == 1 else "have"
    raise UserError(
        f"{names} {has} no network {wanted}; {lacking[0][0]} has {listed(shown, MOST_NAMED)}",
        place=f"{path}: arms.{arm.name}.network",
        fix="name an address range or an interface that every host of the arm has",
    )


def _has(there: Interfaces, wanted: str) -> bool:
    """Return whether a host has one of the interfaces or ranges `wanted`, commas between them."""
    for one in wanted.split(","):
        try:
            network = ipaddress.ip_network(one.strip(), strict=False)
        except ValueError:
            if one.strip() in there:
                return True
            continue
        if any(address.ip in network for own in there.values() for address in own):
            return True
    return False


def _interfaces(machine: HostMachine) -> Interfaces:
    """Return the interfaces of a host with their addresses, none where it does not say.

    Addresses of no known interface, as the loopback's, are under "".
    """
    said: dict[str, list[str]] = {"dev": [], "route": [], "trie": [], "inet6": []}
    for line in machine.capture(("/bin/sh", "-c", _SCRIPT)).stdout.splitlines():
        key, _, rest = line.partition(" ")
        if key in said:
            said[key].append(rest)
    if not said["trie"]:
        return {}
    names = (re.match(r"\s*(\S+):", line) for line in said["dev"])
    found: dict[str, list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
    found = {name[1]: [] for name in names if name}
    for name, address in addresses(said["route"], said["trie"]):
        found.setdefault(name, []).append(address)
    for line in said["inet6"]:
        words = line.split()
        if len(words) == 6 and re.fullmatch("[0-9a-f]{32}", words[0]):
            six = f"{ipaddress.IPv6Address(int(words[0], 16))}/{int(words[2], 16)}"
            found.setdefault(words[5], []).append(ipaddress.IPv6Interface(six))
    return found


def addresses(
    routes: Sequence[str], trie: Sequence[str]
) -> list[tuple[str, ipaddress.IPv4Interface]]:
    """Return interfaces and their addresses, of the lines of /proc/net/route and fib_trie.

    The interface is "" where no route says which one has the address.
    """
    networks = []
    for line in routes[1:]:
        words = line.split()
        try:
            # Little-endian hexadecimal, as the kernels of x86-64, AArch64 and POWER print it.
            start, mask = (ipaddress.IPv4Address(bytes.fromhex(words[i])[::-1]) for i in (1, 7))
            if words[2] == "00000000":  # not through a gateway
                networks.append((words[0], ipaddress.IPv4Network(f"{start}/{mask}", strict=False)))
        except (ValueError, IndexError):
            continue
    local = (
        ipaddress.IPv4Address(match[1])
        for before, line in pairwise(trie)
        if line.endswith("host LOCAL") and (match := re.search(r"\|-- ([0-9.]+)$", before))
    )
    found = []
    for own in dict.fromkeys(local):
        its = [(name, network.prefixlen) for name, network in networks if own in network]
        found += [(name, ipaddress.IPv4Interface(f"{own}/{n}")) for name, n in its or [("", 32)]]
    return found
