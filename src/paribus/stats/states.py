"""Machines with two states: launches that fall into two clusters with nothing between."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paribus.stats.estimate import compare
from paribus.stats.summary import robust_sd
from paribus.stats.ties import least_gap

LEAST_LAUNCHES = 12
LEAST_IN_STATE = 3
GAP = 5.0
"""The gap must be this many robust standard deviations of the clusters beside it.

In normal noise that happens in 1 % of 12 launches and less of more (tests/test_modes.py);
with 3, as often proposed, in 5 %.
"""

LEAST_APART = math.log(1.1)
"""States nearer to each other than 10 % are not reported: a drifting clock looks like that."""

MORE_THAN_A_STEP = 1.5
"""A gap of one step of the values is none, for they can have nothing between: 10 s and 11 s."""

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class TwoStates:
    """The ratio `apart` of the medians of two states; how many launches were in the `higher`."""

    apart: float
    higher: int
    launches: int

    @property
    def share(self) -> float:
        """The share of the launches in the higher state."""
        return self.higher / self.launches


@dataclass(frozen=True, slots=True)
class StateRatios:
    """An arm against the reference, state by state.

    `lower` and `higher` are the ratios arm / reference of the `lower_blocks` and `higher_blocks`
    in which both were in that state (None for no such block); in `mixed` blocks they were not.
    `reference` and `arm` say how often each was in the higher state (an arm
    that was always in one has states 1.0 apart), `p` (Fisher's exact test)
    how likely shares so different are by chance. With `shares_differ` the share is the finding:
    how often an arm is in which state may be all that the factor changes.
    """

    lower: float | None
    higher: float | None
    lower_blocks: int
    higher_blocks: int
    mixed: int
    reference: TwoStates
    arm: TwoStates
    p: float

    @property
    def shares_differ(self) -> bool:
        return self.p < LEVEL


def two_states(values: Sequence[float]) -> TwoStates | None:
    """Return the two states that the launch medians of one arm fall into, or None.

    The largest gap between neighbours, on the log scale and with at least three launches on each
    side, is compared with the spread inside the two clusters (1.4826 times the median absolute
    deviation, pooled). Fewer than 12 launches, and states less than 10 % apart, are never reported.
    """
    cut = _cut(values)
    return None if cut is None else _described(values, cut)


def higher_sides(values: Sequence[float]) -> tuple[bool, ...] | None:
    """Return for each launch median of one arm whether it is in the higher state; None for one."""
    cut = _cut(values)
    return None if cut is None else tuple(math.log(value) > cut for value in values)


def widest_gap(logs: Sequence[float], least: int, most: int, between: int = 0) -> float | None:
    """Return the middle of the gap between two states, or None where there is but one.

    `logs` are in ascending order; at least `least` of them shall lie below the gap, at most `most`
    not above it, and `between` strays are allowed inside.
    """
    edges = range(least, most - between + 1)
    if not edges or least < 1 or most >= len(logs):
        return None
    first = max(edges, key=lambda i: logs[i + between] - logs[i - 1])
    below, above = logs[first - 1], logs[first + between]
    middle = (below + above) / 2
    cut = bisect_left(logs, middle, first, first + between)
    low, high = logs[:cut], logs[cut:]
    inside = math.sqrt(
        (len(low) * robust_sd(low) ** 2 + len(high) * robust_sd(high) ** 2) / len(logs)
    )
    apart = statistics.median(high) - statistics.median(low)
    return None if above - below <= GAP * inside or apart < LEAST_APART else middle


def ratio_per_state(reference: Mapping[int, float], arm: Mapping[int, float]) -> StateRatios | None:
    """Return shares and ratios of two arms in each of two states, or None without two states.

    Both map a block's number to the launch median in one unit. Each arm's own gap says which of
    its launches are in the higher state, for the factor may move both states; an arm without a
    gap is sorted by that of the other. The ratios are Hodges-Lehmann estimates. Raises ValueError
    for values that are not finite and above zero.
    """
    for value in (*reference.values(), *arm.values()):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{value} is in no state")
    own = _cut(list(reference.values())), _cut(list(arm.values()))
    cuts = [cut for cut in own if cut is not None]
    if not cuts or not reference or not arm:
        return None
    ratios: dict[bool, list[float]] = {False: [], True: []}
    both = sorted(reference.keys() & arm.keys())
    for block in both:
        theirs, ours = math.log(reference[block]), math.log(arm[block])
        higher = ours > cuts[-1]
        if higher == (theirs > cuts[0]):
            ratios[higher].append(ours - theirs)
    reported = (
        _described(list(reference.values()), cuts[0]),
        _described(list(arm.values()), cuts[-1]),
    )
    return StateRatios(
        lower=_ratio(ratios[False]),
        higher=_ratio(ratios[True]),
        lower_blocks=len(ratios[False]),
        higher_blocks=len(ratios[True]),
        mixed=len(both) - len(ratios[False]) - len(ratios[True]),
        reference=reported[0],
        arm=reported[1],
        p=shares_differ(*reported),
    )


def shares_differ(one: TwoStates, other: TwoStates) -> float:
    """Return the two-sided p of Fisher's exact test: both arms as often in the higher state."""
    n, higher = one.launches + other.launches, one.higher + other.higher

    def chance(k: int) -> float:
        ways = math.comb(one.launches, k) * math.comb(other.launches, higher - k)
        return ways / math.comb(n, higher)

    limit = chance(one.higher) * (1 + 1e-9)
    possible = range(max(0, higher - other.launches), min(one.launches, higher) + 1)
    return min(1.0, math.fsum(p for p in map(chance, possible) if p <= limit))


def _cut(values: Sequence[float]) -> float | None:
    """Return the log between the two states of launch medians, or None where there is but one."""
    n = len(values)
    if n < LEAST_LAUNCHES:
        return None
    cut = widest_gap(sorted(map(math.log, values)), LEAST_IN_STATE, n - LEAST_IN_STATE)
    if cut is None:
        return None
    below = max(value for value in values if math.log(value) <= cut)
    above = min(value for value in values if math.log(value) > cut)
    return cut if above - below > MORE_THAN_A_STEP * least_gap(values) else None


def _described(values: Sequence[float], cut: float) -> TwoStates:
    """Return the two states below and above `cut`, a log; 1.0 apart where one is empty."""
    logs = sorted(map(math.log, values))
    first = bisect_left(logs, cut)
    low, high = logs[:first], logs[first:]
    apart = statistics.median(high) - statistics.median(low) if low and high else 0.0
    return TwoStates(math.exp(apart), len(high), len(logs))


def _ratio(log_ratios: Sequence[float]) -> float | None:
    return compare(log_ratios, 0.95).ratio if log_ratios else None
