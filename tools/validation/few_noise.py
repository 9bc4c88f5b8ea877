"""Noise that a shuffled start could suffer from: heavy tails, order in time, arms unlike in kind.

Functions of (rng, studies, launches) as in noise.py. Those of UNLIKE return the log times of the
reference and of the arm, shifted so that the pseudo-median of their difference is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

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
    "second state 10 %": (0.015, 0.015, 0.10),
    "30 %": (0.015, 0.015, 0.30),
    "50 %": (0.015, 0.015, 0.50),
    "scatter 1 to 2": (0.010, 0.020, 0.0),
    "1 to 5": (0.005, 0.025, 0.0),
    "1 to 10": (0.002, 0.020, 0.0),
    "1 to 30": (0.001, 0.030, 0.0),
}
"""Standard deviations of reference and arm, and the arm's share of launches 8 % slower."""


def unlike(
    rng: np.random.Generator, studies: int, launches: int, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the logs of launches of two arms that differ in kind and not in the ratio."""
    ours, theirs, share = UNLIKE[name]
    return (
        normal(rng, studies, launches, ours),
        _second_state(rng, studies, launches, theirs, share) - _centre(name),
    )


def _second_state(
    rng: np.random.Generator, studies: int, launches: int, sd: float, share: float
) -> np.ndarray:
    slow = rng.random((studies, launches)) < share
    return normal(rng, studies, launches, sd) + 0.08 * slow


@cache
def _centre(name: str) -> float:
    """Return the median of the average of two differences of the arms."""
    ours, theirs, share = UNLIKE[name]
    if not share:
        return 0.0
    rng = np.random.default_rng(9)
    ratios = _second_state(rng, 2, 1_000_000, theirs, share) - normal(rng, 2, 1_000_000, ours)
    return float(np.median(ratios.mean(axis=0)))
