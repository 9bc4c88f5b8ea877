"""How long launches held the nodes of each arm, and what that costs.

A launch of the wall time T in an arm of n nodes holds them for T n, whether all have ranks or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paribus.core import Arm, Judgement, parse_price

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class NodeHours:
    """The node-hours of launches in `arm`; `money` and `currency` are 0 and "" without a price."""

    arm: str
    nodes: int
    hours: float
    money: float = 0.0
    currency: str = ""


def node_hours(arms: Sequence[Arm], seconds: Mapping[str, float]) -> list[NodeHours]:
    """Return what launches of so many `seconds` by arm hold: of all arms, or of none.

    None where no arm has a price or hosts of its own: pocket hosts are this machine.
    """
    if not any(arm.price or (arm.hosts and not arm.hosts.pocket) for arm in arms):
        return []
    found = []
    for arm in arms:
        nodes = len(arm.hosts.addresses) if arm.hosts and not arm.hosts.pocket else 1
        hours = seconds.get(arm.name, 0.0) * nodes / HOUR_S
        price, currency = parse_price(arm.price) if arm.price else (0.0, "")
        found.append(NodeHours(arm.name, nodes, hours, hours * price, currency))
    return found


def used(judgement: Judgement) -> list[NodeHours]:
    """Return the node-hours of the stored launches, warm-up and failures included."""
    seconds: dict[str, float] = {}
    for tally in judgement.tallies:
        seconds[tally.arm] = seconds.get(tally.arm, 0.0) + tally.wall_s
    return node_hours(judgement.study.arms, seconds) if any(seconds.values()) else []
