"""Efficiency: how much of the ideal speed is left at a larger size, and where that ends.

The ideal speed grows as the size does: twice the hosts do twice the work in the same time. Launches
of one block at two sizes make one log efficiency, so drift between blocks cancels, and the interval
is that of any ratio (estimate.py), at the looks of the study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from paribus.core import Efficiency, Metric
from paribus.stats.pairs import block_log_ratios

Kind = Literal["strong", "weak"]

STEPS = frozenset({"ns/day", "steps/s", "timesteps/s", "iterations/s"})
"""Units of rates that count steps of the whole problem: as times, a larger problem slows them."""

LEAST_RISE = 0.02
"""The speed no longer rises where it certainly grows by less than this."""


class Reach(NamedTuple):
    """How far an arm scales: what its intervals say, size by size.

    `up_to` is the largest size up to which every efficiency is above the bound. Of the next size
    it is `below`, or `undecided` (0: there is none, or it is the other). At the size `flat` the
    speed of all hosts or ranks is certainly no higher than at the one before, 0 for none.
    """

    up_to: int
    below: int = 0
    undecided: int = 0
    flat: int = 0


def log_efficiency(
    first: Mapping[int, float],
    other: Mapping[int, float],
    metric: Metric,
    kind: Kind,
    growth: float,
) -> dict[int, float]:
    """Return ln(efficiency) by block, from the costs of two sizes by block.

    A cost is a time or the inverse of a rate, infinite for a launch that was cut off; `growth` is
    the larger size over the smaller one. Ideally the cost falls in proportion. With a problem that
    grows as the size does, that is so of a rate that counts the work of all; a time, and a rate of
    STEPS, ideally stay as they are. Raises ValueError as block_log_ratios does.
    """
    same = kind == "weak" and (metric.better == "lower" or metric.unit in STEPS)
    ideal = 0.0 if same else -math.log(growth)
    return {block: ideal - ratio for block, ratio in block_log_ratios(first, other).items()}


def reach(rows: Sequence[Efficiency], bound: float) -> Reach:
    """Return how far one arm scales in one benchmark; `rows` are its sizes, the smallest first."""
    if rows[0].value is None:
        return Reach(0, 0, 0, 0)
    up_to, below, undecided = rows[0].size, 0, 0
    for row in rows[1:]:
        if row.efficiency is None or row.efficiency.low <= bound:
            certain = row.efficiency is not None and row.efficiency.high < bound
            below, undecided = (row.size, 0) if certain else (0, row.size)
            break
        up_to = row.size
    flat = (one.size for one in rows if one.step and one.step.high < 1 + LEAST_RISE)
    return Reach(up_to, below, undecided, next(flat, 0))
