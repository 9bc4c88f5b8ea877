"""The node-hours of the launches of each arm, and what they cost.

A launch of half an hour in an arm of 4 nodes takes 2 node-hours, whether all have ranks or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core import Arm, Judgement, count, format_value, parse_price

if TYPE_CHECKING:
    from paribus.launch.pilot import Pilot
    from paribus.plan import Plan

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class NodeHours:
    """The node-hours of launches in `arm`, on `nodes`, and their price, 0 and "" without one."""

    arm: str
    nodes: int
    hours: float
    money: float = 0.0
    currency: str = ""


def node_hours(arms: Sequence[Arm], seconds: Mapping[str, float]) -> list[NodeHours]:
    """Return the node-hours of launches that took so many `seconds`, by arm, for all arms.

    Return none where no arm has a price or hosts: pocket hosts are part of this machine.
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


def text(nodes: int, hours: Sequence[float], money: Sequence[float], currency: str) -> str:
    """Return node-hours, and money where there is a currency, as one value or least and most."""
    spent = f"{_span(hours)} node-hours ({count(nodes, 'node')})"
    return f"{spent}, {_span(money)} {currency}" if currency else spent


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(format_value, values)))


def held(plan: Plan, seen: Pilot) -> list[str]:
    """Return sentences on the node-hours that `plan` will take in each arm, least and most.

    `seen` is the pilot, whose launches took so many seconds by benchmark and arm.
    """
    arms = plan.study.arms
    once: dict[str, float] = {arm.name: 0.0 for arm in arms}
    for (_, arm), seconds in seen.seconds.items():
        if arm in once:
            once[arm] += seconds
    rounds = plan.design.rounds(plan.looks)
    several = [
        node_hours(arms, {arm: number * seconds for arm, seconds in once.items()})
        for number in rounds
    ]
    lines = []
    for ends in zip(*several, strict=True):
        first = ends[0]
        hours, money = [one.hours for one in ends], [one.money for one in ends]
        spent = text(first.nodes, hours, money, first.currency)
        lines.append(f"{first.arm}: {spent}, {plan.design.spent}")
    lent = {arm.hosts.scheduler for arm in arms if arm.hosts and arm.hosts.scheduler}
    if lent and plan.design.has_end:
        nodes = sum(one.nodes for one in lent)
        ends_s = [number * sum(once.values()) for number in rounds]
        whole = text(nodes, [nodes * s / HOUR_S for s in ends_s], (), "")
        lines.append(f"what is lent is held all the time: {whole}, and what lies between launches")
    return lines
