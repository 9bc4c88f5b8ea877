"""Fleets whose links are screened: how often a healthy one is called slow, how often a cause is
named for what it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from paribus.screen.course import Cause
from paribus.screen.links import Links, Pair, pair_of
from validation.figures import Check, Figure

MARGIN = -math.log1p(-0.04)
SCATTER = 0.03
"""Standard deviation of a pair's launches."""

COST = 2.5 * SCATTER
ENDS, PAIRS = 0.003, 0.005
"""Standard deviations of what healthy ends and pairs differ by for good."""

ACROSS = 0.15
ROOM = 0.03
"""What chance adds to a share of 5 % of some hundred fleets."""

Fault = Literal["", "end", "group", "uplink", "path", "spine", "now and then", "at the margin"]


@dataclass(frozen=True, slots=True)
class Fabric:
    """Nodes in so many racks (1: not known); a fault costs COST.

    "end": one node's pairs. "group": all pairs of two racks. "uplink": those of one rack with all
    others. "path": a fifth of the pairs of two racks, always the same; "spine": of those of one
    rack with all others. "now and then": of the pairs of two racks a fifth of the launches. "at
    the margin": one end costs the margin, and others differ by nothing: the healthy fabric that
    is likeliest to be called slow.
    """

    nodes: int
    racks: int
    fault: Fault = ""
    tails: float = 0.02


def screened(fabric: Fabric, seed: int) -> tuple[list[Cause], set[Pair]]:
    """Return the causes that a screen of a fabric that `seed` draws names, and the slow pairs."""
    rng = np.random.default_rng(seed)
    nodes = tuple(f"n{i:03}" for i in range(fabric.nodes))
    size = fabric.nodes // max(2, fabric.racks)
    rack = [i // size for i in range(fabric.nodes)]
    racks = {
        f"r{r}": tuple(n for n, own in zip(nodes, rack, strict=True) if own == r)
        for r in range(fabric.racks)
    }
    edge = fabric.fault == "at the margin"
    cost = MARGIN if edge else COST
    ends = rng.normal(0, 0.0 if edge else ENDS, fabric.nodes)
    own = np.triu(rng.normal(0, 0.0 if edge else PAIRS, (fabric.nodes, fabric.nodes)))
    fifth = np.triu(rng.random((fabric.nodes, fabric.nodes)) < 0.2)

    def slow(i: int, j: int) -> bool:
        """Return whether the pair of i < j is slow in this launch."""
        between = {rack[i], rack[j]} == {0, 1}
        match fabric.fault:
            case "end" | "at the margin":
                return 5 in (i, j)
            case "group":
                return between
            case "uplink" | "spine":
                chosen = fabric.fault == "uplink" or bool(fifth[i, j])
                return chosen and rack[i] != rack[j] and 0 in (rack[i], rack[j])
            case "path":
                return between and bool(fifth[i, j])
            case "now and then":
                return between and rng.random() < 0.2
        return False

    def launch(pair: Pair) -> float:
        i, j = (int(name[1:]) for name in pair)
        value = ends[i] + ends[j] + own[i, j] + rng.normal(0, SCATTER)
        value -= rng.exponential(0.1) if rng.random() < fabric.tails else 0.0
        value -= ACROSS * (fabric.racks > 1 and rack[i] != rack[j])
        return float(value - cost * slow(i, j))

    course = Links(nodes, racks if fabric.racks > 1 else {}, {"m": MARGIN}, seed)
    while not course.done:
        drift = float(rng.normal(0, 0.02))
        course.take({"m": {name: launch(pair_of(name)) + drift for name in course.wanted["m"]}})
    named = [one.cause for one in course.questions if one.word == "slow"]
    n = fabric.nodes
    pairs = [(nodes[i], nodes[j]) for i in range(n) for j in range(i + 1, n) if slow(i, j)]
    return named, {*pairs}


def _right(fabric: Fabric, named: list[Cause], slow: set[Pair]) -> bool:
    """Return whether the fault was named for what it is, and nothing else was."""
    kinds = {"end": "end", "group": "group", "uplink": "group"}
    if fabric.fault in kinds:
        return (
            len(named) == 1
            and named[0].kind == kinds[fabric.fault]
            and all(map(named[0].covers, slow))
        )
    return bool(named) and all(one.kind == "path" and any(map(one.covers, slow)) for one in named)


HEALTHY = {
    "16 nodes": Fabric(16, 1),
    "12 nodes in 3 racks": Fabric(12, 3),
    "16 nodes in 4 racks": Fabric(16, 4),
    "64 nodes in 4 racks": Fabric(64, 4),
    "64 nodes in 4 racks, a tenth of launches disturbed": Fabric(64, 4, tails=0.1),
    "64 nodes, an end exactly at the margin": Fabric(64, 4, "at the margin"),
    "1000 nodes in 25 racks": Fabric(1000, 25),
}
FAULTS = {
    "end of 16": Fabric(16, 1, "end"),
    "end of 16 in 4 racks": Fabric(16, 4, "end"),
    "end of 64": Fabric(64, 4, "end"),
    "end of 1000": Fabric(1000, 25, "end"),
    "group of 12": Fabric(12, 3, "group"),
    "group of 16": Fabric(16, 4, "group"),
    "group of 64": Fabric(64, 4, "group"),
    "group of 1000": Fabric(1000, 25, "group"),
    "uplink of 12 in 3 racks": Fabric(12, 3, "uplink"),
    "uplink of 16": Fabric(16, 4, "uplink"),
    "uplink of 64": Fabric(64, 4, "uplink"),
    "path of 16": Fabric(16, 1, "path"),
    "path of 64": Fabric(64, 4, "path"),
}
SPINES = {
    "two racks of 8": Fabric(16, 2, "path"),
    "two of 4 racks of 16": Fabric(64, 4, "path"),
    "a rack of 4, with all of 16 nodes": Fabric(16, 4, "spine"),
    "a rack of 16, with all of 64": Fabric(64, 4, "spine"),
    "a rack of 40, with all of 1000": Fabric(1000, 25, "spine"),
}


def _several(fabric: Fabric, number: int) -> Iterator[tuple[list[Cause], set[Pair]]]:
    """Yield what came of `number` fabrics, of large ones of a fortieth."""
    for seed in range(number if fabric.nodes < 1000 else math.ceil(number / 40)):
        yield screened(fabric, 33_000 + seed)


def _named(fabric: Fabric, number: int) -> float:
    """Return the share of fabrics in which anything is called slow."""
    return float(np.mean([bool(named) for named, _ in _several(fabric, number)]))


def _found(fabric: Fabric, number: int) -> float:
    """Return the share of fabrics in which the fault is named for what it is."""
    return float(np.mean([_right(fabric, *one) for one in _several(fabric, number)]))


def links(number: int) -> Check:
    """Return how often screens of links err, and how often they name what is slow."""
    often = Fabric(64, 4, "now and then")
    return Check(
        33,
        "links screened",
        f"{number} fabrics of each kind, of 1,000 nodes a fortieth: a pair's launches scatter by"
        " 3 %, and one in 50 is slower by an exponential of 10 %; healthy ends differ by 0.3 %,"
        " pairs by 0.5 %, and pairs across racks are 15 % slower. A fault costs 2.5 times the"
        " scatter, 7.5 %: of one end, of all pairs of two racks, of one rack's pairs with all"
        " others, of a fifth of the pairs of two racks or of one rack with all others. Right is"
        " that cause alone; of a path, slow pairs alone.",
        (
            Figure(
                "fabrics in which anything healthy is called slow",
                {name: _named(one, number) for name, one in HEALTHY.items()},
                "<=",
                0.05 + ROOM,
            ),
            Figure(
                "a fault is named for what it is",
                {name: _found(one, number) for name, one in FAULTS.items()},
                ">=",
                0.95,
            ),
            Figure(
                "a spine link that a fifth of the pairs take, always the same, is named as paths",
                {name: _found(one, number) for name, one in SPINES.items()},
                ">=",
                0.80,
            ),
            Figure(
                "a spine link that a fifth of the launches of two racks' pairs take is found",
                {"": _named(often, number)},
                "<=",
                0.05,
            ),
        ),
    )
