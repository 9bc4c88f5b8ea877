"""Checks 26 to 29: the design for few launches, in every kind of noise and of arms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from paribus.stats import few
from validation.few_noise import ALIKE, UNLIKE
from validation.few_studies import (
    EQUAL,
    FASTER,
    SLOWER,
    any_look_error,
    ended,
    judged_otherwise,
    study,
)
from validation.figures import Check, Figure
from validation.noise import NOISE
from validation.studies import MARGIN, OTHER_MARGIN

EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.30)


def few_launches(studies: int) -> Check:
    """Check 26: the promises of check 1 to 4, for looks from 5 blocks on."""
    names = (*NOISE, *ALIKE)
    agree = study("Alternating", studies)
    five = np.sign(agree.arm[:, : few.START] - agree.reference[:, : few.START]).sum(axis=1)
    return Check(
        26,
        "Few launches, arms alike",
        f"{studies:,} studies for each kind of noise, looked at 16 times from 5 blocks on, the "
        "first five shuffled; margin 2 %. At the margin the larger share of the two sides, of "
        "coverage the least over effects of 0, 0.5, 1, 2, 5 and 30 %. Control: five pairs in a "
        "row that agree, which pairs alone would have to count as a difference.",
        (
            *_promises(names, studies),
            Figure(
                "control: five pairs agree, Alternating",
                {"": float((np.abs(five) == few.START).mean())},
                ">=",
                0.05,
            ),
        ),
    )


def few_launches_unlike(studies: int) -> Check:
    """Check 27: the same where the arms differ in kind."""
    return Check(
        27,
        "Few launches, arms that differ in kind",
        f"{studies:,} studies for each kind, the true ratio being 1: the arm alone has a second "
        "state 8 % slower in 10, 30 or 50 % of launches, or scatters 2 to 30 times as much.",
        tuple(_promises(tuple(UNLIKE), studies)),
    )


def _promises(names: Iterable[str], studies: int) -> Iterable[Figure]:
    names = tuple(names)
    yield Figure(
        "some look's interval excludes 1",
        {name: any_look_error(name, studies) for name in names},
        "<=",
        0.057,
    )
    yield Figure(
        "at the margin: decided, so wrongly",
        {
            name: max(
                ended(name, studies, effect).share(EQUAL, SLOWER, FASTER)
                for effect in (MARGIN, OTHER_MARGIN)
            )
            for name in names
        },
        "<=",
        0.057,
    )
    yield Figure(
        "final interval covers",
        {name: min(_covered(name, studies, effect) for effect in EFFECTS) for name in names},
        ">=",
        0.94,
    )
    yield Figure(
        "called faster or slower, no effect",
        {name: ended(name, studies, 0.0).share(SLOWER, FASTER) for name in names},
        "<=",
        0.011,
    )


def _covered(name: str, studies: int, effect: float) -> float:
    end, truth = ended(name, studies, effect), math.log1p(effect)
    return float(((end.low <= truth + 1e-12) & (truth - 1e-12 <= end.high)).mean())


def few_launches_cost(studies: int) -> Check:
    """Check 28: how soon it ends, and how often rightly."""
    quiet = {effect: ended("N1", studies, effect) for effect in (0.0, 0.05, 0.10, 0.30)}
    noisy = ended("N2", studies, 0.05)
    bounds = {0.0: 17.5, 0.05: 10.5, 0.10: 5.7, 0.30: 5.4}
    return Check(
        28,
        "Few launches, cost (N1, N2)",
        f"{studies:,} studies for each effect: blocks until the verdict, and right verdicts.",
        (
            *(
                Figure(
                    f"N1: mean blocks, {_named(effect)}",
                    {"": end.blocks},
                    "<=",
                    bounds[effect],
                    "blocks",
                )
                for effect, end in quiet.items()
            ),
            Figure(
                "N1: right verdict",
                {
                    _named(effect): end.share(EQUAL if effect < MARGIN else SLOWER)
                    for effect, end in quiet.items()
                },
                ">=",
                0.98,
            ),
            Figure("N2: right verdict, 5 %", {"": noisy.share(SLOWER)}, ">=", 0.97),
            Figure("N2: mean blocks, 5 %", {"": noisy.blocks}, "<=", 31, "blocks"),
        ),
    )


def _named(effect: float) -> str:
    return f"{effect * 100:g} %" if effect else "no effect"


def few_launches_exactness(intervals: int) -> Check:
    """Check 29: the distribution against enumeration, the ends, and the code against arrays."""
    sizes = ((5, 0), (5, 1), (5, 3), (5, 6), (4, 5), (0, 8))
    otherwise = sum(
        judged_otherwise(study(name, 200), effect, intervals // 10)
        for name in ("N1", "N2", "1 to 5")
        for effect in (0.0, MARGIN, 0.10)
    )
    return Check(
        29,
        "Few launches, exactness",
        "The distribution of the statistic against all orders of the start and all signs of the "
        f"pairs, up to 5 + 5 launches and 6 pairs; both ends of {intervals} random intervals "
        "against counting 1e-9 to either side; whole studies judged by the code and by the arrays "
        "of checks 26 to 28.",
        (
            Figure(
                "largest difference of probability",
                {"": max(enumerated_difference(*size) for size in sizes)},
                "<=",
                1e-12,
                "",
            ),
            Figure("ends elsewhere", {"": wrong_ends(intervals)}, "=", 0, ""),
            Figure("studies judged otherwise", {"": otherwise}, "=", 0, ""),
        ),
    )


def enumerated_difference(start: int, pairs: int) -> float:
    """Return how far the distribution is from counting all orders and signs of given launches."""
    rng = np.random.default_rng([29, start, pairs])
    launches, sizes = rng.normal(size=2 * start), np.abs(rng.normal(size=pairs))
    signs = np.array(list(itertools.product((-1, 1), repeat=pairs)))
    one, other = np.triu_indices(pairs)
    walsh = (signs[:, one] * sizes[one] + signs[:, other] * sizes[other] > 0).sum(axis=1)
    a, b = few.weights(start, pairs)
    counted = np.zeros(a * start**2 + b * len(one) + 1)
    for chosen in itertools.combinations(range(2 * start), start):
        arm, reference = launches[list(chosen)], np.delete(launches, list(chosen))
        np.add.at(counted, a * (arm[:, None] > reference).sum() + b * walsh, 1)
    cdf = np.cumsum(counted) / counted.sum()
    return float(np.abs(few.null_cdf(start, pairs) - cdf).max())


def wrong_ends(intervals: int) -> int:
    """Return how many of twice so many ends are not where the statistic crosses its limit."""
    wrong, nudge = 0, 1e-9
    for i in range(intervals):
        rng = np.random.default_rng([30, i])
        start, n = int(rng.choice([0, 4, 5])), int(rng.integers(8, 25))
        reference, arm = rng.normal(0, 0.02, n), rng.normal(0.01, 0.03, n)
        _, [(low, high)] = few.intervals(reference.tolist(), arm.tolist(), start, (0.01,))
        most = few.critical(start, n - start, 0.01)

        above = partial(_above, reference, arm, start)
        total = above(-math.inf)
        wrong += not above(high + nudge) <= most < above(high - nudge)
        wrong += not total - above(low - nudge) <= most < total - above(low + nudge)
    return wrong


def _above(reference: np.ndarray, arm: np.ndarray, start: int, theta: float) -> int:
    """Return the statistic at `theta`."""
    ratios = (arm - reference)[start:]
    one, other = np.triu_indices(len(ratios))
    a, b = few.weights(start, len(ratios))
    of_start = (arm[:start, None] - reference[None, :start] > theta).sum()
    return int(a * of_start + b * ((ratios[one] + ratios[other]) / 2 > theta).sum())
