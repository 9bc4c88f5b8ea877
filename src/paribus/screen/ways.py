"""What a screen says of links beside their ends: paths and groups, and the matrix of all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal

from paribus.core import fold
from paribus.screen.links import Cause, LinkStanding, Pair, of_nodes, relative
from paribus.screen.plan import Screen, nodes_of
from paribus.screen.rounds import Known
from paribus.screen.standing import Suspect

OTHERS = "all others"

Kind = Literal["path", "group"]
Word = Literal["slow", "undecided", "failed"]


def pair_of(unit: str) -> str:
    """Return a pair as people write it."""
    return " - ".join(nodes_of(unit))


@dataclass(frozen=True, slots=True)
class Way:
    """What lies between two `sides`: a *path* some pairs take, or all pairs, a *group*.

    `suspects` are what it rests on, of a path one for each benchmark and pair; `why` it failed.
    """

    kind: Kind
    sides: tuple[str, str]
    word: Word
    suspects: tuple[Suspect, ...]
    why: str = ""

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of a path, as people write them."""
        own = self.suspects if self.kind == "path" else ()
        return tuple(dict.fromkeys(pair_of(one.unit) for one in own))


def ways_of(screen: Screen, found: LinkStanding, known: Known) -> tuple[Way, ...]:
    """Return the paths and groups that are slow, undecided or failed, in this order.

    Paths between the same two racks are one.
    """
    of = of_nodes(screen.racks)
    several: dict[tuple[Kind, tuple[str, str], Word], list[Suspect]] = {}
    slow = {one.unit for one in found.suspects if one.word == "slow"}
    for one in found.suspects:
        cause = found.causes[one.unit]
        if cause.kind == "end" or one.word == "released":
            continue
        word: Word = "undecided" if one.word == "open" else one.word
        if word == "slow" or one.unit not in slow:
            several.setdefault((cause.kind, _sides(cause, of), word), []).append(one)
    made = [
        Way(kind, sides, word, tuple(own), known.why.get(own[0].unit, "") * (word == "failed"))
        for (kind, sides, word), own in several.items()
    ]
    order = ("slow", "undecided", "failed")
    return tuple(sorted(made, key=lambda one: (order.index(one.word), one.kind, one.sides)))


def _sides(cause: Cause, of: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of both sides: of a path its racks, where they are known."""
    left, right = (sorted(side) for side in cause.sides)
    if cause.kind == "group":
        return fold(left), OTHERS if cause.name.endswith("||") else fold(right)
    one, other = sorted((of.get(left[0], left[0]), of.get(right[0], right[0])))
    return one, other


def matrix(screen: Screen, known: Known, label: str, first: int) -> dict[Pair, float]:
    """Return the speed of each pair over the median of its round, of the `first`: from, to.

    As a ratio, the median where it had several; what was measured in one order holds for both.
    """
    values: dict[Pair, list[float]] = {}
    of = of_nodes(screen.racks)
    for row in known.up_to(first)[label].values():
        pairs = {(one, other): v for unit, v in row.items() for one, other in [nodes_of(unit)]}
        for pair, value in relative(pairs, of).items():
            if not math.isnan(value):
                values.setdefault(pair, []).append(value)
    found = {pair: math.exp(median(own)) for pair, own in values.items()}
    return {(other, one): speed for (one, other), speed in found.items()} | found
