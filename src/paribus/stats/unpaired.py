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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_LAUNCHES = 8
"""Launches of each arm from which on they are judged unpaired."""

MOST_DIFFERENCES = 10_000_000
"""Pairs of launches of two arms beyond which no interval is made: 80 MB."""


def shift(reference: Sequence[float], arm: Sequence[float], level: float) -> Comparison:
    """Return the ratio of `arm` to `reference`, values above 0, with its interval at `level`.

    The ends are 0 and inf while the launches are too few for `level`. No block pairs anything,
    so `blocks` is 0. Raises ValueError for no values.
    """
    ordered = _differences(reference, arm)
    last = len(ordered) - 1
    k = critical_count(len(reference), len(arm), round(1 - level, 12))
    middle = (ordered[last // 2] + ordered[last - last // 2]) / 2
    low, high = (ordered[k], ordered[last - k]) if k >= 0 else (-math.inf, math.inf)
    ratio, low, high = (math.exp(float(x)) for x in (middle, low, high))
    return Comparison(blocks=0, ratio=ratio, low=low, high=high, level=level)


def word_p(reference: Sequence[float], arm: Sequence[float], margin: float) -> float:
    """Return the smallest error at which the interval of `shift` gives a word: family.word_p."""
    import numpy as np

    ordered, delta = _differences(reference, arm), math.log1p(margin)
    up = [int(np.searchsorted(ordered, limit, side="right")) for limit in (delta, -delta)]
    down = [
        len(ordered) - int(np.searchsorted(ordered, limit, side="left"))
        for limit in (-delta, delta)
    ]
    count = min(up[0], down[0], max(up[1], down[1]))
    return _two_sided(len(reference), len(arm), count)


def levels(p_values: Sequence[float], error: float) -> list[float | None]:
    """Return the level of each case's interval, None where the family supports no word on it.

    From LEAST_FOR_SHARE cases on by Benjamini & Hochberg, below by Holm: words are as rarely wrong
    as family.py says. Intervals of supported cases are at one level, at which each gives its word
    and all together miss the truth as rarely as one (family.Claim).
    """
    adjust = benjamini_hochberg if len(p_values) >= LEAST_FOR_SHARE else holm
    supported = [adjusted <= error for adjusted in adjust(p_values)]
    kept = [p for p, said in zip(p_values, supported, strict=True) if said]
    together = max([error * len(kept) / max(1, len(p_values)), *kept])
    level = 1 - math.ceil(together * 1e12) / 1e12
    return [level if said else None for said in supported]


def _differences(reference: Sequence[float], arm: Sequence[float]) -> Floats:
    """Return the differences of all logs of `arm` and of `reference`, in order."""
    import numpy as np

    theirs, mine = np.log(np.asarray(reference)), np.log(np.asarray(arm))
    if not len(theirs) or not len(mine):
        raise ValueError("an arm has no launch")
    found: Floats = np.sort(np.subtract.outer(mine, theirs), axis=None)
    return found


def _two_sided(first: int, second: int, count: int) -> float:
    """Return 2 P(U <= count), at most 1: the least error with a critical_count of `count`."""
    if first * second <= EXACT_UP_TO:
        return min(1.0, 2 * float(rank_sum_cdf(first, second)[count]))
    low, high = -300.0, 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        enough = critical_count(first, second, 10**middle) >= count
        low, high = (low, middle) if enough else (middle, high)
    return float(10**high)
