"""Order effect: whether an arm fares differently when it comes second in a block.

In a block of two launches, ln(arm / reference) is the arm's own effect, plus the log of the order
effect where the arm came second, minus it where it came first. So half the difference between the
blocks of the one order and those of the other is the order effect, and the arm's own is not in it,
however large it is and however unequal the orders are. If the order does nothing, the coin alone
said which blocks are of which order, so the rank-sum distribution holds whatever the noise.
Sources: H. B. Mann & D. R. Whitney, Ann. Math. Statist. 18 (1947) 50; estimate and interval from
all differences as in Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd ed.
(2014), chapter 4; the expansion: E. Fix & J. L. Hodges, Ann. Math. Statist. 26 (1955) 301.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from paribus.stats.estimate import compare

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EXACT_UP_TO = 2500
"""Differences up to which their distribution is exact: 50 blocks of either order."""


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """The ratio of a launch's figure as the second of its block to that as the first.

    It has the interval [low, high], from `blocks` of two launches. `found`: that excludes 1.
    """

    blocks: int
    ratio: float
    low: float
    high: float
    found: bool


@lru_cache(maxsize=16)
def rank_sum_cdf(first: int, second: int) -> Floats:
    """Return P(U <= u) for u = 0 ... first * second, without an effect.

    U counts the pairs of a value of the one kind above one of the other. Exact: adds one value
    after the other, the largest of all being of either kind with the chance of its share.
    """
    import numpy as np

    before = [np.ones(1)] * (first + 1)
    for n in range(1, second + 1):
        rows = [np.ones(1)]
        for m in range(1, first + 1):
            row = np.zeros(m * n + 1)
            row[n:] = rows[-1] * (m / (m + n))
            row[: m * (n - 1) + 1] += before[m] * (n / (m + n))
            rows.append(row)
        before = rows
    cdf: Floats = np.cumsum(before[first])
    return cdf


@lru_cache(maxsize=1024)
def critical_count(first: int, second: int, alpha: float) -> int:
    """Return the largest k with P(U <= k) <= alpha / 2, or -1 if even k = 0 is too likely.

    Beyond EXACT_UP_TO differences by the Cornish-Fisher expansion to the fourth cumulant.
    """
    pairs, total = first * second, first + second
    if pairs <= EXACT_UP_TO:
        # The slack is that of estimate.critical_rank.
        limit = alpha / 2 * (1 + 1e-12)
        return int(rank_sum_cdf(first, second).searchsorted(limit, side="right")) - 1
    variance = pairs * (total + 1) / 12
    fourth = -pairs * (total + 1) * (first**2 + second**2 + pairs + total) / 120
    z = NormalDist().inv_cdf(alpha / 2)
    z += fourth / (24 * variance**2) * (z**3 - 3 * z)
    return math.floor(pairs / 2 + math.sqrt(variance) * z - 0.5)


def rank_sum_p(strata: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """Return the two-sided p of a stratified rank-sum test; a stratum is values of both kinds.

    The pairs in which a value of the first kind is above one of the other are counted within each
    of the `strata` and added up. It is exact if the kinds do not differ within a stratum, whatever
    differs between strata; ties are broken so that the p is largest. Beyond EXACT_UP_TO pairs in
    one stratum the sum is taken for normal, with half a step of correction.
    """
    import numpy as np

    above, ties, sizes = 0, 0, []
    for one, other in strata:
        lower = np.searchsorted(np.sort(other), one, side="left")
        above += int(lower.sum())
        ties += int((np.searchsorted(np.sort(other), one, side="right") - lower).sum())
        sizes.append((len(one), len(other)))
    if any(first * second > EXACT_UP_TO for first, second in sizes):
        pairs = sum(first * second for first, second in sizes)
        variance = sum(m * n * (m + n + 1) / 12 for m, n in sizes)
        beyond = max(0.0, abs(above + ties / 2 - pairs / 2) - ties / 2 - 0.5)
        return 2 * NormalDist().cdf(-beyond / math.sqrt(variance))
    chances = np.ones(1)
    for first, second in sizes:
        chances = np.convolve(chances, np.diff(rank_sum_cdf(first, second), prepend=0.0))
    ends = chances[: above + ties + 1].sum(), chances[above:].sum()
    return min(1.0, 2 * float(min(ends)))


def order_effect(
    arm_first: Sequence[float], arm_second: Sequence[float], confidence: float = 0.95
) -> OrderEffect | None:
    """Return the order effect, or None if the blocks of either order are too few.

    `arm_first` holds ln(arm / reference) of the blocks in which the arm came first, `arm_second`
    those of the others. Blocks with a launch that was cut off (infinite) are left out. Half the
    Hodges-Lehmann shift between the two, with the interval that inverts the rank-sum test; 4
    blocks of each order are the fewest that have one at 95 %, or 2 and 8. Chance finds an effect
    in at most `1 - confidence` of comparisons. Raises ValueError for NaN.
    """
    import numpy as np

    first, second = (np.asarray(values, dtype=np.float64) for values in (arm_first, arm_second))
    if np.isnan(first).any() or np.isnan(second).any():
        raise ValueError("a log ratio is NaN")
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    k = critical_count(len(first), len(second), round(1 - confidence, 12))
    if k < 0:
        return None
    differences = np.subtract.outer(second, first).ravel()
    last = len(differences) - 1
    differences.partition(sorted({k, last // 2, last - last // 2, last - k}))
    middle = (differences[last // 2] + differences[last - last // 2]) / 2
    ratio, low, high = (
        math.exp(difference / 2) for difference in (middle, differences[k], differences[last - k])
    )
    return OrderEffect(len(first) + len(second), ratio, low, high, not low <= 1 <= high)


def bias(effect: OrderEffect, arm_first: Sequence[float], arm_second: Sequence[float]) -> float:
    """Return by how much, as a share, the order of the blocks has moved their ratio.

    That is their estimate over the one that they give when `effect` is taken off again, from each
    block on its side. Not a formula of the counts: for a small effect the Hodges-Lehmann estimate
    moves by its log times the difference of the counts over their sum, but of an effect well
    above the noise by up to twice as much, or not at all. 0.001 means that the ratio is 0.1 % too
    large. Raises ValueError for no blocks.
    """
    log = math.log(effect.ratio)
    taken_off = [value + log for value in arm_first] + [value - log for value in arm_second]
    return compare([*arm_first, *arm_second], 0.95).ratio / compare(taken_off, 0.95).ratio - 1
