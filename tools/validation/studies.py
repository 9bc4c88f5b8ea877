"""Whole studies by the thousand: simulated launches, and the code that judges real ones.

A simulated study is a row of launch medians on the log scale, in the order of time, both arms
identical; an effect is added to the arm's. Everything after that is what a real study goes
through: schedule, hodges_lehmann, judge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from paribus.core import Comparison, Verdict, Word
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import Looks, schedule
from paribus.stats.schedule import EVEN
from paribus.stats.verdict import judge
from validation.noise import NOISE

BLOCKS = 60
LOOKS = schedule(BLOCKS)
MARGIN = 0.02
OTHER_MARGIN = 1 / (1 + MARGIN) - 1
"""The margin on the other side: as far from 1 on the log scale."""


@dataclass
class Intervals:
    """Log ratios (study, block), and at each look estimate, low and high (study, look)."""

    ratios: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    looks: tuple[int, ...]


@dataclass
class Ended:
    """Where studies stopped: word, blocks and the interval (log) they stopped with."""

    words: list[Word]
    blocks: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def share(self, *words: Word) -> float:
        """Return the share of studies that ended with one of `words`."""
        return sum(word in words for word in self.words) / len(self.words)


def pair_up(rng: np.random.Generator, launches: np.ndarray) -> np.ndarray:
    """Return log ratios of neighbouring launches in the order of a plan: coins, redrawn as there.

    `launches` is (study, launch), or (study, case, launch): the cases of a launch share its coin.
    """
    sign = rng.choice([-1.0, 1.0], (len(launches), launches.shape[-1] // 2))
    while sign.shape[1] >= EVEN and (same := abs(sign[:, :EVEN].sum(axis=1)) == EVEN).any():
        sign[same, :EVEN] = rng.choice([-1.0, 1.0], (same.sum(), EVEN))
    if launches.ndim == 3:
        sign = sign[:, None, :]
    return sign * (launches[..., 1::2] - launches[..., ::2])


def intervals_of(ratios: np.ndarray, looks: Looks = LOOKS) -> Intervals:
    """Return the intervals of studies (rows of `ratios`) at every look."""
    found = [hodges_lehmann(ratios[:, :n], looks.level) for n in looks.at]
    estimate, low, high = (np.stack(x, axis=1) for x in zip(*found, strict=True))
    return Intervals(ratios, estimate, low, high, looks.at)


@cache
def study(name: str, studies: int) -> Intervals:
    """Return `studies` studies of identical arms in the noise `name`; always the same ones."""
    rng = np.random.default_rng([2026, list(NOISE).index(name)])
    return intervals_of(pair_up(rng, NOISE[name](rng, studies, 2 * BLOCKS)))


def verdict_at(found: Intervals, row: int, look: int, shift: float) -> Verdict:
    """Return what study `row` says at `look` when `shift` (log) is added to the arm."""
    comparison = Comparison(
        found.looks[look],
        math.exp(found.estimate[row, look] + shift),
        math.exp(found.low[row, look] + shift),
        math.exp(found.high[row, look] + shift),
        LOOKS.confidence,
    )
    last = look == len(found.looks) - 1
    return judge(comparison, better="lower", margin=MARGIN, last=last)


def run_to_the_end(found: Intervals, effect: float) -> Ended:
    """Return how each study ends when the arm takes 1 + `effect` times as long."""
    shift = math.log1p(effect)
    words, stops = [], []
    for row in range(len(found.low)):
        for look in range(len(found.looks)):
            verdict = verdict_at(found, row, look, shift)
            if verdict.final:
                words.append(verdict.word)
                stops.append(look)
                break
    at = (np.arange(len(stops)), np.array(stops))
    return Ended(words, np.array(found.looks)[at[1]], found.low[at] + shift, found.high[at] + shift)


@cache
def ended(name: str, studies: int, effect: float) -> Ended:
    """Return how those studies end, computed once."""
    return run_to_the_end(study(name, studies), effect)


def any_look_error(found: Intervals) -> float:
    """Return the share of studies of identical arms in which some look's interval excludes 1."""
    return float(((found.low > 0) | (found.high < 0)).any(axis=1).mean())


def covers(end: Ended, effect: float) -> float:
    """Return the share of final intervals that hold the true `effect`."""
    truth = math.log1p(effect)
    return float(((end.low <= truth) & (truth <= end.high)).mean())


def coverage(found: Intervals, effect: float) -> float:
    """Return the share of studies whose final interval holds the true `effect`."""
    return covers(run_to_the_end(found, effect), effect)


def decided_share(found: Intervals, effect: float) -> float:
    """Return the share of studies that end with a word on speed."""
    return run_to_the_end(found, effect).share(*DECIDED)


DECIDED = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def right_word(effect: float) -> Word:
    """Return what a study of an arm that takes 1 + `effect` times as long should say."""
    return Word.EQUIVALENT if effect < MARGIN else Word.SLOWER
