"""Checks 1 to 6 and 13: how often studies err, what their intervals cover, how soon they end."""

from __future__ import annotations

import math

import numpy as np

from paribus.core import Word
from paribus.stats.looks import Looks
from paribus.stats.verdict import blocks_needed
from paribus.words.values import reason_of
from validation.figures import Check, Figure
from validation.noise import NOISE
from validation.studies import (
    DECIDED,
    LOOKS,
    MARGIN,
    OTHER_MARGIN,
    any_look_error,
    covers,
    ended,
    intervals_of,
    right_word,
    study,
    verdict_at,
)

MADE_UP = tuple(name for name in NOISE if name != "Recorded")
EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.05)


def identical_arms(studies: int) -> Check:
    """Check 1: false positives of identical arms, in every made-up kind of noise."""
    return Check(
        1,
        "Identical arms, looked at six times",
        f"{studies:,} studies for each kind of noise: an interval of any look excludes 1, or the "
        "study says faster or slower.",
        (
            Figure(
                "some look's interval excludes 1",
                {name: any_look_error(study(name, studies)) for name in MADE_UP},
                "<=",
                0.057,
            ),
            Figure(
                "called faster or slower",
                {
                    name: ended(name, studies, 0.0).share(Word.FASTER, Word.SLOWER)
                    for name in MADE_UP
                },
                "<=",
                0.006,
            ),
        ),
    )


def identical_recorded_arms(studies: int) -> Check:
    """Check 2: the same with launches of a real, noisy machine."""
    found = ended("Recorded", studies, 0.0)
    return Check(
        2,
        "Identical arms, recorded launches",
        f"{studies:,} studies of random stretches of 40 recorded launches, paired anew.",
        (
            Figure(
                "some look's interval excludes 1",
                {"": any_look_error(study("Recorded", studies))},
                "<=",
                0.061,
            ),
            Figure(
                "called faster or slower",
                {"": found.share(Word.FASTER, Word.SLOWER)},
                "<=",
                0.006,
            ),
        ),
    )


def effect_at_the_margin(studies: int) -> Check:
    """Check 3: any word on speed is wrong when the effect is exactly the margin."""
    return Check(
        3,
        "Effect exactly at the margin",
        f"{studies:,} studies for each kind of noise and each side of the margin of 2 %: the study "
        "says faster, slower or equivalent. The larger share of the two sides.",
        (
            Figure(
                "decided, so wrongly",
                {
                    name: max(
                        ended(name, studies, effect).share(*DECIDED)
                        for effect in (MARGIN, OTHER_MARGIN)
                    )
                    for name in NOISE
                },
                "<=",
                0.057,
            ),
        ),
    )


def final_intervals(studies: int) -> Check:
    """Check 4: the interval that a study ends with holds the truth."""
    return Check(
        4,
        "Coverage of the final interval",
        f"{studies:,} studies for each kind of noise and effects of 0, 0.5, 1, 2 and 5 %: the "
        "interval at the end holds the true effect. The least share of the five effects.",
        (
            Figure(
                "covered",
                {
                    name: min(covers(ended(name, studies, effect), effect) for effect in EFFECTS)
                    for name in NOISE
                },
                ">=",
                0.94,
            ),
        ),
    )


def quiet_machine(studies: int) -> Check:
    """Check 5: on a quiet machine a study ends soon, and rightly."""
    ends = {effect: ended("N1", studies, effect) for effect in (0.0, 0.05, 0.30)}
    blocks = {effect: float(end.blocks.mean()) for effect, end in ends.items()}
    words = {
        name: ends[effect].share(right_word(effect))
        for name, effect in (("no effect", 0.0), ("5 %", 0.05))
    }
    return Check(
        5,
        "Cost on a quiet machine (N1)",
        f"{studies:,} studies for each effect: the right verdict, and the blocks until then.",
        (
            Figure("right verdict", words, ">=", 0.98),
            Figure("mean blocks, no effect", {"": blocks[0.0]}, "<=", 22, "blocks"),
            Figure("mean blocks, effect of 5 %", {"": blocks[0.05]}, "<=", 16, "blocks"),
            Figure("mean blocks, effect of 30 %", {"": blocks[0.30]}, "<=", 8.5, "blocks"),
        ),
    )


def outlying_launches(studies: int) -> Check:
    """Check 6: outliers delay a verdict and do not prevent it."""
    found = ended("N2", studies, 0.05)
    return Check(
        6,
        "Cost with outlying launches (N2)",
        f"{studies:,} studies with 7 % of launches slowed by 40 % on average, effect of 5 %.",
        (
            Figure("right verdict", {"": found.share(Word.SLOWER)}, ">=", 0.97),
            Figure("mean blocks", {"": float(found.blocks.mean())}, "<=", 40, "blocks"),
        ),
    )


def planned_share(sd: float, effect: float, studies: int = 500) -> tuple[float, float]:
    """Return the share of studies settled at the n planned from 12 blocks, and the median n."""
    rng = np.random.default_rng(13)
    settled, planned = 0, []
    for _ in range(studies):
        first = rng.normal(math.log1p(effect), sd, 12)
        n = max(12, blocks_needed(first.tolist(), MARGIN) or 0)
        planned.append(n)
        more = rng.normal(math.log1p(effect), sd, n - 12)
        rows = np.concatenate([first, more])[None]
        verdict = verdict_at(intervals_of(rows, Looks((n,), LOOKS.level)), 0, 0, 0.0)
        settled += verdict.word is not Word.UNDECIDED or "at the margin" in reason_of(verdict)
    return settled / studies, float(np.median(planned))


def formula_share(sd: float, effect: float, studies: int = 500) -> float:
    """Return the share of studies settled at n = 4 + 18 (sigma / Delta)^2, both known."""
    rng = np.random.default_rng(14)
    delta = math.log1p(MARGIN)
    distance = max(abs(delta - abs(math.log1p(effect))), delta / 4)
    n = max(8, math.ceil(4 + 18 * (sd / distance) ** 2))
    rows = rng.normal(math.log1p(effect), sd, (studies, n))
    found = intervals_of(rows, Looks((n,), LOOKS.level))
    verdicts = [verdict_at(found, row, 0, 0.0) for row in range(studies)]
    settled = [v.word is not Word.UNDECIDED or "at the margin" in reason_of(v) for v in verdicts]
    return float(np.mean(settled))


def planner(studies: int) -> Check:
    """Check 13: the blocks that the formula asks for settle a study."""
    known = [(sd, effect) for sd in (0.01, 0.02, 0.03, 0.05) for effect in (0, 0.01, 0.05, 0.10)]
    guessed = [(sd, effect) for sd in (0.01, 0.02, 0.03) for effect in (0, 0.05, 0.10)]
    return Check(
        13,
        "Planned blocks",
        f"{studies:,} studies each, log ratios that scatter by 1 to 5 %, effects of 0 to 10 %: a "
        "study of n = 4 + 18 (sigma / Delta)^2 blocks ends with a verdict, or at the margin. The "
        "least share.",
        (
            Figure(
                "decided, scatter and effect known",
                {"": min(formula_share(*one, studies) for one in known)},
                ">=",
                0.88,
            ),
            Figure(
                "decided, both estimated from 12 blocks (scatter to 3 %; 0, 5, 10 %)",
                {"": min(planned_share(*one, studies)[0] for one in guessed)},
                ">=",
                0.88,
            ),
        ),
    )
