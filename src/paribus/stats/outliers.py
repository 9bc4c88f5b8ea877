"""Launches far from all others of their arm: flagged and looked into, never removed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paribus.stats.states import higher_sides
from paribus.stats.ties import least_gap

LEAST_LAUNCHES = 8

HIDDEN_BY_STEPS = 0.7413
"""Standard deviation, in steps of the figures, at which half are rounded to the same one."""


def outlying(values: Sequence[float], limit: float = 5.0) -> tuple[int, ...]:
    """Return the indices of the launch medians of one arm that lie far from the others.

    Far is more than `limit` robust standard deviations (1.4826 times the median absolute
    deviation) from the median, on the log scale, to either side. Where the launches fall into two
    states (`states.two_states`), each is compared with the median of its own, the deviations of
    both taken together. Where more than half are equal, 1.2533 times the mean absolute deviation
    stands in (Iglewicz & Hoaglin, How to Detect and Handle Outliers, 1993). Nearer than what steps
    of the figures can hide is not far. In normal noise some launch is flagged in 4.6 % of arms with
    8 launches, in 3.3 % with 12, in 0.3 % with 60
    (tests/test_stats.py). Fewer than 8 launches have none. Raises ValueError for values
    that are not finite and above zero.
    """
    if any(not (math.isfinite(value) and value > 0) for value in values):
        raise ValueError("outlying launches of values that are not all finite and above zero")
    if len(values) < LEAST_LAUNCHES:
        return ()
    logs = [math.log(value) for value in values]
    sides = higher_sides(values) or (False,) * len(values)
    middle = {
        side: statistics.median(x for x, its in zip(logs, sides, strict=True) if its == side)
        for side in set(sides)
    }
    far = [abs(x - middle[side]) for x, side in zip(logs, sides, strict=True)]
    scale = 1.4826 * statistics.median(far) or 1.2533 * statistics.fmean(far)
    hidden = HIDDEN_BY_STEPS * least_gap(values)
    return tuple(
        i
        for i, (value, side) in enumerate(zip(values, sides, strict=True))
        if far[i] > limit * scale and abs(value - math.exp(middle[side])) > limit * hidden
    )
