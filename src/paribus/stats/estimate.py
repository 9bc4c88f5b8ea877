"""Ratio and interval: the Hodges-Lehmann estimate with the exact signed-rank interval.

Under "no difference" a coin that put the arms in order also gave every log ratio its sign, so
the signed-rank distribution holds whatever the drift, outliers or modes of the machine. Sources:
Hodges & Lehmann, Ann. Math. Statist. 34 (1963) 598; Tukey's interval from Walsh averages as in
Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd ed. (2014), chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from paribus.core import Comparison, units

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


# Single order statistics of all pairwise sums, without making the sums: for many blocks.
#
# The n (n + 1) / 2 sums of 5,000 values take 100 MB and a quarter of a second to order; the few
# that an interval needs are found by counting how many lie below a guess, which sorted values make
# cheap. Idea: D. B. Johnson & T. Mizoguchi, SIAM J. Comput. 7 (1978) 147.

FEW = 8
"""Sums per value that are sorted at the end, instead of halving the range further."""

SAMPLE = 64
"""Values whose sums give the first guess."""


def ordered_sums(values: Floats, ranks: Sequence[int]) -> list[float]:
    """Return the sums x_i + x_j, i <= j, of `ranks` (from 0) in ascending order of all sums.

    `values` are finite, in any order. Equal to sorting all sums, to the last bit but one.
    """
    import numpy as np

    ordered = np.sort(values)
    n = len(ordered)
    spread = ordered[np.linspace(0, n - 1, min(n, SAMPLE)).astype(int)]
    one, other = np.triu_indices(len(spread))
    guesses = np.sort(spread[one] + spread[other])
    total = n * (n + 1) // 2
    return [_at_rank(ordered, rank, guesses, rank / max(1, total - 1)) for rank in ranks]


def _at_rank(ordered: Floats, rank: int, guesses: Floats, share: float) -> float:
    """Return the sum of `rank`; about `share` of the `guesses` lie below it."""
    import numpy as np

    n = len(ordered)
    beyond = 1e-9 * float(ordered[-1] - ordered[0] + np.abs(ordered).max()) + 1e-300
    place, step = int(share * (len(guesses) - 1)), max(1, len(guesses) // 50)
    # At most `rank` sums are at or below `low`, more than `rank` at or below `high`.
    low, high = 2 * float(ordered[0]) - beyond, 2 * float(ordered[-1]) + beyond
    below, up_to = 0, n * (n + 1) // 2
    nearer = [
        float(guesses[max(0, place - step)]),
        float(guesses[min(len(guesses) - 1, place + step)]),
    ]
    while up_to - below > FEW * n:
        middle = nearer.pop() if nearer else low / 2 + high / 2
        if not low < middle < high:
            if nearer or middle not in (low, high):
                continue
            return high  # all sums left are equal to it
        count = int(_partners(ordered, middle).sum())
        if count > rank:
            high, up_to = middle, count
        else:
            low, below = middle, count
    begins = _partners(ordered, low)
    counts = _partners(ordered, high) - begins
    rows = np.repeat(np.arange(n), counts)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    sums = ordered[rows] + ordered[rows + begins[rows] + inside]
    return float(np.sort(sums)[rank - int(begins.sum())])


def _partners(ordered: Floats, limit: float) -> NDArray[np.int64]:
    """Return, for each x_i, how many x_j with j >= i give a sum at or below `limit`."""
    import numpy as np

    found = np.searchsorted(ordered, limit - ordered, side="right") - np.arange(len(ordered))
    partners: NDArray[np.int64] = np.maximum(found, 0)
    return partners


EXACT_UP_TO = 500
"""Blocks up to which the distribution is exact; beyond, its expansion gives the same ranks."""

ALL_SUMS_UP_TO = 150
"""Blocks up to which making and ordering all sums is quicker than finding the few that count."""

MOST_BLOCKS = 10_000
"""Blocks beyond which `compare` refuses: their Walsh averages would take over 400 MB."""


@lru_cache(maxsize=16)
def signed_rank_cdf(n: int) -> Floats:
    """Return P(W <= w) for w = 0 ... n(n+1)/2, W the sum of those ranks 1..n with a coin's heads.

    Exact: adds one rank after the other to the distribution; n^3/6 additions.
    """
    import numpy as np

    chance = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(chance) + rank)
        longer[: len(chance)] = chance
        longer[rank:] += chance
        chance = longer / 2
    cdf: Floats = np.cumsum(chance)
    return cdf


@lru_cache(maxsize=4096)
def critical_rank(n: int, alpha: float) -> int:
    """Return the largest k with P(W <= k) <= alpha / 2, or -1 if even k = 0 is too likely.

    Beyond EXACT_UP_TO ranks by the Cornish-Fisher expansion to the fourth cumulant.
    """
    import numpy as np

    if n <= EXACT_UP_TO:
        # The slack keeps a level written as 1 - 2/256 from missing the 1/256 that it means.
        limit = alpha / 2 * (1 + 1e-12)
        return int(np.searchsorted(signed_rank_cdf(n), limit, side="right")) - 1
    mean = n * (n + 1) / 4
    variance = n * (n + 1) * (2 * n + 1) / 24
    fourth = -n * (n + 1) * (2 * n + 1) * (3 * n * n + 3 * n - 1) / 240
    z = NormalDist().inv_cdf(alpha / 2)
    z += fourth / (24 * variance**2) * (z**3 - 3 * z)
    return math.floor(mean + math.sqrt(variance) * z - 0.5)


def fewest_pairs(alpha: float) -> int:
    """Return from how many pairs on there is an interval: all on one side are rarer than alpha.

    6 at 5 %, 7 where two arms share it.
    """
    return next(n for n in count(1) if critical_rank(n, alpha) >= 0)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[Any, Any]:
    """Return the indices of all pairs of `n` values: one addition of 1275 instead of 50 of 25."""
    import numpy as np

    return np.triu_indices(n)


def _walsh_sums(values: Floats) -> Floats:
    """Return the sums of all pairs along the last axis, each value with itself included."""
    import numpy as np

    n = values.shape[-1]
    if values.ndim == 1 and n <= ALL_SUMS_UP_TO:
        one, other = _pairs(n)
        row: Floats = values[one] + values[other]
        return row
    sums = np.empty((*values.shape[:-1], n * (n + 1) // 2))
    start = 0
    for i in range(n):
        np.add(values[..., i : i + 1], values[..., i:], out=sums[..., start : start + n - i])
        start += n - i
    return sums


def hodges_lehmann(values: Floats, alpha: float) -> tuple[Any, Any, Any]:
    """Return estimate, lower and upper end at confidence 1 - alpha, along the last axis.

    `values` are finite. The ends are -inf and inf where the values are too few for `alpha`.
    """
    import numpy as np

    n = values.shape[-1]
    m = n * (n + 1) // 2
    k = critical_rank(n, alpha)
    middle = ((m - 1) // 2, m // 2)
    if values.ndim == 1 and n > ALL_SUMS_UP_TO:
        low, one, other, high = ordered_sums(values, (max(k, 0), *middle, m - 1 - max(k, 0)))
        ends = (low / 2, high / 2) if k >= 0 else (-math.inf, math.inf)
        return np.array((one + other) / 4), np.array(ends[0]), np.array(ends[1])
    sums = _walsh_sums(values)
    sums.partition(sorted({*middle, max(k, 0), m - 1 - max(k, 0)}), axis=-1)
    estimate = (sums[..., middle[0]] + sums[..., middle[1]]) / 4
    if k < 0:
        return estimate, np.full_like(estimate, -np.inf), np.full_like(estimate, np.inf)
    return estimate, sums[..., k] / 2, sums[..., m - 1 - k] / 2


def _with_infinite(values: Floats, alpha: float) -> tuple[float, float, float]:
    """Return what `hodges_lehmann` does, for one row with +-inf in it.

    A pair of +inf and -inf has no average. The interval allows it any (so it can only become
    wider); the estimate takes half of such pairs for small and half for large, which is the
    median of the others.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):
        sums = np.sort(_walsh_sums(values))
    m = len(sums)
    known = m - int(np.isnan(sums).sum())
    low, high = float(sums[(known - 1) // 2]), float(sums[known // 2])
    estimate = 0.0 if low == -high else (low + high) / 4
    k = critical_rank(len(values), alpha)
    below = k - (m - known)
    if k < 0:
        return estimate, -math.inf, math.inf
    return (
        estimate,
        float(sums[below]) / 2 if below >= 0 else -math.inf,
        float(sums[m - 1 - k]) / 2 if m - 1 - k < known else math.inf,
    )


def compare(log_ratios: Sequence[float], level: float) -> Comparison:
    """Return the ratio of arm to reference with its interval at confidence `level`.

    `log_ratios` holds one ln(arm / reference) per block, in any order; +-inf stands for a launch
    cut off by a time limit and ranks last. The ends are 0 and inf while the blocks are too few
    for `level` (8 for 0.987). Raises ValueError for no blocks, NaN, more than MOST_BLOCKS blocks
    and a `level` outside 0.5 <= level < 1 (it is the confidence, not the error).
    """
    return _compare(tuple(map(float, log_ratios)), level)


@lru_cache(maxsize=64)  # a study's looks are replayed after each block
def _compare(log_ratios: tuple[float, ...], level: float) -> Comparison:
    import numpy as np

    values = np.asarray(log_ratios, dtype=np.float64)
    if not len(values):
        raise ValueError("no block was completed by both arms")
    if len(values) > MOST_BLOCKS:
        many = units.count(len(values), "block")
        raise ValueError(f"{many}; intervals are made for at most {MOST_BLOCKS}")
    if np.isnan(values).any():
        raise ValueError("a log ratio is NaN")
    if not 0.5 <= level < 1:
        raise ValueError(f"a confidence of {level}; write for example 0.95")
    alpha = round(1 - level, 12)
    interval = hodges_lehmann if np.isfinite(values).all() else _with_infinite
    with np.errstate(over="ignore"):
        ratio, low, high = (float(np.exp(x)) for x in interval(values, alpha))
    return Comparison(blocks=len(values), ratio=ratio, low=low, high=high, level=level)
