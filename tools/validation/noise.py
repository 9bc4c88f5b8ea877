"""Noise: functions of (rng, studies, launches) that return the log time of each launch.

A row is a series of launches of one unchanged machine, in the order of time: both arms of a
simulated study are drawn from it, so that any difference found between them is a false one.
"""

from __future__ import annotations

import csv
import gzip
import math
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2] / "tests" / "data"


def normal(rng: np.random.Generator, studies: int, launches: int, sd: float = 0.015) -> np.ndarray:
    return rng.normal(0, sd, (studies, launches))


def outliers(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    slowed = rng.random((studies, launches)) < 0.07
    slowdown = np.log1p(rng.exponential(0.40, (studies, launches)))
    return normal(rng, studies, launches, 0.02) + slowed * slowdown


def drift(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    level = np.empty((studies, launches))
    level[:, 0] = rng.normal(0, 0.015, studies)
    steps = rng.normal(0, 0.015 * math.sqrt(1 - 0.95**2), (studies, launches))
    for i in range(1, launches):
        level[:, i] = 0.95 * level[:, i - 1] + steps[:, i]
    return level + normal(rng, studies, launches)


def sticky(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    """Two states 8 % apart, 70 % of the time in the fast one, left about once in 40 launches."""
    slow = np.empty((studies, launches), dtype=bool)
    slow[:, 0] = rng.random(studies) < 0.3
    leave = rng.random((studies, launches))
    for i in range(1, launches):
        leaves = leave[:, i] < np.where(slow[:, i - 1], 0.7 / 20, 0.3 / 20)
        slow[:, i] = slow[:, i - 1] ^ leaves
    return 0.08 * slow + normal(rng, studies, launches)


def bimodal(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return 0.08 * (rng.random((studies, launches)) < 0.3) + normal(rng, studies, launches)


def steps(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    change = (rng.random((studies, launches)) < 1 / 80) * rng.choice([-1, 1], (studies, launches))
    return 0.04 * np.cumsum(change, axis=1) + normal(rng, studies, launches)


def alternating(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    return 0.08 * (np.arange(launches) % 2) + normal(rng, studies, launches)


@cache
def recorded_series(statistic: str = "p50") -> np.ndarray:
    """Return the logs of a statistic of the recorded launches: transport and section, then time."""
    path = DATA / "noise-launches.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    sections = ("pp8", "pp4k", "pp1m", "ar8", "triad")
    return np.log(
        [
            [float(row[f"{section}_{statistic}"]) for row in rows if row["transport"] == transport]
            for transport in ("shm", "tcp")
            for section in sections
        ]
    )


def stretches(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    """Return indices of recorded launches: random stretches of 40 in a row, one after another."""
    starts = rng.integers(0, recorded_series().shape[1] - 40, (studies, launches // 40))
    return (starts[..., None] + np.arange(40)).reshape(studies, launches)


def recorded(rng: np.random.Generator, studies: int, launches: int) -> np.ndarray:
    series = rng.integers(0, len(recorded_series()), (studies, 1))
    return recorded_series()[series, stretches(rng, studies, launches)]


NOISE = {
    "N1": normal,
    "N2": outliers,
    "Drift": drift,
    "Sticky": sticky,
    "Steps": steps,
    "Alternating": alternating,
    "Bimodal": bimodal,
    "Recorded": recorded,
}
REQUIRED = ("N1", "N2", "Drift", "Sticky", "Steps", "Alternating")
