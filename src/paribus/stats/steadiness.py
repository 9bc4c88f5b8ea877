"""Which of two arms is steadier: whether two launches of one lie further apart than of the other.

For each pair of blocks, d is how far apart the two launches of an arm lie, in logs. The ratio of
scatters is the t for which d of the arm exceeds t times d of the reference in half of all pairs of
blocks: their median quotient. It needs no centre, and drift that the arms share is in both.
Whether it is 1 is the mean over all pairs of the sign of the difference, a U-statistic of degree 2
(W. Hoeffding, Ann. Math. Stat. 19 (1948) 293), over its jackknife error (J. N. Arvesen, Ann. Math.
Stat. 40 (1969) 2076), against Student's t. A sign is bounded, so the level holds whatever the
shapes of the arms are; a test that swaps the arms rejects unlike shapes of equal scatter.

Within launches that keep a series, as of training steps, d is how far two steps of one launch lie
apart. Each block has a mean sign of its own, over all pairs of differences of its launches: an
unbiased figure between -1 and 1, however few its steps and however they follow from each other.
Whether its expectation is 0 is bet on block by block; a bet that wins 40-fold has a chance of at
most 1 in 40 (J. Ville, 1939; I. Waudby-Smith, A. Ramdas, J. R. Stat. Soc. B 86 (2024) 1). So the
level holds for all shapes, and whenever a study stops. Student's t of the blocks does not hold it:
where one launch in 20 is eight times as noisy, it errs in 23 % of studies of 18 blocks.
docs/statistics-details.md has the measured error rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Apart = Sequence[NDArray[np.float64]]

Unit = Sequence[Sequence[float]]
"""The logs of the steps of each launch of a unit: of one launch, or of those of a session."""

LEAST_BLOCKS = 12
"""Blocks below which nothing can be said."""

LEAST_FOR_WORDS = 18
"""Blocks from which there is a verdict."""

ERROR = 0.025
"""Nominal level of words and intervals: at most 0.057 in all noise models from 18 blocks on."""

BET_ERROR = 0.05
"""Level of words and intervals within launches, at most."""

BETS = [(2 * i + 1) / 32 for i in range(16)]
"""Shares of what is left that are staked on a block."""

MOST_BLOCKS = 400
"""Blocks, the latest, of which pairs are made: 80,000."""

LEAST_STEPS = 4
"""Steps of a launch below which its scatter is left alone."""

MOST_STEPS = 40
"""Steps of a launch of which pairs are made: 780."""

FURTHEST = 8.0
"""How far from the ratio, in logs, an end of the interval is sought: 3,000 times."""


@dataclass(frozen=True, slots=True)
class Scatters:
    """The scatter of an arm over that of the reference, with its interval, of so many blocks."""

    blocks: int
    ratio: float
    low: float
    high: float


def scatters(reference: Sequence[float], arm: Sequence[float]) -> Scatters | None:
    """Return the ratio of scatters of two arms, whose logs are given block by block.

    None for fewer than LEAST_BLOCKS blocks, and where most launches of an arm have one value.
    The interval has the level 1 - ERROR; it may end at 0 or infinity.
    """
    import numpy as np

    ours, theirs = (np.asarray(one[-MOST_BLOCKS:], dtype=np.float64) for one in (reference, arm))
    n = len(ours)
    if n < LEAST_BLOCKS:
        return None
    upper = np.triu_indices(n, 1)
    apart = tuple(np.abs(one[:, None] - one[None, :]) for one in (ours, theirs))
    with np.errstate(divide="ignore", invalid="ignore"):
        quotients = apart[1][upper] / apart[0][upper]
    ratio = float(np.nanmedian(quotients)) if not np.isnan(quotients).all() else math.nan
    if not 0 < ratio < math.inf:
        return None
    enough = quantile(ERROR / 2, n - 1)
    return _with_interval(n, ratio, lambda at: _deviation(apart, at) > enough)


def thinned(steps: Sequence[float]) -> Sequence[float]:
    """Return those of `steps`, in ascending order, that stand for a launch: MOST_STEPS quantiles.

    No steps where there are fewer than LEAST_STEPS.
    """
    n = len(steps)
    if n <= MOST_STEPS:
        return steps if n >= LEAST_STEPS else ()
    return [steps[int((i + 0.5) * n / MOST_STEPS)] for i in range(MOST_STEPS)]


def scatters_within(reference: Sequence[Unit], arm: Sequence[Unit]) -> Scatters | None:
    """Return the ratio of scatters within launches, whose steps' logs are given block by block.

    None for fewer than LEAST_BLOCKS blocks, and where most steps of an arm have one value. The
    interval is as that of `scatters`.
    """

    ours, theirs = ([steps_apart(unit) for unit in one[-MOST_BLOCKS:]] for one in (reference, arm))
    n = len(ours)
    if n < LEAST_BLOCKS:
        return None
    low, high = -FURTHEST, FURTHEST
    ends = (float(signs(ours, theirs, math.exp(end)).mean()) for end in (low, high))
    if not next(ends) > 0 > next(ends):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        above = signs(ours, theirs, math.exp(middle)).mean() > 0
        low, high = (middle, high) if above else (low, middle)
    ratio = math.exp((low + high) / 2)
    return _with_interval(n, ratio, lambda at: won(signs(ours, theirs, at)) * BET_ERROR >= 2)


def signs(reference: Apart, arm: Apart, ratio: float) -> NDArray[np.float64]:
    """Return for each block the mean sign of a difference of `arm` over `ratio` times another.

    Both hold, by block, how far steps of one launch lie apart, in ascending order.
    """
    import numpy as np

    found = []
    for ours, theirs in zip(reference, arm, strict=True):
        ranks = [np.searchsorted(ours, theirs / ratio, side) for side in ("left", "right")]
        found.append(float((ranks[0] + ranks[1]).mean()) / len(ours) - 1)
    return np.array(found)


def won(signs: NDArray[np.float64]) -> float:
    """Return how often a stake is won back that says that `signs` have no expectation of 0.

    They lie between -1 and 1; of both sides the one that wins more, the mean of bets of BETS.
    """
    import numpy as np

    stakes = np.outer(BETS, signs)
    return max(float(np.exp(np.log1p(side * stakes).sum(1)).mean()) for side in (1, -1))


def steps_apart(unit: Unit) -> NDArray[np.float64]:
    """Return how far steps of the same launch of a unit lie apart, in ascending order."""
    import numpy as np

    found = []
    for steps in unit:
        one = np.asarray(steps, dtype=np.float64)
        upper = np.triu_indices(len(one), 1)
        found.append(np.abs(one[:, None] - one[None, :])[upper])
    return np.sort(np.concatenate(found))


def _with_interval(n: int, ratio: float, ruled_out: Callable[[float], bool]) -> Scatters:
    """Return a ratio of `n` blocks with all ratios around it that are not ruled out."""
    down, up = (_last(ruled_out, ratio, side) for side in (-FURTHEST, FURTHEST))
    low = ratio * math.exp(down) if down > -FURTHEST else 0.0
    return Scatters(n, ratio, low, ratio * math.exp(up) if up < FURTHEST else math.inf)


def _last(ruled_out: Callable[[float], bool], ratio: float, side: float) -> float:
    """Return how far from `ratio`, in logs, nothing is ruled out; `side` for no end."""
    near, far = 0.0, side
    for _ in range(30):
        at = (near + far) / 2
        if ruled_out(ratio * math.exp(at)):
            far = at
        else:
            near = at
    return far


def _deviation(apart: Apart, ratio: float) -> float:
    """Return by how many jackknife errors the mean sign deviates from 0 at a ratio of scatters."""
    import numpy as np

    signs = np.sign(apart[1] - ratio * apart[0])
    n = len(signs)
    of_block = signs.sum(1)
    total = float(of_block.sum())
    without = (total - 2 * of_block) / ((n - 1) * (n - 2))
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    mean = abs(total) / (n * (n - 1))
    if error > 0:
        return mean / error
    return math.inf if mean > 0 else 0.0


def exceeding(
    reference: Sequence[float], arm: Sequence[float], margin: float
) -> tuple[int, int, float]:
    """Return how many launches of each arm are slower than its median by more than `margin`.

    Values are logs of times. The third is the p-value of the difference: McNemar's exact test of
    the blocks in which one of the two is so slow (Q. McNemar, Psychometrika 12 (1947) 153).
    """
    slow = [
        [value > statistics.median(one) + math.log1p(margin) for value in one]
        for one in (reference, arm)
    ]
    only = [sum(a and not b for a, b in zip(*pair, strict=True)) for pair in (slow, slow[::-1])]
    n, k = sum(only), min(only)
    p = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n)
    return sum(slow[0]), sum(slow[1]), p
