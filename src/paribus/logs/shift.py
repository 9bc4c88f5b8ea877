"""Ratio and interval of launches that nothing pairs: the shift between two arms.

The Hodges-Lehmann shift of the logs, with the interval that inverts the exact rank-sum test. It
assumes that the launches are independent, and that nothing changed between the arms but the
factor; pairs of neighbours need neither. Sources: those of order.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paribus.core import Comparison
from paribus.stats.family import LEAST_FOR_SHARE, benjamini_hochberg, holm
from paribus.stats.order import EXACT_UP_TO, critical_count, rank_sum_cdf
from paribus.stats.verdict import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_LAUNCHES = 8
"""Launches of each arm from which on they are judged unpaired."""

NARROW = 1e-14
"""Width, of the largest log, at which the search for a difference ends: some rounding errors."""


def shift(reference: Sequence[float], arm: Sequence[float], level: float) -> Comparison:
    """Return the ratio of `arm` to `reference`, values above 0, with its interval at `level`.

    The ends are 0 and inf if the launches are too few for `level`. No block pairs anything,
    so `blocks` is 0. Raises ValueError for no values.
    """
    sorted_differences = _Differences(reference, arm)
    last = len(reference) * len(arm) - 1
    k = critical_count(len(reference), len(arm), round(1 - level, 12))
    middle = (sorted_differences[last // 2] + sorted_differences[last - last // 2]) / 2
    low, high = -math.inf, math.inf
    if k >= 0:
        low, high = sorted_differences[k], sorted_differences[last - k]
    ratio, low, high = (math.exp(float(x)) for x in (middle, low, high))
    return Comparison(blocks=0, ratio=ratio, low=low, high=high, level=level)


def word_p(reference: Sequence[float], arm: Sequence[float], margin: float) -> float:
    """Return the smallest error at which the interval of `shift` gives a verdict.

    It lies then beyond the margin, or inside it. See `family.word_p`, which does it for pairs.
    """
    differences, every = _Differences(reference, arm), len(reference) * len(arm)
    outer, inner = (math.log1p(margin) + rounding for rounding in (ROUNDING, -ROUNDING))
    below_upper, below_lower = (differences.up_to(limit) for limit in (outer, -inner))
    above_lower, above_upper = (every - differences.below(limit) for limit in (-outer, inner))
    count = min(below_upper, above_lower, max(below_lower, above_upper))
    return _two_sided(len(reference), len(arm), count)


def levels(p_values: Sequence[float], error: float) -> list[float | None]:
    """Return the level of each case's interval, None where the family supports no verdict on it.

    `p_values` are those of `word_p`. They are corrected by Benjamini & Hochberg from
    LEAST_FOR_SHARE cases on, by Holm below, so verdicts are as rarely wrong as family.py says.
    Intervals of supported cases are at one level, at which each gives its verdict and all together
    miss the truth as rarely as one (family.Claim).
    """
    adjust = benjamini_hochberg if len(p_values) >= LEAST_FOR_SHARE else holm
    supported = [adjusted <= error for adjusted in adjust(p_values)]
    kept = [p for p, has_verdict in zip(p_values, supported, strict=True) if has_verdict]
    together = max([error * len(kept) / max(1, len(p_values)), *kept])
    level = 1 - math.ceil(together * 1e12) / 1e12
    return [level if has_verdict else None for has_verdict in supported]


class _Differences:
    """The sorted differences of each log of an arm's value to each of the reference.

    They are counted, not stored: of n launches in each arm there are n squared.
    """

    def __init__(self, reference: Sequence[float], arm: Sequence[float]) -> None:
        import numpy as np

        if not len(reference) or not len(arm):
            raise ValueError("an arm has no launch")
        self._theirs: Floats = np.sort(np.log(np.asarray(reference)))
        self._mine: Floats = np.log(np.asarray(arm))

    def up_to(self, limit: float) -> int:
        """Return how many differences are no larger than a limit."""
        at = self._theirs.searchsorted(self._mine - limit, side="left")
        return len(self._theirs) * len(self._mine) - int(at.sum())

    def below(self, limit: float) -> int:
        """Return how many differences are smaller than a limit."""
        at = self._theirs.searchsorted(self._mine - limit, side="right")
        return len(self._theirs) * len(self._mine) - int(at.sum())

    def __getitem__(self, place: int) -> float:
        """Return the difference at a place in the order, from 0.

        Bisection finds a value just below it; it is the smallest difference above that.
        """
        low = float(self._mine.min() - self._theirs[-1])
        high = float(self._mine.max() - self._theirs[0])
        ends = (self._theirs[0], self._theirs[-1], self._mine.min(), self._mine.max())
        narrow = NARROW * max(1.0, *map(abs, ends))
        low, high = low - narrow, high + narrow
        while high - low > narrow:
            middle = (low + high) / 2
            low, high = (low, middle) if self.up_to(middle) > place else (middle, high)
        at = self._theirs.searchsorted(self._mine - low, side="left") - 1
        return float((self._mine - self._theirs[at])[at >= 0].min())


def _two_sided(first: int, second: int, count: int) -> float:
    """Return 2 P(U <= count), at most 1: the least error whose critical_count is `count`."""
    if first * second <= EXACT_UP_TO:
        return min(1.0, 2 * float(rank_sum_cdf(first, second)[count]))
    low, high = -300.0, 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        enough = critical_count(first, second, 10**middle) >= count
        low, high = (low, middle) if enough else (middle, high)
    return float(10**high)
