"""Noise that a shuffled start could suffer from: heavy tails, order in time, arms unlike in kind.

Functions of (rng, studies, launches) as in noise.py. Those of UNLIKE return the log times of the
reference and of the arm, shifted so that the median of their difference is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np

from validation.noise import normal


def cauchy(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    shape = (studies, launches)
    return normal(rng, *shape) + (rng.random(shape) < 0.05) * 0.05 * rng.standard_cauchy(shape)


def skewed(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return 0.03 * rng.exponential(1, (studies, launches))


def trend(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return normal(rng, studies, launches) + 0.002 * np.arange(launches)


def autoregressive(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    steps = rng.normal(0, 0.03 * math.sqrt(1 - 0.8**2), (studies, launches))
    level = np.empty((studies, launches))
    level[:, 0] = rng.normal(0, 0.03, studies)
    for i in range(1, launches):
        level[:, i] = 0.8 * level[:, i - 1] + steps[:, i]
    return level


def three_outliers(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    """Three of the first eight launches take half as long again."""
    level = normal(rng, studies, launches)
    places = np.argsort(rng.random((studies, 8)), axis=1)[:, :3]
    level[np.arange(studies)[:, None], places] += 0.4
    return level


def alternating_far(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return 0.30 * (np.arange(launches) % 2) + normal(rng, studies, launches)


def period_four(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return 0.10 * ((np.arange(launches) // 2) % 2) + normal(rng, studies, launches)


ALIKE: dict[str, Callable[..., np.ndarray]] = {
    "Cauchy": cauchy,
    "skewed": skewed,
    "trend": trend,
    "AR .8": autoregressive,
    "3 outliers": three_outliers,
    "alternating 30 %": alternating_far,
    "period 4": period_four,
}
"""Both arms alike."""

UNLIKE = {
    **{
        f"{share} % at {apart} %": (0.015, 0.015, share / 100, apart / 100)
        for apart in (5, 12, 30)
        for share in (10, 30, 40, 50)
    },
    "scatter 1 to 2": (0.010, 0.020, 0.0, 0.0),
    "1 to 5": (0.005, 0.025, 0.0, 0.0),
    "1 to 10": (0.002, 0.020, 0.0, 0.0),
    "1 to 30": (0.001, 0.030, 0.0, 0.0),
}
"""Standard deviations of reference and arm, the arm's share of slow launches, and by how much."""


def unlike(
    rng: np.random.Generator, studies: int, launches: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logs of launches of two arms that differ in kind and not in the ratio."""
    ours, theirs, share, apart = UNLIKE[name]
    slow = rng.random((studies, launches)) < share
    return (
        normal(rng, studies, launches, ours),
        normal(rng, studies, launches, theirs) + apart * slow - _centre(name),
    )


@cache
def _centre(name: str) -> float:
    """Return the median difference of the arms: what half of all pairs exceed."""
    ours, theirs, share, apart = UNLIKE[name]
    noise = NormalDist(0, math.hypot(ours, theirs))
    low, high = 0.0, apart
    for _ in range(50):
        middle = (low + high) / 2
        below = (1 - share) * noise.cdf(middle) + share * noise.cdf(middle - apart)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return (low + high) / 2
