"""Checks 21 and 22: sessions as units, and watching without an end."""

from __future__ import annotations

import math

import numpy as np

from paribus.stats.betting import confidence_sequence, scales, scores, wealth
from validation.figures import Check, Figure
from validation.noise import NOISE
from validation.studies import any_look_error, intervals_of, pair_up

WATCHED = 200
"""Blocks for which an endless study is followed here."""


def session_medians(launches: np.ndarray) -> np.ndarray:
    """Return the value of each session, launches along the last axis (logs in, logs out)."""
    return np.median(launches, axis=-1)


def sessions(studies: int) -> Check:
    """Check 21: launches that share a session are not evidence of their own."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(21)

    def launches_of(count: int) -> np.ndarray:
        session = rng.normal(0, 0.01, (studies, 2 * count, 1))
        return session + rng.normal(0, 0.01, (studies, 2 * count, 10))

    pairs = {}
    for count in (1, 3, 8):
        found = launches_of(count)
        one, other = (found[:, part::2].reshape(studies, -1) for part in (0, 1))
        p = ttest_ind(one, other, axis=1, equal_var=False).pvalue
        pairs[f"{count} pair{'s' * (count > 1)}"] = float((p < 0.05).mean())
    units = intervals_of(pair_up(rng, session_medians(launches_of(60))))
    return Check(
        21,
        "Sessions",
        f"{studies:,} studies of identical arms, sessions of ten launches, sd 1 % between sessions "
        "and 1 % between launches; at any look of up to 60 pairs of sessions. Control: Welch's t "
        "on launches.",
        (
            Figure("sessions as units differ", {"": any_look_error(units)}, "<=", 0.057),
            Figure("control: launches as units", pairs, ">=", 0.30),
        ),
    )


def ever_excludes(ratios: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """Return for each study (row) whether its confidence sequence ever excludes a ratio of 1."""
    limit = 2 / (1 - confidence)
    scale = scales(ratios)
    score = scores(ratios, scale, 0.0)
    return np.maximum(wealth(score), wealth(-score)).max(axis=1) >= limit


def disagreements(ratios: np.ndarray) -> int:
    """Return in how many studies `confidence_sequence` itself says otherwise."""
    wrong = 0
    for row, excludes in zip(ratios, ever_excludes(ratios), strict=True):
        found = confidence_sequence(row.tolist())
        wrong += bool(excludes) != (found.moved is not None or found.low > 0 or found.high < 0)
    return wrong


def monitor(studies: int) -> Check:
    """Check 22: the interval of endless watching, valid whenever one looks."""
    error = {}
    for name in NOISE:
        rng = np.random.default_rng([22, list(NOISE).index(name)])
        error[name] = float(
            ever_excludes(pair_up(rng, NOISE[name](rng, studies, 2 * WATCHED))).mean()
        )
    rng = np.random.default_rng(22)
    some = pair_up(rng, NOISE["N1"](rng, 40, 2 * WATCHED))
    some[::2] += math.log1p(0.01)
    return Check(
        22,
        "Monitoring",
        f"{studies:,} studies for each kind of noise, identical arms, looked at after each of "
        f"{WATCHED} blocks (betting confidence sequence).",
        (
            Figure("the interval ever excludes 1", error, "<=", 0.05),
            Figure(
                "of 40 studies, confidence_sequence disagrees",
                {"": disagreements(some)},
                "=",
                0,
                "",
            ),
        ),
    )
