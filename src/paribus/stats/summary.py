"""Samples to one figure of a launch, its median, and launches to the quartiles of an arm."""

from __future__ import annotations

import bisect
import math
import statistics
from array import array
from collections.abc import Iterable, Mapping, Sequence

from paribus.core import Direction, Endpoint, Spread

SHARES: Mapping[Endpoint, float] = {"median": 0.50, "p99": 0.99, "p25": 0.25, "min": 0.0}
"""The share of a launch's samples that are better than the endpoint."""

LEAST_SAMPLES: Mapping[Endpoint, int] = {"median": 1, "p99": 100, "p25": 4, "min": 1}
"""The fewest samples of an endpoint: the p99 of 50 would be the worst but one."""

INTERFERENCE = 5.0
"""An iteration this many times the median of its launch was interrupted by something else."""

LEAST_STEPS = 4
"""The fewest steps of a launch whose scatter is judged."""

MOST_STEPS = 40
"""Steps of a launch of which pairs are made: 780."""


def _checked(values: Iterable[float], what: str) -> list[float]:
    """Return the values; raises ValueError, which names `what` was asked, as documented below."""
    numbers = list(values)
    if not numbers:
        raise ValueError(f"{what} of no values")
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"{what} of values that are not all finite")
    return numbers


def launch_median(values: Sequence[float]) -> float:
    """Return the median of the samples of one launch, in their unit.

    The median, because a mean follows the few interrupted iterations: on recorded launches of
    MPI operations, intervals from means were 5 to 47 times wider (docs/statistics.md). Raises
    ValueError for no values and for NaN or infinity.
    """
    return statistics.median(_checked(values, "median"))


def ascending(values: Sequence[float]) -> Sequence[float]:
    """Return `values` in ascending order; an array is sorted as one, many times faster."""
    if not isinstance(values, array):
        return sorted(values)
    import numpy as np

    ordered = values[:]
    np.frombuffer(ordered).sort()
    return ordered


def endpoint(ordered: Sequence[float], which: Endpoint, better: Direction) -> float:
    """Return the endpoint `which` of a launch's samples in ascending order, in their unit.

    Counted from the good end: for rates (`better` "higher") p99 is the 1st percentile, p25 the
    75th and "min" the maximum. Interpolates linearly between order statistics (type 7 of Hyndman
    & Fan, 1996). Raises ValueError for fewer samples than LEAST_SAMPLES.
    """
    n = len(ordered)
    if n < LEAST_SAMPLES[which]:
        raise ValueError(f"{which} of {n} samples; it takes {LEAST_SAMPLES[which]}")
    share = SHARES[which] if better == "lower" else 1 - SHARES[which]
    # Rounded, because 0.99 * 200 is not whole, and the neighbour would be weighed in by 1e-14.
    place = round((n - 1) * share, 9)
    below = int(place)
    part = place - below
    if not part:
        return ordered[below]
    return ordered[below] * (1 - part) + ordered[below + 1] * part


def interrupted(ordered: Sequence[float], better: Direction = "lower") -> int:
    """Return how many of a launch's samples, in ascending order, are INTERFERENCE times its median.

    Rates count as their inverse. Such iterations were interrupted; the median absorbs them, and a
    report names their share.
    """
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    if better == "lower":
        return len(ordered) - bisect.bisect_right(ordered, INTERFERENCE * middle)
    return bisect.bisect_left(ordered, middle / INTERFERENCE)


def spread(medians: Sequence[float]) -> Spread:
    """Return count, median and quartiles of launch medians, in their unit.

    Quartiles interpolate linearly between order statistics (type 7 of Hyndman & Fan, 1996, the
    default of numpy and R). Raises ValueError for no values and for NaN or infinity.
    """
    numbers = _checked(medians, "spread")
    if len(numbers) == 1:
        return Spread(1, numbers[0], numbers[0], numbers[0])
    low, middle, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return Spread(len(numbers), middle, low, high)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean: the mean that agrees with ratios, whatever the scale of each.

    Raises ValueError for no values and for any that is not finite and above zero.
    """
    numbers = _checked(values, "geometric mean")
    if min(numbers) <= 0:
        raise ValueError(f"geometric mean of {min(numbers)}, which is not above zero")
    return math.exp(math.fsum(map(math.log, numbers)) / len(numbers))


def robust_sd(values: Sequence[float]) -> float:
    """Return 1.4826 times the median absolute deviation: the standard deviation in normal noise."""
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - middle) for value in values)


def thinned(steps: Sequence[float]) -> Sequence[float]:
    """Return at most MOST_STEPS quantiles of the `steps` of a launch, which are ascending.

    Return none where there are fewer than LEAST_STEPS.
    """
    n = len(steps)
    if n <= MOST_STEPS:
        return steps if n >= LEAST_STEPS else ()
    return [steps[int((i + 0.5) * n / MOST_STEPS)] for i in range(MOST_STEPS)]
