"""Check 23: alarms without a cause; and how often arms that fail alike are called different."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from paribus.stats.drift import drift
from paribus.stats.order import order_effect
from paribus.stats.reliability import failures_differ
from paribus.stats.states import two_states
from validation.figures import Check, Figure
from validation.studies import BLOCKS, LOOKS


def failures_called_different(share: float, studies: int) -> float:
    """Return how often arms that fail equally often are called different, at any look."""
    failed = np.random.default_rng(8).random((2, studies, BLOCKS)) < share
    p = cache(failures_differ)
    called = np.zeros(studies, dtype=bool)
    for n in LOOKS.at:
        reference, arm = failed[:, :, :n]
        only = (reference & ~arm).sum(axis=1), (arm & ~reference).sum(axis=1)
        called |= np.array([p(int(r), int(a)) < 0.05 for r, a in zip(*only, strict=True)])
    return float(called.mean())


def false_alarms(studies: int) -> Check:
    """Check 23: what the findings on awkward data see in launches of a quiet machine."""
    rng = np.random.default_rng(23)

    def reported(launches: int, found: Callable[[list[float]], bool]) -> float:
        rows = np.exp(rng.normal(0, 0.015, (studies, launches))).tolist()
        return sum(map(found, rows)) / studies

    def drifts(values: list[float]) -> bool:
        seen = drift(values)
        return seen is not None and seen.drifting

    def ordered(values: list[float]) -> bool:
        ratios = [math.log(value) for value in values]
        seen = order_effect(ratios[: len(ratios) // 3], ratios[len(ratios) // 3 :])
        return seen is not None and seen.found

    def both(found: Callable[[list[float]], bool]) -> dict[str, float]:
        return {f"{n} launches": reported(n, found) for n in (12, 60)}

    return Check(
        23,
        "False alarms",
        f"{studies:,} arms of independent launches in normal noise: findings without a cause.",
        (
            Figure("two states", both(lambda values: two_states(values) is not None), "<=", 0.02),
            Figure("drift", both(drifts), "<=", 0.03),
            Figure("order effect", both(ordered), "<=", 0.057),
        ),
    )
