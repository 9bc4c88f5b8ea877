"""The course of a screen of nodes or GPUs: three rounds of all, then the nominated beside others.

Nominated is every unit whose median of the three lies below the fleet's by half the margin or more.
A fleet may fall into two groups, such as nodes with old and with new firmware: where the largest
gap between the medians of units is wide and both sides are many, each side is screened by itself,
and whether the lower one is slow as a whole is one more question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from paribus.screen.course import BELOW, PARTNERS, Cause, Course, Drawn, Row
from paribus.stats.schedule import Randomiser

ROUNDS = 3
"""Rounds of all, which nominate."""

LEAST_UNITS = 3
LEAST_GROUP = 3
GROUP_SHARE = 0.1
"""A smaller lower side is single units, not a group."""

GAP_SCATTERS = 4.0
"""Standard deviations of a unit's median of three that lie in the gap between two groups."""

LOWER = Cause("half", "the lower group")


class Nodes(Course):
    """The course of a screen of `units`, by metric.

    `groups`: by metric, the units of each group: one, or two, the upper first. Raises ValueError
    for fewer than LEAST_UNITS units.
    """

    def __init__(
        self,
        units: Mapping[str, Sequence[str]],
        margins: Mapping[str, float],
        seed: int,
        families: float = 1.0,
    ) -> None:
        if min(map(len, units.values())) < LEAST_UNITS:
            cause = "none has peers to be compared with"
            raise ValueError(f"fewer than {LEAST_UNITS} units: {cause}")
        self.units = units
        self.groups: dict[str, tuple[tuple[str, ...], ...]]
        self.groups = {m: (tuple(own),) for m, own in units.items()}
        super().__init__(margins, seed, families, ROUNDS)

    def speeds(self, metric: str) -> dict[str, float]:
        """Return the median log speed of each unit over that of all, in the first rounds."""
        return middles(self.seen[metric], self.units[metric])

    def _nominate(self, metric: str) -> list[Cause]:
        rows, margin = self.seen[metric], self.margins[metric]
        groups = divided(rows, self.units[metric], margin)
        self.groups[metric] = groups
        self.noise[metric] = [value for own in groups for value in scatter(rows, own)]
        medians = (item for own in groups for item in middles(rows, own).items())
        found = [Cause("unit", unit) for unit, value in medians if value < -BELOW * margin]
        return found + [LOWER] * (len(groups) > 1)

    def _prove(self, metric: str, row: Row) -> dict[int, float]:
        beside = super()._prove(metric, row)
        for one in self.of(metric):
            if one.cause is LOWER and one.word == "open":
                self._add(one, beside.get(1, math.nan) - beside.get(0, math.nan))
        return beside

    def _draw(self, metric: str) -> Drawn:
        gone, mine, number = self.gone[metric], self.of(metric), self.round + 1
        found: Drawn = []
        if number <= ROUNDS:
            found = [(unit, None, 0) for unit in self.units[metric] if unit not in gone]
        no_reference = gone.union(one.unit for one in mine)
        still = {one.unit: one for one in mine if one.word == "open"}
        about_lower = still.pop(LOWER.name, None)
        for side, members in enumerate(self.groups[metric]):
            here = {*members}
            own = [(unit, one, side) for unit, one in still.items() if unit in here]
            if own or about_lower:
                others = [unit for unit in members if unit not in no_reference]
                draw = Randomiser(self.seed, f"{metric} {side} {number}")
                references = draw.shuffled(others)[: max(PARTNERS, len(own))]
                found += [*own, *((unit, None, side) for unit in references)]
        return Randomiser(self.seed, f"{metric} {number}").shuffled(found)


def relative(row: Row, members: Sequence[str]) -> dict[str, float]:
    """Return the log speeds of `members` in a round less their median; failed ones are left out."""
    known = {unit: row[unit] for unit in members if not math.isnan(row.get(unit, math.nan))}
    middle = median(known.values()) if known else 0.0
    return {unit: value - middle for unit, value in known.items()}


def _several(rows: Sequence[Row], members: Sequence[str]) -> dict[str, list[float]]:
    """Return the relative log speeds of the members that have two or more."""
    over = [relative(row, members) for row in rows]
    found = {unit: [row[unit] for row in over if unit in row] for unit in members}
    return {unit: values for unit, values in found.items() if len(values) > 1}


def middles(rows: Sequence[Row], members: Sequence[str]) -> dict[str, float]:
    """Return the median relative log speed of each unit that has two values or more."""
    return {unit: median(values) for unit, values in _several(rows, members).items()}


def scatter(rows: Sequence[Row], members: Sequence[str]) -> list[float]:
    """Return how far each launch lies from its unit's mean, as log ratios: a sample of the noise.

    Of three values the deviations from their mean have two thirds of the variance, so that they
    are scaled by sqrt(3/2).
    """
    found = []
    for values in _several(rows, members).values():
        mean = sum(values) / len(values)
        scale = math.sqrt(len(values) / (len(values) - 1))
        found += [(value - mean) * scale for value in values]
    return found


def divided(
    rows: Sequence[Row], units: Sequence[str], margin: float
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of units: one, or two with a gap between them, the upper first.

    `margin` is a log ratio.
    """
    of = middles(rows, units)
    order = sorted(of, key=lambda unit: of[unit])
    least = max(LEAST_GROUP, math.floor(GROUP_SHARE * len(order)) + 1)
    places = range(least, len(order) - least + 1)
    if not places:
        return (tuple(units),)
    at = max(places, key=lambda i: of[order[i]] - of[order[i - 1]])
    gap = of[order[at]] - of[order[at - 1]]
    noise = median(map(abs, scatter(rows, units))) / 0.6745
    if gap <= max(margin / 2, GAP_SCATTERS * noise * 0.67):
        return (tuple(units),)
    lower = {*order[:at]}
    return tuple(u for u in units if u not in lower), tuple(u for u in units if u in lower)
