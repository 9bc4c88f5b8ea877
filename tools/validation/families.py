"""Many cases and many arms: what the words on them are worth."""

from __future__ import annotations

import numpy as np

from paribus.judgement import Word
from paribus.stats.plan import arm_orders
from validation.noise import drift, recorded_series, stretches
from validation.studies import (
    BLOCKS,
    LOOKS,
    Intervals,
    intervals_of,
    pair_up,
    run_to_the_end,
    verdict_at,
)


def three_arms(studies: int) -> Intervals:
    """Return the second of three identical arms against the first, under drift."""
    rng = np.random.default_rng(3)
    launches = drift(rng, studies, 3 * BLOCKS).reshape(studies, BLOCKS, 3)
    ratios = np.empty((studies, BLOCKS))
    for row in range(studies):
        orders = arm_orders(("a", "b", "c"), BLOCKS, row, "latin")
        a = np.array([order.index("a") for order in orders])
        b = np.array([order.index("b") for order in orders])
        block = np.arange(BLOCKS)
        ratios[row] = launches[row, block, b] - launches[row, block, a]
    return intervals_of(ratios)


def family(studies: int) -> tuple[float, float, float]:
    """Return, for ten recorded endpoints of one launch and identical arms, the share of studies
    in which the headline says faster or slower, any case does, and any case's interval excludes 1.
    """
    rng = np.random.default_rng(10)
    launches = recorded_series()[:, stretches(rng, studies, 2 * BLOCKS)].transpose(1, 0, 2)
    ratios = pair_up(rng, launches)
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
