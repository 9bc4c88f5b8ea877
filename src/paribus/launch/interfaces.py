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

# Prints lines of files in /proc, each with a mark before it: only sed is needed, which every node
# has. Routes through gateways are left out, as a router has a million of them.
_SCRIPT = r"""
sed 's/^/dev /' /proc/net/dev
sed -n '1p;/\t00000000\t/p' /proc/net/route | sed 's/^/route /'
sed -n 's/^/trie /;/|-- /h;/host LOCAL/{x;p;x;p;}' /proc/net/fib_trie
sed 's/^/inet6 /' /proc/net/if_inet6
"""

MOST_NAMED = 4
"""The most interfaces, and hosts, that an error names."""

Interfaces = Mapping[str, Sequence[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
"""Addresses by the name of their interface."""


def check_network(arm: Arm, path: str, machines: Sequence[HostMachine]) -> None:
    """Raise UserError if a host of `arm` lacks the network that the arm names.

    `path` is the study file. Containers bridged between hosts have a network of their own, and are
    not checked.
    """
    bridged = arm.container and arm.container.each == "host" and arm.container.network == "bridge"
    if not (arm.hosts and arm.hosts.network) or bridged:
        return
    wanted = arm.hosts.network
    found = of_each(machines, _interfaces)
    lacking = [
        (machine.host.name, interfaces)
        for machine, interfaces in zip(machines, found, strict=True)
        if interfaces and not _has(interfaces, wanted)
    ]
    if not lacking:
        return
    shown = []
    for interface, its in lacking[0][1].items():
        known = [str(a) for a in its if not (a.is_loopback or a.is_link_local)]
        if interface or known:
            shown.append(f"{interface} ({', '.join(known)})" if known else interface)
    names = listed([name for name, _ in lacking], MOST_NAMED, last=" and ")
    has = "has" if len(lacking) == 1 else "have"
    raise UserError(
        f"{names} {has} no network {wanted}; {lacking[0][0]} has {listed(shown, MOST_NAMED)}",
        place=f"{path}: arms.{arm.name}.network",
        fix="name an address range or an interface that every host of the arm has",
    )


def _has(interfaces: Interfaces, wanted: str) -> bool:
    """Return whether a host has one of the interfaces or ranges `wanted`, commas between them."""
    for one in wanted.split(","):
        try:
            network = ipaddress.ip_network(one.strip(), strict=False)
        except ValueError:
            if one.strip() in interfaces:
                return True
            continue
        if any(address.ip in network for its in interfaces.values() for address in its):
            return True
    return False


def _interfaces(machine: HostMachine) -> Interfaces:
    """Return the interfaces of a host with their addresses, none if it shows no addresses.

    Addresses of no known interface, as the loopback's, are under "".
    """
    lines: dict[str, list[str]] = {"dev": [], "route": [], "trie": [], "inet6": []}
    for line in machine.capture(("/bin/sh", "-c", _SCRIPT)).stdout.splitlines():
        key, _, rest = line.partition(" ")
        if key in lines:
            lines[key].append(rest)
    if not lines["trie"]:
        return {}
    names = (re.match(r"\s*(\S+):", line) for line in lines["dev"])
    found: dict[str, list[ipaddress.IPv4Interface | ipaddress.IPv6Interface]]
    found = {name[1]: [] for name in names if name}
    for name, address in addresses(lines["route"], lines["trie"]):
        found.setdefault(name, []).append(address)
    for line in lines["inet6"]:
        words = line.split()
        if len(words) == 6 and re.fullmatch("[0-9a-f]{32}", words[0]):
            six = f"{ipaddress.IPv6Address(int(words[0], 16))}/{int(words[2], 16)}"
            found.setdefault(words[5], []).append(ipaddress.IPv6Interface(six))
    return found


def addresses(
    routes: Sequence[str], trie: Sequence[str]
) -> list[tuple[str, ipaddress.IPv4Interface]]:
    """Return pairs of interface and address from the lines of /proc/net/route and fib_trie.

    The interface is "" for an address without a route.
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
    for address in dict.fromkeys(local):
        its = [(name, network.prefixlen) for name, network in networks if address in network]
        for name, length in its or [("", 32)]:
            found.append((name, ipaddress.IPv4Interface(f"{address}/{length}")))
    return found
