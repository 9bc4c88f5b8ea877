"""How far values scatter, robustly and from few of them: half of all pairs differ by less.

The median absolute difference between two values, over 0.9539, is the standard deviation of
normal ones (M. I. Shamos, in *Algorithms and Complexity*, 1976). It bears 29 % of outliers, as
the Hodges-Lehmann estimate does, needs no centre, and from 8 values errs by a third (sd of its
log) where the median absolute deviation errs by 45 %.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence

MEDIAN_OF_DIFFERENCES = math.sqrt(2) * statistics.NormalDist().inv_cdf(0.75)
"""Median of |x - y| for two independent values of a normal distribution with sd 1: 0.9539."""

MOST_PAIRED = 1000
"""Values, the latest, of which pairs are made: half a million."""


def sd_of(values: Sequence[float]) -> float:
    """Return the standard deviation of `values`, in their unit; NaN for fewer than two."""
    import numpy as np

    if len(values) < 2:
        return math.nan
    recent = np.asarray(values[-MOST_PAIRED:], dtype=np.float64)
    first, second = np.triu_indices(len(recent), 1)
    return float(np.median(np.abs(recent[first] - recent[second]))) / MEDIAN_OF_DIFFERENCES


def sd_within(groups: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation inside `groups`, from pairs of one group; NaN without any."""
    pairs = (pair for group in groups for pair in itertools.combinations(group, 2))
    differences = [abs(x - y) for x, y in pairs]
    return statistics.median(differences) / MEDIAN_OF_DIFFERENCES if differences else math.nan
