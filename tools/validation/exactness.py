"""Checks 8 to 10: what must hold to the last digit, and the coin."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np

from paribus.stats.estimate import compare, signed_rank_cdf
from paribus.stats.schedule import arm_orders
from validation.figures import Check, Figure


def enumerated_difference(n: int) -> float:
    """Return the largest difference of the signed-rank distribution from all 2^n sign patterns."""
    ranks = np.arange(1, n + 1)
    signs = np.array(list(itertools.product((0, 1), repeat=n)))
    counted = np.bincount(signs @ ranks, minlength=n * (n + 1) // 2 + 1)
    return float(np.abs(signed_rank_cdf(n) - np.cumsum(counted) / 2**n).max())


def wrong_ends(intervals: int) -> int:
    """Return how many of twice so many interval ends are not where scipy's exact p crosses."""
    from scipy.stats import wilcoxon

    wrong, nudge = 0, 1e-9
    for i in range(intervals):
        rng = np.random.default_rng([8, i])
        n, alpha = int(rng.integers(9, 41)), float(rng.choice([0.10, 0.05, 0.013, 0.01]))
        d = rng.normal(0.01, 0.03, n)
        found = compare(d.tolist(), 1 - alpha)
        for end, outward in ((math.log(found.low), -nudge), (math.log(found.high), nudge)):
            outside, inside = (
                wilcoxon(d - end - step, method="exact").pvalue for step in (outward, -outward)
            )
            wrong += not outside <= alpha < inside
    return wrong


def exactness(intervals: int) -> Check:
    """Check 8: the distribution against enumeration, the interval against scipy."""
    return Check(
        8,
        "Exactness",
        f"The signed-rank distribution against all 2^n patterns, n to 12; both ends of {intervals} "
        "random intervals (9 to 40 blocks, four levels) against the exact Wilcoxon p of scipy, "
        "1e-9 to either side.",
        (
            Figure(
                "largest difference of probability",
                {"": max(enumerated_difference(n) for n in range(1, 13))},
                "=",
                0,
                "",
            ),
            Figure("ends elsewhere", {"": wrong_ends(intervals)}, "=", 0, ""),
        ),
    )


def equivariance(studies: int) -> Check:
    """Check 9: scaling shifts, swapping negates, the order of blocks is nothing."""

    def logs(values: np.ndarray) -> np.ndarray:
        found = compare(values.tolist(), 0.987)
        return np.log([found.ratio, found.low, found.high])

    rng = np.random.default_rng(9)
    scaled, swapped, permuted = [], [], []
    for _ in range(studies):
        d = rng.normal(0.01, 0.1, int(rng.integers(8, 61)))
        shift = math.log(rng.uniform(0.1, 10))
        base, mirror = logs(d), logs(-d)[[0, 2, 1]]
        scaled.append(np.abs(logs(d + shift) - base - shift).max())
        swapped.append(np.abs(mirror + base).max())
        permuted.append(np.abs(logs(rng.permutation(d)) - base).max())
    worst = {"scaled": scaled, "swapped": swapped, "permuted": permuted}
    return Check(
        9,
        "Equivariance",
        f"{studies} random studies; the arm scaled, the arms swapped, the blocks permuted: "
        "largest deviation of estimate and ends from what must follow, on the log scale.",
        (Figure("deviation", {k: float(max(v)) for k, v in worst.items()}, "<=", 1e-12, ""),),
    )


def randomiser(draws: int) -> Check:
    """Check 10: the coin is fair, and the same seed gives the same orders."""
    two = arm_orders(("a", "b"), draws, 2026, "check")
    three = arm_orders(("a", "b", "c"), draws, 2026, "check")
    places = Counter((arm, place) for order in three for place, arm in enumerate(order))
    follows = [one == other for one, other in itertools.pairwise(two)]
    return Check(
        10,
        "Order of the arms",
        f"{draws:,} blocks of two arms and of three, from one seed; drawn twice.",
        (
            Figure(
                "two arms, distance from one half of",
                {
                    "the first place": abs(sum(o[0] == "a" for o in two) / draws - 0.5),
                    "the same order again": abs(float(np.mean(follows)) - 0.5),
                },
                "<=",
                0.015,
            ),
            Figure(
                "three arms, distance of any place from one third",
                {"": max(abs(count / draws - 1 / 3) for count in places.values())},
                "<=",
                0.015,
            ),
            Figure(
                "blocks that differ when drawn again",
                {"": sum(a != b for a, b in zip(two, _again(draws), strict=True))},
                "=",
                0,
                "",
            ),
        ),
    )


def _again(draws: int) -> list[tuple[str, ...]]:
    return arm_orders(("a", "b"), draws, 2026, "check")
