"""Drift: launches that resemble their neighbours more than those further off in time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_LAUNCHES = 12
LEAST_DIFFERENCES = 8
"""A lag with fewer pairs of launches than this has no entry in the table."""

LAGS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Drift:
    """How the launches of one arm follow each other in time.

    `lag1` and `lag5` are rank autocorrelations; `noise` is the bound that lag 1 rarely passes by
    chance, and `drifting` says whether it does. `lags` holds (lag, share): the robust standard
    deviation of a launch against the one so many launches later, as a share of the value.
    """

    launches: int
    lag1: float
    lag5: float
    noise: float
    drifting: bool
    lags: tuple[tuple[int, float], ...]


def drift(values: Sequence[float]) -> Drift | None:
    """Return how the launch medians of one arm, in order of time, depend on each other.

    None for fewer than LEAST_LAUNCHES.

    A lag's figure is 1.4826 times the median of |ln L[t + lag] - ln L[t]|, over sqrt 2: what two
    independent launches with that standard deviation would show. It is taken about zero and not
    about the median of the differences, because a steady trend is a drift too. `noise` is
    1.96 / sqrt n (Bartlett); independent launches pass it in 0.5 % (12 launches) to 1.7 % (60) of
    arms, as only a positive lag 1 is drift (tests/test_stats_warnings.py). Raises
    ValueError for values that are not finite and above zero.
    """
    n = len(values)
    if any(not (math.isfinite(value) and value > 0) for value in values):
        raise ValueError("drift of launches that are not all finite and above zero")
    if n < LEAST_LAUNCHES:
        return None
    logs = [math.log(value) for value in values]
    ranks = _centred_ranks(logs)
    noise = 1.96 / math.sqrt(n)
    lag1 = _autocorrelation(ranks, 1)
    lags = [(lag, _apart(logs, lag)) for lag in LAGS if n - lag >= LEAST_DIFFERENCES]
    return Drift(n, lag1, _autocorrelation(ranks, 5), noise, lag1 > noise, tuple(lags))


def _centred_ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks less their mean; equal values share the mean of theirs."""
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for rank, value in enumerate(sorted(values)):
        first.setdefault(value, rank)
        last[value] = rank
    middle = (len(values) - 1) / 2
    return [(first[value] + last[value]) / 2 - middle for value in values]


def _autocorrelation(centred: Sequence[float], lag: int) -> float:
    square = math.fsum(x * x for x in centred)
    if not square:
        return 0.0
    return math.fsum(x * y for x, y in zip(centred, centred[lag:], strict=False)) / square


def _apart(logs: Sequence[float], lag: int) -> float:
    differences = [abs(b - a) for a, b in zip(logs, logs[lag:], strict=False)]
    return math.expm1(1.4826 * statistics.median(differences) / math.sqrt(2))
