"""What NCCL and RCCL did in a launch, from the lines that NCCL_DEBUG=INFO prints beside the output.

Written after NCCL's source (init.cc, transport/net.cc, transport/p2p.cc, enqueue.cc of 2.8 to 2.27)
and logs that others published (tests/fixtures/nccl_log/README). What a version does not print
makes no fact; NCCL documents none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_LINE = re.compile(r"([^\s\[\]:]+):\d+:\d+ \[\d+\] NCCL INFO (.*)")
_WAY = re.compile(r"(?:Channel|Ring) \d+(?:/\d+)? : .* via (NET/[^/]+/\S+|\S+)")
_DEVICE = re.compile(r"(\d+)(\(\d+\))?")  # in brackets the rank that sends in its place: PXN
_NICS = re.compile(r"NET/\S+ : Using (\[0\].*)")
_NIC = re.compile(r"\[(\d+)\]([^\s:]+)")
_CHOSEN = re.compile(
    r"(?:(\w+): +)?(\d+) Bytes -> Algo +(\w+) +proto +(\w+)"
    r"(?: .*channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?"
)
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
"""In the order of NCCL's numbers (nccl_common.h), which versions before 2.24 print."""


def nccl_facts(text: str) -> dict[str, Any]:
    """Return the facts under `nccl.` that a log shows; {} where there are no lines of NCCL's.

    `nccl.network` is what it uses between nodes, `nccl.transports` what carried the channels
    (without numbers of devices), `nccl.nics` which adapters did, as HOST has them, `nccl.channels`
    how many, and `nccl.choices` algorithm, protocol and channels by sizes of each collective.
    """
    if "NCCL INFO" not in text:
        return {}
    networks, ways, channels = set(), set(), set()
    used: set[tuple[str, str]] = set()
    names: dict[tuple[str, str], str] = {}
    chosen: dict[str, dict[int, str]] = {}
    for host, said in _LINE.findall(text):
        if said.startswith("Using network "):
            networks.add(said.removeprefix("Using network ").strip())
        elif found := _WAY.match(said):
            way = found[1].split("/")
            if way[0] == "NET" and (device := _DEVICE.fullmatch("".join(way[2:3]))):
                used.add((host, device[1]))
                way[2:3] = ["PXN"] if device[2] else []
            ways.add("/".join(way[:2] if way[1:2] == ["indirect"] else way))
        elif found := _NICS.match(said):
            names.update({(host, number): name for number, name in _NIC.findall(found[1])})
        elif found := re.match(r"(\d+) coll channels", said):
            channels.add(int(found[1]))
        elif found := _CHOSEN.match(said):
            of = chosen.setdefault(found[1] or "", {})
            of[int(found[2])] = _choice(*found.group(3, 4, 5, 6))
    nics = {names.get(one, f"device {one[1]}") for one in used}
    facts: dict[str, Any] = {
        "nccl.network": sorted(networks),
        "nccl.transports": sorted(ways),
        "nccl.nics": sorted(nics),
        "nccl.channels": sorted(channels),
        "nccl.choices": [line for what in sorted(chosen) for line in _ranges(what, chosen[what])],
    }
    return {key: value for key, value in facts.items() if value}


def _choice(algorithm: str, protocol: str, first: str | None, last: str | None) -> str:
    channels = f", {int(last) - int(first) + 1} channels" if first and last else ""
    return f"{_named(algorithm, _ALGORITHMS)} {_named(protocol, _PROTOCOLS)}{channels}"


def _named(said: str, names: tuple[str, ...]) -> str:
    known = said.isdecimal() and int(said) < len(names)
    return names[int(said)] if known else said.upper()


def _ranges(what: str, by_size: dict[int, str]) -> Iterable[str]:
    """Yield what was chosen from which size on, where it is another than for the size before."""
    before = ""
    for size in sorted(by_size):
        if by_size[size] != before:
            before = by_size[size]
            yield f"{what} from {size} B: {before}".strip()
