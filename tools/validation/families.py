"""Checks 11, 17 to 20: many cases and many arms, and what the words on them are worth."""

from __future__ import annotations

import math

import numpy as np

from paribus.core import Word
from paribus.stats.family import claims, word_p
from paribus.stats.looks import Looks, schedule
from paribus.stats.schedule import arm_orders
from validation.figures import Check, Figure
from validation.noise import drift, recorded_series, stretches
from validation.studies import (
    BLOCKS,
    LOOKS,
    MARGIN,
    Intervals,
    any_look_error,
    intervals_of,
    pair_up,
    run_to_the_end,
    verdict_at,
)


def recorded_families(studies: int) -> np.ndarray:
    """Return log ratios (study, case, block) of identical arms: ten recorded series, one coin."""
    rng = np.random.default_rng(10)
    launches = recorded_series()[:, stretches(rng, studies, 2 * BLOCKS)].transpose(1, 0, 2)
    return pair_up(rng, launches)


def supported(cases: np.ndarray, blocks: int, margin: float, seed: int) -> np.ndarray:
    """Return which cases (row) of one study the family supports a word on, at look `blocks`."""
    series = [dict(enumerate(case[:blocks].tolist())) for case in cases]
    reported = claims(series, [margin] * len(series), LOOKS, seed=seed)
    return np.array([claim.supported for claim in reported])


def family(studies: int) -> tuple[float, float, float]:
    """Return, for ten recorded endpoints of one launch and identical arms, the share of studies
    in which the headline says faster or slower, any case does, and any case's interval excludes 1.
    """
    ratios = recorded_families(studies)
    headline = run_to_the_end(intervals_of(ratios.mean(axis=1)), 0.0)
    words = np.zeros(studies, dtype=bool)
    excludes = np.zeros(studies, dtype=bool)
    for case in range(ratios.shape[1]):
        found = intervals_of(ratios[:, case])
        for row in range(studies):
            look = LOOKS.at.index(int(headline.blocks[row]))
            word = verdict_at(found, row, look, 0.0).word
            words[row] |= word in (Word.FASTER, Word.SLOWER)
            excludes[row] |= found.low[row, look] > 0 or found.high[row, look] < 0
    wrong = headline.share(Word.FASTER, Word.SLOWER)
    return wrong, float(words.mean()), float(excludes.mean())


def ten_cases(studies: int) -> Check:
    """Check 11: claims on ten cases that depend on each other, all of them false."""
    ratios = recorded_families(studies)
    headline = run_to_the_end(intervals_of(ratios.mean(axis=1)), 0.0)
    stopped = [
        supported(cases, int(blocks), 0.0, row).any()
        for row, (cases, blocks) in enumerate(zip(ratios, headline.blocks, strict=True))
    ]
    at_once = [
        any(supported(cases, blocks, 0.0, row).any() for blocks in LOOKS.at)
        for row, cases in enumerate(ratios)
    ]
    unadjusted = [any(word_p(case.tolist(), 0.0) <= 0.05 for case in cases) for cases in ratios]
    return Check(
        11,
        "Ten cases of identical arms",
        f"{studies:,} studies of ten recorded endpoints that share their launches; a claim is that "
        "a case differs at all (margin 0), after the looks and Benjamini-Hochberg.",
        (
            Figure(
                "any false claim",
                {
                    "when the headline ends": float(np.mean(stopped)),
                    "stopping at the first claim": float(np.mean(at_once)),
                },
                "<=",
                0.077,
            ),
            Figure("control: unadjusted, 60 blocks", {"": float(np.mean(unadjusted))}, ">=", 0.25),
        ),
    )


def share_of_wrong_words(studies: int) -> Check:
    """Check 17: half of ten cases exactly at the margin, so that any word on them is wrong."""
    ratios = recorded_families(studies).copy()
    ratios[:, ::2] += math.log1p(MARGIN)
    ratios[:, 1::2] += math.log1p(0.10)
    shares, found = [], []
    for row, cases in enumerate(ratios):
        reported = supported(cases, BLOCKS, MARGIN, row)
        shares.append(reported[::2].sum() / max(1, reported.sum()))
        found.append(reported[1::2].mean())
    return Check(
        17,
        "Share of wrong verdicts among ten cases",
        f"{studies:,} studies of 60 blocks as above; five cases differ by exactly the margin (any "
        "verdict is wrong), five by 10 %.",
        (
            Figure("wrong among the verdicts given", {"": float(np.mean(shares))}, "<=", 0.057),
            Figure("differences of 10 % found", {"": float(np.mean(found))}, ">=", 0.80),
        ),
    )


def few_cases(studies: int) -> Check:
    """Check 18: fewer than eight cases, where the chance of any wrong verdict is kept."""
    ratios = recorded_families(studies)[:, :5] + math.log1p(MARGIN)
    words = {
        "18 blocks": [supported(c, 18, MARGIN, row).any() for row, c in enumerate(ratios)],
        "60 blocks": [supported(c, 60, MARGIN, row).any() for row, c in enumerate(ratios)],
    }
    differs = [
        supported(c - math.log1p(MARGIN), 60, 0.0, row).any() for row, c in enumerate(ratios)
    ]
    return Check(
        18,
        "Five cases",
        f"{studies:,} studies of five recorded endpoints; any wrong verdict where all differ by "
        "exactly the margin, any false claim of a difference where none differs (closed test).",
        (
            Figure(
                "any wrong verdict",
                {name: float(np.mean(wrong)) for name, wrong in words.items()},
                "<=",
                0.077,
            ),
            Figure("any false claim", {"60 blocks": float(np.mean(differs))}, "<=", 0.077),
        ),
    )


def headline_of_ten(studies: int) -> Check:
    """Check 19: the headline of cases that depend on each other."""
    ratios = recorded_families(studies).mean(axis=1)
    found = intervals_of(ratios)
    ends = run_to_the_end(found, 0.0)
    return Check(
        19,
        "Headline of ten cases",
        f"{studies:,} studies of ten recorded endpoints of identical arms; their mean log ratio.",
        (
            Figure("some look's interval excludes 1", {"": any_look_error(found)}, "<=", 0.061),
            Figure(
                "called faster or slower",
                {"": ends.share(Word.FASTER, Word.SLOWER)},
                "<=",
                0.006,
            ),
        ),
    )


def latin_rows(studies: int, count: int) -> np.ndarray:
    """Return log ratios (study, arm, block) of `count` identical arms to the first, under drift."""
    rng = np.random.default_rng(3)
    launches = drift(rng, studies, count * BLOCKS).reshape(studies, BLOCKS, count)
    arms = tuple("abcdefgh"[:count])
    ratios = np.empty((studies, count - 1, BLOCKS))
    blocks = np.arange(BLOCKS)
    for row in range(studies):
        orders = arm_orders(arms, BLOCKS, row, "latin")
        places = np.array([[order.index(arm) for order in orders] for arm in arms])
        reference = launches[row, blocks, places[0]]
        ratios[row] = launches[row, blocks, places[1:]] - reference
    return ratios


def three_arms(studies: int) -> Intervals:
    """Return the second of three identical arms against the first, under drift."""
    return intervals_of(latin_rows(studies, 3)[:, 0])


def several_arms(studies: int) -> Check:
    """Check 20: more than two arms, each against the first."""

    def any_arm(count: int, looks: Looks) -> float:
        ratios = latin_rows(studies, count)
        wrong = np.zeros(studies, dtype=bool)
        for arm in range(count - 1):
            found = intervals_of(ratios[:, arm], looks)
            wrong |= ((found.low > 0) | (found.high < 0)).any(axis=1)
        return float(wrong.mean())

    return Check(
        20,
        "More than two arms",
        f"{studies:,} studies of three and of five identical arms under drift, in rows of Latin "
        "squares, each arm against the first at the looks of so many comparisons.",
        (
            Figure(
                "any arm differs at any look",
                {
                    f"{count} arms": any_arm(count, schedule(BLOCKS, comparisons=count - 1))
                    for count in (3, 5)
                },
                "<=",
                0.057,
            ),
            Figure(
                "control: five arms, each at 95 %", {"": any_arm(5, schedule(BLOCKS))}, ">=", 0.10
            ),
        ),
    )
