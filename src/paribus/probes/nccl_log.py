"""What NCCL and RCCL did in a launch, from the lines that NCCL_DEBUG=INFO prints beside the output.

A line "n1:71:71 [0] NCCL INFO Using network IB" gives {"nccl.network": ["IB"]}. NCCL documents none
of its lines: the patterns follow its source (init.cc, transport/net.cc, transport/p2p.cc,
enqueue.cc of 2.8 to 2.27) and logs that others published (tests/fixtures/nccl_log/README). What a
version does not print makes no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# "HOST:PID:THREAD [DEVICE] NCCL INFO TEXT"
_LINE = re.compile(r"([^\s\[\]:]+):\d+:\d+ \[\d+\] NCCL INFO (.*)")
# "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
_WAY = re.compile(r"(?:Channel|Ring) \d+(?:/\d+)? : .* via (NET/[^/]+/\S+|\S+)")
_DEVICE = re.compile(r"(\d+)(\(\d+\))?")  # in brackets the rank that sends in its place: PXN
# "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB"
_NICS = re.compile(r"NET/\S+ : Using (\[0\].*)")
_NIC = re.compile(r"\[(\d+)\]([^\s:]+)")
# "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"
_CHOSEN = re.compile(
    r"(?:(\w+): +)?(\d+) Bytes -> Algo +(\w+) +proto +(\w+)"
    r"(?: .*channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?"
)
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")
"""In the order of NCCL's numbers (nccl_common.h), which versions before 2.24 print."""


def nccl_facts(text: str) -> dict[str, Any]:
    """Return the facts under `nccl.` that a log shows; {} where there are no lines of NCCL's.

    Each is a sorted list. `nccl.network`: what it uses between nodes; `nccl.transports`: what
    carried the channels, without numbers of devices; `nccl.nics`: the adapters that did, as their
    hosts name them; `nccl.channels`: how many; `nccl.choices`: algorithm, protocol and channels of
    each collective by size, such as "AllReduce from 1024 B: RING LL, 4 channels".
    """
    if "NCCL INFO" not in text:
        return {}
    networks, ways, channels = set(), set(), set()
    used: set[tuple[str, str]] = set()  # host and number of the adapter
    names: dict[tuple[str, str], str] = {}  # of adapters, by the same
    chosen: dict[str, dict[int, str]] = {}  # by collective and bytes
    for host, message in _LINE.findall(text):
        if message.startswith("Using network "):
            networks.add(message.removeprefix("Using network ").strip())
        elif found := _WAY.match(message):
            way = found[1].split("/")
            if way[0] == "NET" and (device := _DEVICE.fullmatch("".join(way[2:3]))):
                used.add((host, device[1]))
                way[2:3] = ["PXN"] if device[2] else []
            ways.add("/".join(way[:2] if way[1:2] == ["indirect"] else way))
        elif found := _NICS.match(message):
            names.update({(host, number): name for number, name in _NIC.findall(found[1])})
        elif found := re.match(r"(\d+) coll channels", message):
            channels.add(int(found[1]))
        elif found := _CHOSEN.match(message):
            by_size = chosen.setdefault(found[1] or "", {})
            by_size[int(found[2])] = _choice(*found.group(3, 4, 5, 6))
    nics = {names.get(adapter, f"device {adapter[1]}") for adapter in used}
    facts: dict[str, Any] = {
        "nccl.network": sorted(networks),
        "nccl.transports": sorted(ways),
        "nccl.nics": sorted(nics),
        "nccl.channels": sorted(channels),
        "nccl.choices": [line for what in sorted(chosen) for line in _ranges(what, chosen[what])],
    }
    return {key: value for key, value in facts.items() if value}


def _choice(algorithm: str, protocol: str, first: str | None, last: str | None) -> str:
    """Return "RING LL, 4 channels" of algorithm, protocol, and first and last channel."""
    channels = f", {int(last) - int(first) + 1} channels" if first and last else ""
    return f"{_named(algorithm, _ALGORITHMS)} {_named(protocol, _PROTOCOLS)}{channels}"


def _named(word: str, names: tuple[str, ...]) -> str:
    """Return the name that `word` is, or the one of `names` whose number it is."""
    is_number = word.isdecimal() and int(word) < len(names)
    return names[int(word)] if is_number else word.upper()


def _ranges(collective: str, by_size: dict[int, str]) -> Iterable[str]:
    """Yield "AllReduce from 1024 B: RING LL" for each size whose choice is not the one before."""
    before = ""
    for size in sorted(by_size):
        if by_size[size] != before:
            before = by_size[size]
            yield f"{collective} from {size} B: {before}".strip()
