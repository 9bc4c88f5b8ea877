"""The change of an effect between two studies: a ratio of two ratios, with its interval.

The blocks of two studies are independent samples of log ratios, so nothing can be paired across
them. Each study has an interval of its own that holds whatever its noise and wherever it stopped
(estimate.py, looks.py); the interval of the difference follows from the distances of the four ends
to the two estimates (G. Y. Zou & A. Donner, Stat. Med. 27 (2008) 1693). It needs no equal scatter
and no equal number of blocks, which a rank-sum interval would.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from paribus.core import Comparison
from paribus.stats.estimate import compare
from paribus.stats.family import LEAST_FOR_SHARE, benjamini_hochberg
from paribus.stats.looks import LOOKS, Looks

LEAST_P = 1e-12
"""`compare` rounds an error to so many digits."""


class Claim(NamedTuple):
    """Whether the family supports a word on the change of a case, and the level to print."""

    supported: bool
    level: float


def change(before: Comparison, after: Comparison) -> Comparison:
    """Return `after` over `before`, with its interval; level and blocks are the lower of the two.

    With intervals at the level of a look the interval of the change misses the truth in at most 5 %
    of pairs of studies, each stopped by its own looks (tests/test_stats_change.py). Raises
    ValueError where one of the ratios is zero or infinite.
    """
    if not (0 < before.ratio < math.inf and 0 < after.ratio < math.inf):
        raise ValueError(f"no ratio of {after.ratio} to {before.ratio}")
    first, second = _distances(before), _distances(after)
    middle = math.log(after.ratio) - math.log(before.ratio)
    low = middle - math.hypot(second[0], first[1])
    high = middle + math.hypot(second[1], first[0])
    ratio, low, high = (math.exp(x) if x < 700 else math.inf for x in (middle, low, high))
    blocks, level = min(before.blocks, after.blocks), min(before.level, after.level)
    return Comparison(blocks, ratio, low, high, level)


def _distances(one: Comparison) -> tuple[float, float]:
    """Return how far the ends of an interval are below and above its ratio, on the log scale."""
    below = math.log(one.ratio / one.low) if one.low > 0 else math.inf
    return below, math.log(one.high / one.ratio)


def change_p(before: Sequence[float], after: Sequence[float], margin: float) -> float:
    """Return the smallest error, from LEAST_P on, at which the interval of the change has a word.

    That is where it lies wholly beyond the margin or wholly inside; 1 where no error below one half
    gives a word.
    """
    delta = math.log1p(margin)

    def has_word(error: float) -> bool:
        try:
            found = change(compare(before, 1 - error), compare(after, 1 - error))
        except ValueError:  # a ratio without a limit has no change
            return False
        low = math.log(found.low) if found.low > 0 else -math.inf
        high = math.log(found.high)
        return low > delta or high < -delta or -delta < low <= high < delta

    low, high = math.log10(LEAST_P), math.log10(0.5)
    if not has_word(10**high):
        return 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if has_word(10**middle) else (middle, high)
    return float(10**high)


def claims(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
    margins: Sequence[float],
    looks: tuple[Looks, Looks],
    error: float,
) -> tuple[Claim, ...]:
    """Return for the log ratios of each case in two studies whether a word on it is supported.

    As family.claims: p corrected for the looks of both studies, then by Benjamini and Hochberg from
    8 cases on, below by Hochberg; supported cases get the level of false coverage.
    """
    p = [change_p(*pair, margin) for pair, margin in zip(pairs, margins, strict=True)]
    members = [i for i, pair in enumerate(pairs) if min(map(len, pair)) >= LOOKS[0]]
    alone = [max(one.any_p(p[i]) for one in looks) for i in members]
    corrected = (benjamini_hochberg if len(alone) >= LEAST_FOR_SHARE else hochberg)(alone)
    supported = {i for i, one in zip(members, corrected, strict=True) if one <= error}
    usual = min(one.level for one in looks)
    share = error * len(supported) / max(1, len(members))
    selected = 0.0
    if supported:
        selected = min(one.nominal(share) for one in looks)
    return tuple(
        Claim(i in supported, 1 - (max(p[i], selected) if i in supported else usual))
        for i in range(len(pairs))
    )


def hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the chance of any false one, if they depend positively.

    Y. Hochberg, Biometrika 75 (1988) 800; positive dependence is that of cases of one launch.
    """
    adjusted = [1.0] * len(p_values)
    least = 1.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i], reverse=True)
    for place, i in enumerate(order):
        least = min(least, p_values[i] * (place + 1))
        adjusted[i] = least
    return adjusted
