"""How the difference of two arms divides among their changes: what blocks launch, and the parts.

A change's part is its Shapley value (Contributions to the Theory of Games II (1953) 307): its mean
effect over all orders in which the changes can be switched one after the other, the only division
that adds up to the whole, treats changes alike, and gives nothing to one that does nothing.

Launching an order means its stations: nothing switched, the first change, the first two, ... all.
Which of neighbouring changes comes first is not left to chance: an order is cut into windows of up
to three changes, and each window is launched in all combinations that its changes allow, so that
the mean over the orders within it costs no luck (Rao-Blackwell). Up to three changes make one
window: then the parts of every block are Shapley values, whatever interacts with what. In each
block the parts add up to the whole, whichever its order.

Four changes or more of which none needs another take fewer launches otherwise: opposites.py.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING

from paribus.core import Comparison
from paribus.core.units import count
from paribus.stats import estimate
from paribus.stats.estimate import fewest_pairs
from paribus.stats.looks import LONGER, LOOKS, Looks, nominal_level
from paribus.stats.opposites import RUN, dealt
from paribus.stats.schedule import Randomiser
from paribus.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WINDOW = 3
"""Changes of a window: 8 combinations, as many launches as stay close in time."""

BESIDE = 2
"""Two questions share the error with the parts: the whole, and how changes act together."""

Needs = tuple[tuple[int, ...], ...]
"""For each change, those that must be switched before it."""

Order = tuple[int, ...]


def looks(several: int, blocks: int, confidence: float = 0.95) -> Looks:
    """Return the looks at which each of `several` parts can have an exact word.

    Parts, whole and what changes do together share the error (Bonferroni) over all looks. Raises
    ValueError for fewer blocks than an exact word takes.
    """
    error = round((1 - confidence) / (several + BESIDE), 12)
    every = (*(look for look in LOOKS + LONGER if look < blocks), blocks)
    for first in range(len(every)):
        level = nominal_level(error, every[first:])
        if fewest_pairs(level) <= every[first]:
            return Looks(every[first:], level)
    many, parts = count(blocks, "block"), count(several, "part")
    raise ValueError(f"{many}: too few for exact intervals of {parts} together")


def least_launches(several: int) -> int:
    """Return the launches until the first look at so many changes, the warm-up included.

    For changes of which none needs another.
    """
    blocks = range(looks(several, LOOKS[-1]).at[0] + 1)
    return sum(len(one) for block in blocks for one in groups(((),) * several, 0, "", block))


def opposed(needs: Needs) -> bool:
    """Return whether combinations are launched with their opposites: many changes, all free."""
    return len(needs) > WINDOW and not any(needs)


@lru_cache(maxsize=4096)
def groups(needs: Needs, seed: int, stream: str, block: int) -> tuple[tuple[int, ...], ...]:
    """Return the stations that a block launches, in groups: those of a group follow each other.

    A station is a set of changes as bits of a number, 0 the reference: 5 has changes 0 and 2
    switched. The warm-up, block 0, of opposites is both arms: blocks have unlike combinations.
    """
    if not opposed(needs):
        return (stations(order(needs, seed, stream, block), needs),)
    all_ = (1 << len(needs)) - 1
    run, place = divmod(block - 1, RUN)
    hand = dealt(len(needs), seed, stream, run)[place] if block else ()
    return tuple((one, all_ ^ one) for one in (all_, *hand))


def order(needs: Needs, seed: int, stream: str, block: int) -> Order:
    """Return the order of the changes of a block, each that `needs` allows as likely as the others.

    Those of RUN blocks in a row are spread evenly over all orders, ranked anew in each run: a
    change that seldom comes before another does so as often as it should. Raises ValueError where
    none is allowed, because changes need each other.
    """
    run, place = divmod(block + RUN - 1, RUN)
    draw = Randomiser(seed, f"orders of {stream} in run {run}")
    several = _orders(0, needs)
    if not several:
        raise ValueError("changes need each other")
    ranking = draw.shuffled(range(len(needs)))
    strata = draw.shuffled(range(RUN))
    offsets = [draw.below(several) for _ in range(RUN)]
    index, switched = (strata[place] * several + offsets[place]) // RUN, 0
    found: list[int] = []
    while len(found) < len(needs):
        for one in ranking:
            if _may(one, switched, needs):
                following = _orders(switched | 1 << one, needs)
                if index < following:
                    break
                index -= following
        found.append(one)
        switched |= 1 << one
    return tuple(found)


def _may(change: int, switched: int, needs: Needs) -> bool:
    """Return whether a change that is off may be switched where these are on."""
    return not switched >> change & 1 and all(switched >> one & 1 for one in needs[change])


@cache
def _orders(switched: int, needs: Needs) -> int:
    """Return in how many orders the other changes can follow those that are `switched`."""
    if switched == (1 << len(needs)) - 1:
        return 1
    allowed = (one for one in range(len(needs)) if _may(one, switched, needs))
    return sum(_orders(switched | 1 << one, needs) for one in allowed)


def windows(of: Order) -> list[Order]:
    """Return an order cut into windows of at most WINDOW changes, as even as possible."""
    several = math.ceil(len(of) / WINDOW)
    ends = [round(len(of) * n / several) for n in range(several + 1)]
    return [of[first:last] for first, last in pairwise(ends)]


@cache
def paths(of: Order, needs: Needs) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return for each window all orders that its changes allow, each as its stations."""
    found, base = [], 0
    for window in windows(of):
        every = []
        for turn in permutations(window):
            stations = [base]
            for one in turn:
                if not _may(one, stations[-1], needs):
                    break
                stations.append(stations[-1] | 1 << one)
            else:
                every.append(tuple(stations))
        found.append(tuple(every))
        base = every[0][-1]
    return tuple(found)


def stations(of: Order, needs: Needs) -> tuple[int, ...]:
    """Return the stations that a block of this order launches, ascending."""
    return tuple(sorted({one for window in paths(of, needs) for turn in window for one in turn}))


def parts(logs: Mapping[int, float], of: Order, needs: Needs) -> list[float]:
    """Return the part of each change, as log ratios, from the logs of a block's stations.

    NaN for a part of which two launches were both cut off. Raises KeyError without a station.
    """
    found = [0.0] * len(needs)
    for window in paths(of, needs):
        for turn in window:
            for before, after in pairwise(turn):
                change = (before ^ after).bit_length() - 1
                found[change] += (logs[after] - logs[before]) / len(window)
    return found


def interplay(logs: Mapping[int, float], of: Order, needs: Needs) -> dict[tuple[int, int], float]:
    """Return by pair how much more one change makes where the other is switched, as log ratios.

    Of pairs in one window: the mean over the states of the window's other changes.
    """
    found, known = {}, set(stations(of, needs))
    for window in windows(of):
        for one, other in combinations(sorted(window), 2):
            both = 1 << one | 1 << other
            corners = [
                (at | both, at | 1 << one, at | 1 << other, at)
                for at in known
                if not at & both and {at | 1 << one, at | 1 << other, at | both} <= known
            ]
            if corners:
                sums = [logs[a] - logs[b] - logs[c] + logs[d] for a, b, c, d in corners]
                found[one, other] = sum(sums) / len(sums)
    return found


def compare(values: Sequence[float], level: float, changes: int) -> Comparison:
    """Return a part of one of so many `changes` as a ratio with its interval.

    Of one window it is that of estimate.compare. Of several windows values differ by what happens
    to be switched already, and no median is their mean: then the estimate is the mean, and the
    interval reaches as far as that of signed ranks or that of Student's t does. Raises ValueError
    as estimate.compare does.
    """
    ranks = estimate.compare(values, level)
    if changes <= WINDOW or len(values) < 3 or not all(map(math.isfinite, values)):
        return ranks
    mean = math.fsum(values) / len(values)
    half = (
        quantile((1 - level) / 2, len(values) - 1)
        * statistics.stdev(values)
        / math.sqrt(len(values))
    )
    low, high = (math.exp(min(mean + side * half, 700.0)) for side in (-1, 1))
    return replace(ranks, ratio=math.exp(mean), low=min(low, ranks.low), high=max(high, ranks.high))


def remainder(
    whole: Comparison, several: Sequence[Comparison], logs: Sequence[Sequence[float]]
) -> Ends:
    """Return the whole over the product of the parts, as they are estimated, with an interval.

    `logs` are log ratios of the same blocks in one order, of the whole and of each part. Within a
    block they add up; medians of averages need not. The interval is that of the jackknife (Efron &
    Stein, Ann. Statist. 9 (1981) 586) at the level of the whole: an approximation, on which no
    verdict rests. The ends are 0 and inf below three blocks, and where a launch was cut off.
    """
    import numpy as np

    middle = math.log(whole.ratio) - math.fsum(math.log(one.ratio) for one in several)
    rows = np.array(logs)
    n = rows.shape[1]
    if n < 3 or not np.isfinite(rows).all():
        return math.exp(middle), 0.0, math.inf
    without = np.stack([np.delete(rows, one, axis=1) for one in range(n)], axis=1)
    estimates: Floats = estimate.hodges_lehmann(without, 0.5)[0]
    parts_ = estimates[1:] if len(several) <= WINDOW else without[1:].mean(axis=2)
    left = estimates[0] - parts_.sum(axis=0)
    sd = math.sqrt((n - 1) / n * float(((left - left.mean()) ** 2).sum()))
    half = min(quantile((1 - whole.level) / 2, n - 1) * sd, 700.0)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


Ends = tuple[float, float, float]
"""An estimate and the ends of its interval."""
