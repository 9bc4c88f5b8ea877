"""One figure for a launch, and three for the launches of an arm."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from paribus.judgement import Spread


def _checked(values: Iterable[float], what: str) -> list[float]:
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
