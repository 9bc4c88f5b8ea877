"""Check 16: what the analysis itself costs. Timed, so printed and never asserted by the tests."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from paribus.stats.estimate import compare
from paribus.stats.family import claims
from paribus.stats.verdict import judge
from validation.figures import Check, Figure
from validation.noise import normal
from validation.studies import (
    BLOCKS,
    LOOKS,
    MARGIN,
    any_look_error,
    intervals_of,
    pair_up,
    run_to_the_end,
)

ENDPOINTS = 100


def least_s(action: Callable[[], object], times: int = 5) -> float:
    """Return the shortest of some durations: what it costs when nothing else interferes."""
    spans = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        spans.append(time.perf_counter() - begin)
    return min(spans)


def analyse(rows: list[list[float]]) -> None:
    """Do everything that the looks of a study do with the log ratios of its endpoints."""
    for n in LOOKS.at:
        for row in rows:
            comparison = compare(row[:n], LOOKS.confidence)
            judge(comparison, better="lower", margin=MARGIN, last=n == BLOCKS)
        claims([dict(enumerate(row[:n])) for row in rows], [MARGIN] * len(rows), LOOKS, seed=1)


def simulate(studies: int) -> None:
    """Simulate whole studies, from launches to verdicts."""
    rng = np.random.default_rng(16)
    found = intervals_of(pair_up(rng, normal(rng, studies, 2 * BLOCKS)))
    any_look_error(found)
    run_to_the_end(found, math.expm1(0.01))


def speed(studies: int) -> Check:
    """Check 16: the time that 100 endpoints at six looks take, and one simulated study."""
    rows = np.random.default_rng(16).normal(0, 0.015, (ENDPOINTS, BLOCKS)).tolist()
    analyse(rows)  # fills the caches of distributions, as the first look of a study does
    return Check(
        16,
        "Cost of the analysis",
        f"{ENDPOINTS} endpoints at six looks of up to 60 blocks: intervals, verdicts, the family's "
        f"claims. {studies:,} simulated studies of 60 blocks, noise, six intervals and verdicts "
        "included. The shortest of five, on one core.",
        (
            Figure(
                "100 endpoints, six looks",
                {"": 1000 * least_s(lambda: analyse(rows))},
                "<=",
                100,
                "ms",
                timed=True,
            ),
            Figure(
                "one simulated study",
                {"": 1000 * least_s(lambda: simulate(studies)) / studies},
                "<=",
                0.2,
                "ms",
                timed=True,
            ),
        ),
    )
