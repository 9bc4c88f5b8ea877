"""Keys for devices that stay the same when devices are renamed, renumbered or found in any order.

A device is known by what it is (kind, hardware, settings), never by its name or address: those of
one role are sorted by that and counted. Hardware sorts before settings, so that a setting that
differs between two machines does not change which of their devices are set against each other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paribus.probes.archive import Archive, Unknown, fact


@dataclass(frozen=True, slots=True)
class Device:
    """One device, with its facts by property, in four parts.

    Devices of one role are in the order of rank, hardware, settings and identity.
    """

    role: str  # such as "net.ethernet"
    hardware: Mapping[str, Any]
    settings: Mapping[str, Any]
    identity: Mapping[str, Any]  # its name or address: only orders devices that are else equal
    volatile: Mapping[str, Any] = field(default_factory=dict)  # counters, temperatures: no order
    rank: tuple[int, ...] = field(default=())  # low comes first


def numbered(devices: Iterable[Device]) -> dict[str, Any]:
    """Return the facts of `devices` under ROLE.N.PROPERTY, and their numbers under ROLE.count.

    Two network cards give net.ethernet.0.mtu, net.ethernet.1.mtu and net.ethernet.count, 2.
    """
    facts: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for device in sorted(devices, key=_order):
        number = counts.get(device.role, 0)
        counts[device.role] = number + 1
        for part in (device.hardware, device.settings, device.identity, device.volatile):
            facts |= {f"{device.role}.{number}.{key}": value for key, value in part.items()}
    return facts | {f"{role}.count": count for role, count in counts.items()}


def _order(device: Device) -> tuple[object, ...]:
    return (
        device.role,
        device.rank,
        *(
            json.dumps({k: fact(v) for k, v in part.items()}, sort_keys=True)
            for part in (device.hardware, device.settings, device.identity)
        ),
    )


def positive(value: Any) -> int:
    """Return `value` as a rank that sorts the greatest first; 0 for what is no number."""
    return -int(value) if isinstance(value, int | float) and not isinstance(value, Unknown) else 0


BALANCED = "irqbalance"
"""The fact irq_cpus where the daemon of this name moves interrupts between processors."""


def irq_facts(archive: Archive, address: str) -> dict[str, Any]:
    """Return {"irq_cpus": where the interrupts of the PCI device at `address` may go}.

    ["0", "4 x 0-7"] is one that may go to processor 0 and four that may go to 0 to 7, whatever the
    interrupts' numbers and order are. {} where they were not asked for.
    """
    for line in archive.lists.get("interrupts", ()):
        at, *numbers = line.split(" ")
        if at != address:
            continue
        if balanced(archive):
            return {"irq_cpus": BALANCED}
        if "cut" in numbers:
            return {"irq_cpus": Unknown.CUT}
        texts = [archive.read(f"/proc/irq/{number}/smp_affinity_list") for number in numbers]
        counts: Counter[str] = Counter()
        for text in texts:
            if isinstance(text, Unknown):
                return {"irq_cpus": text}
            counts[text] += 1
        found = [
            f"{n} x {cpus}" if n > 1 else cpus for cpus, n in sorted(counts.items(), key=_by_length)
        ]
        return {"irq_cpus": found or Unknown.ABSENT}
    return {}


def _by_length(counted: tuple[str, int]) -> tuple[int, str]:
    return len(counted[0]), counted[0]


def balanced(archive: Archive) -> bool:
    """Return whether irqbalance runs, by its directory in /run or the list of processes."""
    reported = archive.lists.get("consumers", ())
    return "/run/irqbalance" in archive.lists.get("present", ()) or "daemon irqbalance" in reported
