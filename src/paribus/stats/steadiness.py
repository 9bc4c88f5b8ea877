"""Which of two arms is steadier: whether two launches of one lie further apart than of the other.

For each pair of blocks, d is how far apart the two launches of an arm lie, in logs. The ratio of
scatters is the t for which d of the arm exceeds t times d of the reference in half of all pairs of
blocks: their median quotient. It needs no centre, and drift that the arms share is in both.
Whether it is 1 is the mean over all pairs of the sign of the difference, a U-statistic of degree 2
(W. Hoeffding, Ann. Math. Stat. 19 (1948) 293), over its jackknife error (J. N. Arvesen, Ann. Math.
Stat. 40 (1969) 2076), against Student's t. A sign is bounded, so the level holds whatever the
shapes of the arms are; a test that swaps the arms rejects unlike shapes of equal scatter.
docs/statistics-details.md has the measured error rates.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Apart = tuple[NDArray[np.float64], ...]

LEAST_BLOCKS = 12
"""Blocks below which nothing can be said."""

LEAST_FOR_WORDS = 18
"""Blocks from which there is a verdict."""

ERROR = 0.025
"""Nominal level of words and intervals: at most 0.057 in all noise models from 18 blocks on."""

MOST_BLOCKS = 400
"""Blocks, the latest, of which pairs are made: 80,000."""

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
    down, up = (_last(apart, enough, ratio, side) for side in (-FURTHEST, FURTHEST))
    low = ratio * math.exp(down) if down > -FURTHEST else 0.0
    return Scatters(n, ratio, low, ratio * math.exp(up) if up < FURTHEST else math.inf)


def _last(apart: Apart, enough: float, ratio: float, side: float) -> float:
    """Return how far from `ratio`, in logs, the launches rule nothing out; `side` for no end."""
    near, far = 0.0, side
    for _ in range(30):
        at = (near + far) / 2
        if _deviation(apart, ratio * math.exp(at)) > enough:
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
