"""Checks 26 to 29: the design for few launches, in every kind of noise and of arms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from paribus.stats import few
from validation.few_noise import ALIKE, UNLIKE
from validation.few_studies import (
    EQUAL,
    FASTER,
    SLOWER,
    Ended,
    any_look_error,
    bounds,
    ended,
    judged_otherwise,
    launches,
    run_to_the_end,
    study,
)
from validation.figures import Check, Figure
from validation.noise import NOISE
from validation.studies import MARGIN, OTHER_MARGIN

EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.30)
SHORTER = (12, 18, 28, 42)
"""Most blocks of other studies, one for each row of stats/few.toml but the last."""


def few_launches(studies: int) -> Check:
    """Check 26: the promises of check 1 to 4, for looks from 6 blocks on."""
    names = (*NOISE, *ALIKE)
    agree = study("Alternating", studies)
    six = np.sign(agree.arm[:, : few.START] - agree.reference[:, : few.START]).sum(axis=1)
    return Check(
        26,
        "Few launches, arms alike",
        f"{studies:,} studies for each kind of noise, looked at {len(few.LOOKS)} times from 6 "
        "blocks on, the first six shuffled; margin 2 %. At the margin the larger share of the two "
        "sides, of coverage the least over effects of 0, 0.5, 1, 2, 5 and 30 %. Control: six pairs "
        "in a row that agree, which pairs alone would have to count as a difference.",
        (
            *_promises(names, studies),
            Figure(
                "called faster or slower, no effect",
                {name: _kept(name, studies).reported for name in names},
                "<=",
                0.011,
            ),
            Figure(
                "control: six pairs agree, Alternating",
                {"": float((np.abs(six) == few.START).mean())},
                ">=",
                0.025,
            ),
        ),
    )


def few_launches_unlike(studies: int) -> Check:
    """Check 27: the same where the arms differ in kind."""
    name = "40 % at 12 %"
    without = bounds(*launches(name, studies), signs=False)
    return Check(
        27,
        "Few launches, arms that differ in kind",
        f"{studies:,} studies for each kind, half of all pairs above a true ratio of 1: the arm "
        "alone has a second state (10 % at 5 %: one launch in ten takes 5 % longer), or scatters 2 "
        "to 30 times as much. Control: without the sign test.",
        (
            *_promises(tuple(UNLIKE), studies),
            Figure(
                f"control: ranks alone, {name}, at the margin",
                {"": _wrong_at_the_margin(partial(run_to_the_end, without))},
                ">=",
                0.10,
            ),
        ),
    )


class Kept(NamedTuple):
    """Shares of studies: whose any look errs, wrong at the margin, covering, "no effect"."""

    any_look: float
    margin: float
    covers: float
    reported: float


@cache
def _kept(name: str, studies: int, most: int = few.LOOKS[-1]) -> Kept:
    """Return how the promises are kept in one kind of noise."""

    def end(effect: float) -> Ended:
        return ended(name, studies, effect, most)

    return Kept(
        any_look_error(name, studies, most),
        _wrong_at_the_margin(end),
        min(_covered(end(effect), effect) for effect in EFFECTS),
        end(0.0).share(SLOWER, FASTER),
    )


def _wrong_at_the_margin(end: Callable[[float], Ended]) -> float:
    return max(end(effect).share(EQUAL, SLOWER, FASTER) for effect in (MARGIN, OTHER_MARGIN))


def _covered(end: Ended, effect: float) -> float:
    truth = math.log1p(effect)
    return float(((end.low <= truth + 1e-12) & (truth - 1e-12 <= end.high)).mean())


def _promises(names: Sequence[str], studies: int) -> Iterable[Figure]:
    kept = {name: _kept(name, studies) for name in names}
    any_look = {name: one.any_look for name, one in kept.items()}
    yield Figure("some look's interval excludes 1", any_look, "<=", 0.057)
    margin = {name: one.margin for name, one in kept.items()}
    yield Figure("at the margin: decided, so wrongly", margin, "<=", 0.057)
    yield Figure(
        "final interval covers", {name: one.covers for name, one in kept.items()}, ">=", 0.94
    )
    shorter = {most: [_kept(name, studies // 2, most) for name in names] for most in SHORTER}
    yield Figure(
        "studies of at most so many blocks, worst kind: excludes 1, or wrong at the margin",
        {f"{most}": max(max(one[:2]) for one in every) for most, every in shorter.items()},
        "<=",
        0.057,
    )
    yield Figure(
        "studies of at most so many blocks, worst kind: final interval covers",
        {f"{most}": min(one.covers for one in every) for most, every in shorter.items()},
        ">=",
        0.94,
    )


def few_launches_cost(studies: int) -> Check:
    """Check 28: how soon it ends, and how often rightly."""
    quiet = {effect: ended("N1", studies, effect) for effect in (0.0, 0.05, 0.10, 0.30)}
    noisy = ended("N2", studies, 0.05)
    limits = {0.0: 18, 0.05: 10.8, 0.10: 6.7, 0.30: 6.4}
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
                    limits[effect],
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
    sizes = ((6, 0), (6, 1), (6, 3), (6, 6), (5, 5), (0, 8))
    otherwise = sum(
        judged_otherwise(study(name, 200), effect, intervals // 10)
        for name in ("N1", "N2", "1 to 5", "30 % at 12 %")
        for effect in (0.0, MARGIN, 0.10)
    )
    return Check(
        29,
        "Few launches, exactness",
        "The distribution of the statistic against all orders of the start and all signs of the "
        f"pairs, up to 6 + 6 launches and 6 pairs; both ends of {intervals} random intervals "
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
        start, n = int(rng.choice([0, 5, 6])), int(rng.integers(8, 25))
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
