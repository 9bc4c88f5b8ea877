"""How much each network of a node carried during a launch, by the counters of the kernel.

carried(before, after) of two readings returns bytes: {"eth0": 1200, "mlx5_0:1": 81920}.
"""

from __future__ import annotations

from collections.abc import Mapping

from paribus.probes.archive import Archive
from paribus.probes.values import number

_PORTS = "/sys/class/infiniband/*/ports/*/"
_WORD, _PACKET = 4, 64
_COUNTERS: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("counters", {"port_xmit_data": _WORD, "port_rcv_data": _WORD}),
    ("hw_counters", {"tx_bytes": 1, "rx_bytes": 1}),
    ("hw_counters", {"sent_pkts": _PACKET, "rcvd_pkts": _PACKET}),
)
"""Directories with two counters each, and the bytes that one step of a counter stands for.

Of a port the first pair counts that it has: words of 4 bytes of InfiniBand (specification, PMA),
bytes of an EFA, packets of Soft-RoCE (drivers/infiniband/sw/rxe/rxe_hw_counters.c), each at least
a frame of Ethernet.
"""

_STUCK = (1 << 32) - 1
"""Where a full counter of 32 bits stays: those of InfiniBand do not start anew at 0."""


def networks(archive: Archive) -> dict[str, int]:
    """Return the bytes that each network has carried so far, in and out together.

    RDMA ports are named DEVICE:PORT, interfaces by their names; "lo" is left out. A port whose
    adapter does not count, or whose counter is full, has no entry.
    """
    return {**_interfaces(archive), **_ports(archive)}


def carried(before: Archive, after: Archive) -> dict[str, int]:
    """Return how many bytes each network carried from `before` to `after`.

    Networks whose counters are gone or went back are left out.
    """
    then, now = networks(before), networks(after)
    return {name: now[name] - then[name] for name in then if now.get(name, -1) >= then[name]}


def _interfaces(archive: Archive) -> dict[str, int]:
    """Return the bytes of each interface: received and sent, cells 1 and 9 of /proc/net/dev."""
    found = {}
    for line in archive.text("/proc/net/dev").split("\n"):
        name, colon, rest = line.partition(":")
        cells = rest.split()
        if colon and len(cells) >= 16 and name.strip() != "lo":
            received, sent = number(cells[0]), number(cells[8])
            if isinstance(received, int) and isinstance(sent, int):
                found[name.strip()] = received + sent
    return found


def _ports(archive: Archive) -> dict[str, int]:
    """Return the bytes of each RDMA port by the first of _COUNTERS of which it has both."""
    found: dict[str, int] = {}
    for group, units in _COUNTERS:
        counts: dict[str, list[int]] = {}
        for device, port, name in archive.matches(f"{_PORTS}{group}/*"):
            path = f"/sys/class/infiniband/{device}/ports/{port}/{group}/{name}"
            value = number(archive.read(path)) if name in units else None
            if isinstance(value, int) and value != _STUCK:
                counts.setdefault(f"{device}:{port}", []).append(value * units[name])
        for port, both in counts.items():
            if len(both) == len(units):
                found.setdefault(port, sum(both))
    return found
