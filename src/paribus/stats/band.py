"""A simultaneous band over the cases of a benchmark: intervals that hold all at once.

Each case has the exact signed-rank interval of estimate.compare. Its level follows from how small
the smallest p of all cases is by chance: counted among flips of the signs of whole blocks, in which
the cases vary together as they do in the data (family.flipped_p; P. H. Westfall & S. S. Young,
*Resampling-Based Multiple Testing*, Wiley 1993, section 2.6). That amounts to so many independent
cases, at most all; each of them then has its share of the error over all looks.
docs/statistics-details.md has the measured error rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import Comparison
from paribus.stats.estimate import compare
from paribus.stats.family import counts_at_looks, flipped_p
from paribus.stats.looks import Looks

LEAST_BLOCKS = 12
"""The fewest blocks whose signs show how cases depend on each other."""


def band(
    series: Sequence[Mapping[int, float]], looks: Looks, *, seed: int, error: float
) -> tuple[Comparison, ...]:
    """Return the ratio of each case, with intervals that hold all true ratios at once.

    `series` hold the log ratios of a case by block, up to the look at which the study stands; with
    the chance 1 - `error` all ratios lie in their intervals, whatever rule stopped at one of the
    `looks`. Raises ValueError for no series, and what `compare` raises.
    """
    if not series:
        raise ValueError("a band over no cases")
    alike = error / _pointwise(series, seed, error)
    return tuple(
        compare(list(one.values()), 1 - looks.nominal(error / alike, at))
        for one, at in zip(series, counts_at_looks(series, looks), strict=True)
    )


def _pointwise(series: Sequence[Mapping[int, float]], seed: int, error: float) -> float:
    """Return the error of each case with which any case errs in at most `error` of flips.

    At least what independent cases have (Bonferroni), at most all of it.
    """
    smallest = sorted(flipped_p(series, seed).min(axis=0).tolist())
    place = int(error * (len(smallest) + 1)) - 1
    found = smallest[place] if place >= 0 else 0.0
    return min(error, max(found, error / len(series)))
