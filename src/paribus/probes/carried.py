"""How much each network of a node carried during a launch, by the counters of the kernel."""

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
"""Pairs of counters and the bytes that one step is, the first that a port has counts.

Data in words of 4 bytes (InfiniBand specification, PMA); bytes of an EFA; packets of Soft-RoCE
(drivers/infiniband/sw/rxe/rxe_hw_counters.c), each at least a frame of Ethernet.
"""

_STUCK = (1 << 32) - 1
"""Where a counter of 32 bits stays: InfiniBand's do not start anew."""


def networks(archive: Archive) -> dict[str, int]:
    """Return the bytes that each network has carried so far, in and out together.

    By DEVICE:PORT for RDMA ports, by name for interfaces without "lo". A port whose adapter does
    not count, or no longer does, has no entry.
    """
    return {**_interfaces(archive), **_ports(archive)}


def carried(before: Archive, after: Archive) -> dict[str, int]:
    """Return how many bytes each network carried from `before` to `after`."""
    then, now = networks(before), networks(after)
    return {name: now[name] - then[name] for name in then if now.get(name, -1) >= then[name]}


def _interfaces(archive: Archive) -> dict[str, int]:
    found = {}
    for line in archive.text("/proc/net/dev").split("\n"):
        name, colon, rest = line.partition(":")
        cells = rest.split()
        if colon and len(cells) >= 16 and name.strip() != "lo":
            counts = [number(cells[0]), number(cells[8])]
            known = [one for one in counts if isinstance(one, int)]
            if len(known) == len(counts):
                found[name.strip()] = sum(known)
    return found


def _ports(archive: Archive) -> dict[str, int]:
    found: dict[str, int] = {}
    for group, units in _COUNTERS:
        sums: dict[str, list[int]] = {}
        for device, port, name in archive.matches(f"{_PORTS}{group}/*"):
            path = f"/sys/class/infiniband/{device}/ports/{port}/{group}/{name}"
            value = number(archive.read(path)) if name in units else None
            if isinstance(value, int) and value != _STUCK:
                sums.setdefault(f"{device}:{port}", []).append(value * units[name])
        for port, both in sums.items():
            if len(both) == len(units):
                found.setdefault(port, sum(both))
    return found
