"""Keys for devices that stay the same when devices are renamed, renumbered or found in any order.

A device is known by what it is (kind, hardware, settings), never by its name or address: those of
one role are sorted by that and counted. Hardware sorts before settings, so that a setting that
differs between two machines does not change which of their devices are set against each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paribus.probes.archive import Unknown, fact


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a role such as "net.ethernet". `rank` comes first in the order (low first).

    `hardware` and `settings` are facts; its name (`identity`) only sets equal devices apart, and
    what is `volatile` (counters, temperatures) has no say in the order.
    """

    role: str
    hardware: Mapping[str, Any]
    settings: Mapping[str, Any]
    identity: Mapping[str, Any]
    volatile: Mapping[str, Any] = field(default_factory=dict)
    rank: tuple[int, ...] = field(default=())


def numbered(devices: Iterable[Device]) -> dict[str, Any]:
    """Return the facts of `devices` under ROLE.N.PROPERTY, and how many there are as ROLE.count."""
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
    """Return `value` as a rank for "the greatest first", 0 for what is no number."""
    return -int(value) if isinstance(value, int | float) and not isinstance(value, Unknown) else 0
