"""Studies of few launches by the thousand: what stats/few.py says, for all of them at once.

The levels, the weights and the critical values are those of the code; the ends and the verdicts are
computed here for whole arrays, and `judged_otherwise` counts where the code says something else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from paribus.core import Word
from paribus.designs.few import verdict
from paribus.stats import few
from validation.few_noise import ALIKE, UNLIKE, unlike
from validation.noise import NOISE
from validation.studies import MARGIN

MOST = few.LOOKS[-1]
DELTA = math.log1p(MARGIN)
WORDS = (Word.EQUIVALENT, Word.SLOWER, Word.FASTER, Word.UNDECIDED)
EQUAL, SLOWER, FASTER, OPEN = range(4)


@dataclass
class Bounds:
    """Logs of launches (study, block), and at each look (study, look) what few.weigh says."""

    looks: np.ndarray
    reference: np.ndarray
    arm: np.ndarray
    estimate: np.ndarray
    away: tuple[np.ndarray, np.ndarray]
    towards: tuple[np.ndarray, np.ndarray]

    @property
    def early(self) -> np.ndarray:
        """Which looks find only a large effect."""
        return self.looks < few.LARGE_UNTIL


@dataclass
class Ended:
    """Where studies stopped: the word (place in WORDS), the blocks, and the interval (log)."""

    words: np.ndarray
    stopped: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def blocks(self) -> float:
        """The mean number of blocks."""
        return float(self.stopped.mean())

    def share(self, *words: int) -> float:
        """Return the share of studies that ended with one of `words`."""
        return float(np.isin(self.words, words).mean())


def in_order(
    rng: np.random.Generator, ours: np.ndarray, theirs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the launches of reference and arm by block, of what would run at each place in time.

    The launches of the first START blocks are shuffled, those of the others put in order by a coin.
    """
    studies, blocks = len(ours), ours.shape[1] // 2
    coin = rng.integers(0, 2, (studies, blocks))
    places = np.stack([2 * np.arange(blocks) + coin, 2 * np.arange(blocks) + 1 - coin])
    shuffled = np.argsort(rng.random((studies, 2 * few.START)), axis=1)
    for side in places:
        side[:, : few.START] = np.take_along_axis(shuffled, side[:, : few.START], axis=1)
    return np.take_along_axis(ours, places[0], 1), np.take_along_axis(theirs, places[1], 1)


@lru_cache(maxsize=4)
def launches(name: str, studies: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the launches by block of `studies` studies of a true ratio of 1 in a noise."""
    rng = np.random.default_rng([22, [*NOISE, *ALIKE, *UNLIKE].index(name)])
    if name in UNLIKE:
        ours, theirs = unlike(rng, studies, 2 * MOST, name)
    else:
        ours = theirs = (NOISE | ALIKE)[name](rng, studies, 2 * MOST)
    return in_order(rng, ours, theirs)


@lru_cache(maxsize=4)
def study(name: str, studies: int, most: int = MOST) -> Bounds:
    """Return the outcomes of those studies if they have at most so many blocks."""
    return bounds(*launches(name, studies), most)


def bounds(
    reference: np.ndarray, arm: np.ndarray, most: int = MOST, *, signs: bool = True
) -> Bounds:
    """Return what every look says; without `signs`, what ranks would."""
    at = few.schedule(most).at
    shape = (len(reference), len(at))
    found = Bounds(
        np.array(at),
        reference,
        arm,
        np.zeros(shape),
        (np.full(shape, -np.inf), np.full(shape, np.inf)),
        (np.full(shape, -np.inf), np.full(shape, np.inf)),
    )
    for look, n in enumerate(at):
        ours, theirs = reference[:, :n], arm[:, :n]
        apart = np.abs(np.log(ours.std(axis=1) / theirs.std(axis=1)))
        uneven = (apart > few.UNEVEN / math.sqrt(n - 1)) & signs
        _by_ranks(found, ~uneven, look, most)
        _by_signs(found, uneven, look, most)
    return found


def _by_signs(found: Bounds, which: np.ndarray, look: int, most: int) -> None:
    """Fill in one look of the studies `which` whose arms scatter differently."""
    n = int(found.looks[look])
    ratios = np.sort((found.arm[:, :n] - found.reference[:, :n])[which], axis=1)
    found.estimate[which, look] = np.median(ratios, axis=1)
    level, _ = few.levels(n, most, few.START)
    k = few.critical_sign(n, max(level, 2.0**-n) if n == few.LARGE_UNTIL else level)
    if n >= few.LARGE_UNTIL and k >= 0:
        for low, high in (found.away, found.towards):
            low[which, look], high[which, look] = ratios[:, k], ratios[:, n - 1 - k]


def _by_ranks(found: Bounds, which: np.ndarray, look: int, most: int) -> None:
    """Fill in one look of the studies `which`, some hundred at a time."""
    n, start = int(found.looks[look]), few.START
    limits = [few.critical(start, n - start, level) for level in few.levels(n, most, start)]
    rows = np.flatnonzero(which)
    for part in np.array_split(rows, max(1, len(rows) * n * n // 2_000_000)):
        ours, theirs = found.reference[part, :n], found.arm[part, :n]
        one, other = np.triu_indices(n - start)
        ratios = theirs[:, start:] - ours[:, start:]
        differences = theirs[:, :start, None] - ours[:, None, :start]
        points = np.concatenate(
            [differences.reshape(len(part), start**2), (ratios[:, one] + ratios[:, other]) / 2], 1
        )
        a, b = few.weights(start, n - start)
        heavy = np.repeat([a, b], [start**2, len(one)])
        order = np.argsort(points, axis=1)
        points = np.take_along_axis(points, order, axis=1)
        weight = np.cumsum(heavy[order], axis=1)
        total = int(heavy.sum())
        row = np.arange(len(part))
        half = (weight < total / 2).sum(axis=1), (weight <= total / 2).sum(axis=1)
        found.estimate[part, look] = (points[row, half[0]] + points[row, half[1]]) / 2
        for (low, high), k in zip((found.away, found.towards), limits, strict=True):
            if k >= 0:
                low[part, look] = points[row, (weight <= k).sum(axis=1)]
                high[part, look] = points[row, (total - weight > k).sum(axis=1)]


def _joined(
    away: tuple[np.ndarray, np.ndarray], towards: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    low = np.where(towards[0] < 0, towards[0], np.maximum(away[0], 0))
    return low, np.where(towards[1] > 0, towards[1], np.minimum(away[1], 0))


def _since(early: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return what the intervals of all looks that are not early have in common so far."""
    low, high = np.where(early, -np.inf, ends[0]), np.where(early, np.inf, ends[1])
    return np.maximum.accumulate(low, axis=1), np.minimum.accumulate(high, axis=1)


def at_looks(found: Bounds, effect: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals (log) that every look prints when the arm takes 1 + `effect` as long."""
    shift = math.log1p(effect)
    estimate = found.estimate + shift
    low, high = _joined(
        (found.away[0] + shift, found.away[1] + shift),
        (found.towards[0] + shift, found.towards[1] + shift),
    )
    with np.errstate(invalid="ignore"):
        short = (high - low) / 2 <= np.abs(estimate) * few.SIZE_SHARE
    wider = found.early & ~short
    return np.where(wider, np.minimum(low, 0), low), np.where(wider, np.maximum(high, 0), high)


def run_to_the_end(found: Bounds, effect: float) -> Ended:
    """Return how each study ends when the arm takes 1 + `effect` times as long."""
    shift, early = math.log1p(effect), found.early
    low, high = at_looks(found, effect)
    away = _since(early, (found.away[0] + shift, found.away[1] + shift))
    settled_low, settled_high = _joined(
        away, _since(early, (found.towards[0] + shift, found.towards[1] + shift))
    )
    with np.errstate(invalid="ignore"):
        half = (high - low) / 2
    size = np.abs(found.estimate + shift) * few.SIZE_SHARE
    sized = half <= np.where(early, size, np.maximum(DELTA, size))
    sized[:, -1] = True
    slower, faster = (low > DELTA) & sized, (high < -DELTA) & sized
    settled = (settled_low > -DELTA) & (settled_high < DELTA) & (settled_low <= settled_high)
    settled &= ~early & (low <= DELTA) & (high >= -DELTA)
    equal = settled | ((low > -DELTA) & (high < DELTA) & ~early)
    ends = slower | faster | equal | (~early & (half <= DELTA / 4))
    ends[:, -1] = True
    at = (np.arange(len(low)), ends.argmax(axis=1))
    words = np.select([slower[at], faster[at], equal[at]], [SLOWER, FASTER, EQUAL], OPEN)
    low = np.where(settled, settled_low, low)[at]
    stopped = found.looks[at[1]]
    return Ended(words, stopped, low, np.where(settled, settled_high, high)[at])


@lru_cache(maxsize=64)
def ended(name: str, studies: int, effect: float, most: int = MOST) -> Ended:
    """Return how those studies end, computed once."""
    return run_to_the_end(study(name, studies, most), effect)


def any_look_error(name: str, studies: int, most: int = MOST) -> float:
    """Return the share of studies of a true ratio of 1 in which some look's interval excludes 1."""
    low, high = at_looks(study(name, studies, most), 0.0)
    return float(((low > 0) | (high < 0)).any(axis=1).mean())


def judged_otherwise(found: Bounds, effect: float, rows: int) -> int:
    """Return of how many of the first `rows` studies the code gives another word or interval."""
    end, wrong = run_to_the_end(found, effect), 0
    shift = math.log1p(effect)
    for row in range(rows):
        weighed = []
        for n in found.looks.tolist():
            ours, theirs = found.reference[row, :n], found.arm[row, :n] + shift
            weighed.append(few.weigh(ours.tolist(), theirs.tolist(), few.START, MOST))
            said, comparison = verdict(
                weighed,
                better="lower",
                margin=MARGIN,
                last=n == MOST,
                needed=None,
                size_known=True,
            )
            if said.final:
                break
        same = math.isclose(comparison.low, math.exp(end.low[row]), rel_tol=1e-9)
        same &= math.isclose(comparison.high, math.exp(end.high[row]), rel_tol=1e-9)
        wrong += not (same and said.word is WORDS[end.words[row]] and n == end.stopped[row])
    return wrong
