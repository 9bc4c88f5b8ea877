"""Machines with two states: launches that fall into two clusters with nothing between."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_LAUNCHES = 12
LEAST_IN_STATE = 3
GAP = 5.0
"""The gap must be this many robust standard deviations of the clusters beside it.

In normal noise that happens in 1 % of 12 launches and less of more (tests/test_stats_states.py);
with 3, as often proposed, in 5 %.
"""


@dataclass(frozen=True, slots=True)
class TwoStates:
    """How far the medians of the two states lie apart, and how many launches were in the higher."""

    apart: float
    higher: int
    launches: int


def two_states(values: Sequence[float]) -> TwoStates | None:
    """Return the two states that the launch medians of one arm fall into, or None.

    The largest gap between neighbours, on the log scale and with at least three launches on each
    side, is compared with the spread inside the two clusters (1.4826 times the median absolute
    deviation, pooled). Fewer than 12 launches, and states less than 10 % apart, are never told.
    """
    n = len(values)
    if n < LEAST_LAUNCHES:
        return None
    logs = sorted(map(math.log, values))
    cut = max(range(LEAST_IN_STATE, n - LEAST_IN_STATE + 1), key=lambda i: logs[i] - logs[i - 1])
    low, high = logs[:cut], logs[cut:]
    inside = math.sqrt((len(low) * _spread(low) ** 2 + len(high) * _spread(high) ** 2) / n)
    apart = statistics.median(high) - statistics.median(low)
    if logs[cut] - logs[cut - 1] <= GAP * inside or apart < math.log(1.1):
        return None
    return TwoStates(math.exp(apart), len(high), n)


def shares_differ(one: TwoStates, other: TwoStates) -> float:
    """Return the two-sided p of Fisher's exact test: both arms as often in the higher state."""
    n, higher = one.launches + other.launches, one.higher + other.higher

    def chance(k: int) -> float:
        ways = math.comb(one.launches, k) * math.comb(other.launches, higher - k)
        return ways / math.comb(n, higher)

    limit = chance(one.higher) * (1 + 1e-9)
    possible = range(max(0, higher - other.launches), min(one.launches, higher) + 1)
    return min(1.0, math.fsum(p for p in map(chance, possible) if p <= limit))


def _spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - middle) for value in values)
