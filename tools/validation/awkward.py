"""Launches that fail or are cut off, and machines that misbehave."""

from __future__ import annotations

from functools import cache

import numpy as np

from paribus.stats.reliability import failures_differ
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
