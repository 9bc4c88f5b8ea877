"""Which address each node has, and which network MPI should take."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from paribus.cluster.answers import Answer
from paribus.cluster.findings import Finding
from paribus.launch.interfaces import addresses

_VIRTUAL = re.compile(r"docker|virbr|br-|cni|flannel|lxc|podman|veth")
"""Interfaces that programs make on each node alike, and that lead to no other node."""


@dataclass(frozen=True, slots=True)
class Interface:
    """An IPv4 address of a node: its interface, and the speed in Mbit/s (-1: not known)."""

    name: str
    address: ipaddress.IPv4Interface
    mtu: int = 0
    speed: int = -1


def interfaces(answer: Answer) -> tuple[Interface, ...]:
    """Return the IPv4 addresses of a node but those that only it can use."""
    said = {words[0]: words for words in (one.split() for one in answer.all("interface")) if words}
    found = []
    for name, text in _addresses(answer):
        try:
            address = ipaddress.IPv4Interface(text)
        except ValueError:
            continue
        if not address.is_loopback and not address.is_link_local:
            words = said.get(name, [])
            mtu, speed = (_number(words, 1), _number(words, 3)) if words else (0, -1)
            found.append(Interface(name, address, mtu, speed))
    return tuple(found)


def _number(words: Sequence[str], place: int) -> int:
    try:
        return int(words[place])
    except (IndexError, ValueError):
        return -1


def _addresses(answer: Answer) -> Iterator[tuple[str, str]]:
    """Yield (interface, address/length): from `ip`, or from /proc/net where there is none."""
    for line in answer.all("address"):
        if match := re.match(r"(\S+)\s+inet (\S+)", line):
            yield match[1].partition("@")[0], match[2]
    for name, address in addresses(answer.all("route"), answer.all("trie")):
        yield name, str(address)


def choose(
    answers: Sequence[Answer], wanted: str
) -> tuple[str, dict[str, Interface], list[Finding]]:
    """Return the network (CIDR) that MPI should take, each node's interface in it, and findings.

    `wanted` is a CIDR or an interface's name, "" for the one network that all nodes share.
    """
    have = {one.name: interfaces(one) for one in answers}
    if wanted:
        return _wanted(have, wanted)
    shared = _shared(have)
    if not shared:
        said = "; ".join(
            f"{name}: {', '.join(str(i.address) for i in own) or 'no address'}"
            for name, own in list(have.items())[:4]
        )
        cause = f"no network has an address of every node ({said})"
        fix = "name the network that connects them: --network 10.0.0.0/8"
        return "", {}, [Finding("network", "broken", cause, fix=fix)]
    (network, chosen), *others = shared
    findings = [Finding("network", "ok", f"{network}{_speed(chosen)}")]
    if others:
        names = ", ".join(f"{cidr}{_speed(own)}" for cidr, own in others)
        cause = f"the nodes share several networks: {network}{_speed(chosen)}, {names}; {network}"
        findings = [
            Finding(
                "network",
                "warning",
                f"{cause} was taken",
                fix=f'name the one that MPI is to take: --network {network}, and network = "..."'
                " in the arm",
            )
        ]
    return network, chosen, findings + _differing(chosen)


def _speed(chosen: Mapping[str, Interface]) -> str:
    speed = min(one.speed for one in chosen.values())
    return f" ({speed} Mbit/s)" if speed > 0 else ""


def _shared(have: Mapping[str, Sequence[Interface]]) -> list[tuple[str, dict[str, Interface]]]:
    """Return the networks in which each node has an address of its own, the fastest first."""
    found: dict[str, dict[str, Interface]] = {}
    for name, own in have.items():
        for one in own:
            if not _VIRTUAL.match(one.name):
                found.setdefault(str(one.address.network), {}).setdefault(name, one)
    whole = [
        (network, nodes)
        for network, nodes in found.items()
        if len(nodes) == len(have)
        and (len(have) == 1 or len({one.address.ip for one in nodes.values()}) > 1)
    ]
    return sorted(whole, key=lambda one: -min(i.speed for i in one[1].values()))


def _wanted(
    have: Mapping[str, Sequence[Interface]], wanted: str
) -> tuple[str, dict[str, Interface], list[Finding]]:
    chosen: dict[str, Interface] = {}
    try:
        network = ipaddress.IPv4Network(wanted, strict=False)
    except ValueError:
        network = None
    for name, own in have.items():
        for one in own:
            if one.name == wanted or (network and one.address.ip in network):
                chosen.setdefault(name, one)
    if without := tuple(name for name in have if name not in chosen):
        others = ", ".join(str(one.address) for one in have[without[0]]) or "none"
        cause = f"no address in {wanted}; {without[0]} has {others}"
        fix = "name a network or an interface that every node has"
        return wanted, {}, [Finding("network", "broken", cause, without, fix)]
    named = str(network or next(iter(chosen.values())).address.network)
    found = Finding("network", "ok", f"{named}{_speed(chosen)}")
    return named, chosen, [found, *_differing(chosen)]


def _differing(chosen: Mapping[str, Interface]) -> list[Finding]:
    """Return a warning where nodes send frames of different sizes."""
    sizes: dict[int, list[str]] = {}
    for name, one in chosen.items():
        sizes.setdefault(one.mtu, []).append(name)
    if len(sizes) < 2:
        return []
    few = min(sizes, key=lambda mtu: len(sizes[mtu]))
    cause = f"frames of {few} B where others have {max(sizes, key=lambda m: len(sizes[m]))} B (MTU)"
    fix = "set one size on all: ip link set dev NAME mtu 9000, as the switches permit"
    return [Finding("network", "warning", cause, tuple(sizes[few]), fix)]
