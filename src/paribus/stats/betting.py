"""Intervals that are valid at any moment, for open-ended watching: a betting confidence sequence.

Someone who says "the ratio is theta" is bet against, block by block, with money that cannot be
borrowed. If theta is right, the games are fair, and the chance that the wealth ever grows
c-fold is at most 1 / c (Ville's inequality), however long one watches and whenever one stops.
The interval holds every theta against which that has not happened yet. Method: I. Waudby-Smith,
A. Ramdas, "Estimating means of bounded random variables by betting", J. R. Stat. Soc. B 86
(2024) 1; the stake here is an odd bounded score of a block instead of the block's value, because
log ratios have no bounds, and are fair about theta by symmetry and not by their mean.

An effect that changes must be noticed although the bets of the blocks before were lost on what
holds since. So a part of the money is kept back and staked anew at each later block: a mixture of
bets over the blocks at which a change may begin is a fair game as well, and the interval becomes
empty soon after a change. J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric framework
for sequential change detection", New Engl. J. Stat. Data Sci. 2 (2023) 229; intersections of
sequences that start at every time: S. Shekhar, A. Ramdas, "Reducing sequential change detection to
sequential estimation", ICML (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from paribus.core import Comparison

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BETS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
"""Shares of the wealth that are staked on each side, in equal parts from the start: the large ones
decide large effects within 8 blocks, the small ones go on to narrow after thousands."""

FROM_THE_START = 0.8
"""Share of the money that is staked from the first block on: as much as keeps the first interval
at 95 % at 8 blocks. The rest is staked from later blocks on."""

FIRST_RESTART = 9
"""Block from which on money is staked anew: before it no verdict could still change."""

RESTART_POWER = 1.5
"""The share of a later block falls as its number to this power: faster would notice late changes
later, slower early ones (the shares add up to 1)."""

_AT_ONCE = 200
"""Blocks whose bets are multiplied up before wealth is rescaled: 0.05^200 is still a number."""

_FAR = 64.0
"""Ranges of the data from the data, from where every score is 1 or -1 to the last bit."""

_HALVINGS = 64
"""Halvings of a bracket of that width, down to the rounding of its ends."""


@dataclass(frozen=True, slots=True)
class ConfidenceSequence:
    """Estimate and interval of a log ratio after `blocks` blocks.

    `moved` is the block at which the interval became empty, because no one ratio agrees with all
    blocks any more: the effect itself has changed, some blocks earlier (stretches.py says
    when). The interval is then the last one before.
    """

    blocks: int
    estimate: float
    low: float
    high: float
    moved: int | None = None


def scales(values: Floats) -> Floats:
    """Return for each block, along the last axis, the scale of its score, from past blocks only.

    It is 1.4826 times the median absolute deviation, computed anew whenever the past has become
    an eighth longer (which keeps thousands of blocks cheap). 0 for the first two blocks, and
    while the past is all ties or mostly infinite: the score is then the sign.
    """
    import numpy as np

    n = values.shape[-1]
    found = np.zeros_like(values)
    known = 2
    while known < n:
        past = values[..., :known]
        until = max(known + 1, known * 9 // 8)
        with np.errstate(invalid="ignore"):
            middle = np.median(past, axis=-1, keepdims=True)
            scale = 1.4826 * np.median(np.abs(past - middle), axis=-1, keepdims=True)
        found[..., known:until] = np.where(np.isfinite(scale), scale, 0.0)
        known = until
    return found


def scores(values: Floats, scale: Floats, theta: float) -> Floats:
    """Return tanh((d - theta) / s) for each block: odd, between -1 and 1, fair if theta is right.

    The sign where the scale is 0, and for infinite values.
    """
    import numpy as np

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        distance = np.where(values == theta, 0.0, values - theta)
        smooth = np.tanh(distance / scale)
    return np.where(scale > 0, smooth, np.sign(distance))


def wealth(score: Floats) -> Floats:
    """Return what 1 has become after each block, along the last axis, staked on positive scores.

    The mean over BETS, and over the blocks at which to begin with the `shares` of each, of the
    product of 1 + bet * score since then; what overflows is infinite.
    """
    import numpy as np

    bets = np.array(BETS).reshape(-1, *(1,) * score.ndim)
    share = shares(score.shape[-1] + 1)
    total = np.empty_like(score)
    staked: Floats = np.full((len(BETS), *score.shape[:-1], 1), share[0])
    with np.errstate(over="ignore", under="ignore"):
        for begin in range(0, score.shape[-1], _AT_ONCE):
            grown = np.cumprod(1 + bets * score[..., begin : begin + _AT_ONCE], axis=-1)
            # What is staked after a block is worth its share until the next one.
            added = share[begin + 1 : begin + 1 + grown.shape[-1]]
            every = grown * (staked + np.cumsum(added / grown, axis=-1))
            total[..., begin : begin + _AT_ONCE] = np.add.reduce(every, axis=0)
            staked = every[..., -1:]
    return total / len(BETS) + (1 - np.cumsum(share)[1:])


@lru_cache(maxsize=8)
def shares(blocks: int) -> Floats:
    """Return the share of the money that is staked from each of so many blocks on.

    All blocks that may ever come share 1.
    """
    import numpy as np

    number = np.arange(1.0, blocks + 1)
    later = np.where(number >= FIRST_RESTART, number**-RESTART_POWER, 0.0)
    # Euler and Maclaurin's sum of n^-power from the first restart on, to 1e-5 of itself.
    power, first = RESTART_POWER, float(FIRST_RESTART)
    whole = first**-power * (first / (power - 1) + 1 / 2 + power / (12 * first))
    found: Floats = (1 - FROM_THE_START) * later / whole
    found[:1] = FROM_THE_START
    found.flags.writeable = False
    return found


def fewest_blocks(confidence: float) -> int:
    """Return from how many blocks on there can be an interval at `confidence`: all on one side."""
    import numpy as np

    limit = 2 / (1 - confidence)
    blocks = 16
    while not (reached := wealth(np.ones(blocks)) >= limit).any():
        blocks *= 2
    return int(reached.argmax()) + 1


def confidence_sequence(
    log_ratios: Sequence[float], confidence: float = 0.95
) -> ConfidenceSequence:
    """Return the confidence sequence after the last of `log_ratios`, which are in order of time.

    Each side is bet against on its own, at half the error: its wealth is then monotone in
    theta, so that an end is found by bisection, and one sequence of intervals, each inside the
    one before, is what comes out. It covers the ratio at all times together in `confidence` of
    studies, if the blocks scatter symmetrically about it; if the arms do not differ, they do,
    because a coin orders them, whatever the machine does. +-inf stands for a launch cut off by a
    time limit. The ends are infinite while the blocks are too few (8 at 95 %).

    The estimate is the theta at which the scores add up to 0 (an M-estimate), but not outside of
    the interval. Raises ValueError for no blocks, NaN, and a confidence outside [0.5, 1).
    """
    import numpy as np

    values = np.asarray(log_ratios, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError("no block was completed by both arms")
    if np.isnan(values).any():
        raise ValueError("a log ratio is NaN")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"a confidence of {confidence}; write for example 0.95")
    limit = 2 / (1 - confidence)
    scale = scales(values)
    n = len(values)
    low, high = _ends(values, scale, limit)
    moved = None
    if low > high:
        moved = _lasting(values, scale, limit) + 1
        low, high = _ends(values[: moved - 1], scale[: moved - 1], limit)
    estimate = min(max(_estimate(values), low), high)
    return ConfidenceSequence(n, estimate, low, high, moved)


def as_ratios(found: ConfidenceSequence, level: float) -> Comparison:
    """Return a confidence sequence at confidence `level` as a ratio with its interval.

    Takes the place of `estimate.compare` where there is no last block.
    """
    import numpy as np

    with np.errstate(over="ignore"):
        ratio, low, high = (float(np.exp(x)) for x in (found.estimate, found.low, found.high))
    return Comparison(blocks=found.blocks, ratio=ratio, low=low, high=high, level=level)


def _crossed(score: Floats, limit: float) -> int | None:
    """Return the number of blocks after which the wealth first reached `limit`."""
    hits = wealth(score) >= limit
    return int(hits.argmax()) + 1 if hits.any() else None


def _ends(values: Floats, scale: Floats, limit: float) -> tuple[float, float]:
    """Return the ends of the set of theta against which no bet has won; low > high if empty."""
    low = _low(values, scale, limit)
    return low, -_low(-values, scale, limit)


def _low(values: Floats, scale: Floats, limit: float) -> float:
    """Return the largest theta, but for rounding, against which bets on larger values have won."""
    import numpy as np

    at_minus_infinity = np.where(values == -np.inf, -1.0, 1.0)
    if _crossed(at_minus_infinity, limit) is None:
        return -math.inf
    at_infinity = np.where(values == np.inf, 1.0, -1.0)
    if _crossed(at_infinity, limit) is not None:
        return math.inf

    def won(theta: float) -> bool:
        return _crossed(scores(values, scale, theta), limit) is not None

    return _bisect(won, values)[0]


def _lasting(values: Floats, scale: Floats, limit: float) -> int:
    """Return the last number of blocks after which some theta was still in the interval.

    The larger theta, the later bets on larger values win, and the sooner those on smaller ones; so
    the theta that lasts longest is where both win after the same block.
    """
    never = len(values) + 1

    def beaten(theta: float) -> tuple[int, int]:
        score = scores(values, scale, theta)
        return _crossed(score, limit) or never, _crossed(-score, limit) or never

    def too_small(theta: float) -> bool:
        above, below = beaten(theta)
        return above < below

    candidates = (*_bisect(too_small, values), -math.inf, math.inf)
    return max(min(beaten(theta)) for theta in candidates) - 1


def _estimate(values: Floats) -> float:
    """Return the theta at which the scores, with the scale of all blocks, add up to 0."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        middle = float(np.median(values))
        scale = 1.4826 * float(np.median(np.abs(values - middle)))
    if math.isnan(middle):  # as many cut off on one side as on the other
        return 0.0
    if not 0 < scale < math.inf:
        return middle
    every = np.full_like(values, scale)
    return _bisect(lambda theta: scores(values, every, theta).sum() > 0, values)[0]


def _bisect(small: Callable[[float], bool], values: Floats) -> tuple[float, float]:
    """Return the largest theta that is too `small` and the smallest that is not: neighbours."""
    import numpy as np

    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
    reach = _FAR * max(float(np.ptp(finite)), 1e-9)
    low, high = float(finite.min()) - reach, float(finite.max()) + reach
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if small(middle):
            low = middle
        else:
            high = middle
    return low, high
