"""A matrix of all pairs of nodes, from several launches: which nodes and which pairs are slow.

The log cost of a pair (of a latency, or of the inverse of a bandwidth) is a level, plus an effect
of each of its nodes, plus a rest of the pair's own: a two-way median polish (J. W. Tukey,
Exploratory Data Analysis, 1977, chapter 11) in which row and column of a node share their effect.
A node is slow if its effect passes three bounds, a pair if its rest does:

1. It lasts. Something does: had the nodes changed places at random between the launches, their
   means over the launches would scatter as much in at most 5 % of cases. And it is this one: its
   mean is beyond the largest of all in 95 % of cases when what changes from launch to launch is
   shuffled (P. H. Westfall & S. S. Young, Resampling-Based Multiple Testing, 1993). The launch is
   the unit; 5 % is the error of naming anything at all. Before, what lies far from all others is
   moved to CLIP standard deviations, so that one bad launch cannot hide a slow node.
2. It stands out. Pairs differ for good, by cables, hops and switches. How far they do says how far
   the effect of one of so many nodes, or the rest of one of so many pairs, may lie from 0, at 5 %
   for all together (Bonferroni; t distribution).
3. It matters: 5 % or more, for a pair in every launch.

tests/test_stats_matrix.py has the error rates and the power by simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_LAUNCHES = 3
LEAST_NODES = 4
"""Three nodes have three pairs: no rest is left once their effects are taken off."""

ERROR = 0.05
MATTERS = math.log(1.05)
CLIP = 4.0
PERMUTATIONS = 1000
MOST_ROWS = 20
EFFICIENCY = 0.37
"""Of the median absolute deviation: as a standard deviation from so much of the figures."""

STEPS = 30
AT_ONCE = 1 << 21
"""Figures that are permuted at once: 16 MiB."""


@dataclass(frozen=True, slots=True)
class Outlier:
    """A slow node, `first`, or a slow pair from `first` to `second`, by their places in the matrix.

    `ratio`: its cost over what the others let expect: 1.2 takes 20 % longer.
    """

    ratio: float
    first: int
    second: int | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """The matrix over all launches, in the unit of the figures; NaN where there is none.

    `low` and `high` are the least and the greatest launch of a pair: an interval of its median at
    `level`. `judged`: there were launches and nodes enough to call anything slow. `nodes` and
    `pairs`: the slow ones, the slowest first. `apart`: the slow nodes are slow to the others, but
    not among themselves.
    """

    median: Floats
    low: Floats
    high: Floats
    level: float
    judged: bool = False
    nodes: tuple[Outlier, ...] = ()
    pairs: tuple[Outlier, ...] = ()
    apart: bool = False


def examine(launches: Sequence[Floats], *, better: str, seed: int = 1) -> Examined:
    """Return the slow nodes and pairs in square matrices of figures, one for each launch.

    Row is from, column is to; the diagonal is skipped, and so is what is below it if it is NaN
    (a latency is one figure for both ways). `better` is the direction of the figures, "lower" or
    "higher". Raises ValueError without a launch, and for a figure that is missing or not above 0.
    """
    import numpy as np

    stack = np.array(launches, dtype=np.float64)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2]:
        raise ValueError("examine needs square matrices, one or more")
    count, size = stack.shape[:2]
    upper = np.triu(np.ones((size, size), dtype=bool), 1)
    one_way = np.isnan(stack[:, upper.T]).all()
    known = upper if one_way else upper | upper.T
    if not (np.isfinite(stack[:, known]).all() and (stack[:, known] > 0).all()):
        raise ValueError("a figure of a pair is missing or not above zero")
    stack[:, ~known] = np.nan
    seen = Examined(
        np.median(stack, axis=0), stack.min(axis=0), stack.max(axis=0), 1 - 2.0 ** (1 - count)
    )
    if count < LEAST_LAUNCHES or size < LEAST_NODES:
        return seen
    costs = np.log(stack) * (1 if better == "lower" else -1)
    nodes, pairs, apart = _slow(costs, known, np.random.default_rng(seed))
    return Examined(seen.median, seen.low, seen.high, seen.level, True, nodes, pairs, apart)


def lagging(costs: Floats, seed: int = 1) -> tuple[Outlier, ...]:
    """Return which nodes (columns) cost more than the others, launch (row) after launch.

    `costs` are logarithms of a figure of each node by itself, of three nodes or more. The bounds
    are those of a matrix, but how far nodes differ for good is taken from the other nodes alone, of
    which two give little (1 degree of freedom). Many launches count as MOST_ROWS means of
    neighbours.
    """
    import numpy as np

    count, size = costs.shape
    if count < LEAST_LAUNCHES or size < 3:
        return ()
    effects = costs - np.median(costs, axis=1, keepdims=True)
    whole = np.median(effects, axis=0)
    rows = np.array([part.mean(axis=0) for part in np.array_split(effects, min(count, MOST_ROWS))])
    found = []
    for i in np.flatnonzero(_lasting(rows, np.random.default_rng(seed)) & (whole > MATTERS)):
        others = np.delete(whole, i)
        usual = float(np.median(others))
        spread = float(np.median(np.abs(others - usual))) / 0.6745 * math.sqrt(size / (size - 1))
        freedom = max(1, round(EFFICIENCY * (size - 2)))
        if whole[i] - usual > max(MATTERS, spread * quantile(ERROR / size, freedom)):
            found.append(Outlier(math.exp(whole[i] - usual), int(i)))
    return tuple(sorted(found, key=lambda o: -o.ratio))


def _slow(
    costs: Floats, known: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[tuple[Outlier, ...], tuple[Outlier, ...], bool]:
    """Return the slow nodes, the slow pairs, and `apart` of Examined, from log costs by launch."""
    import numpy as np

    # A node is slow as a whole: both ways together.
    turned = costs.transpose(0, 2, 1)
    both = np.where(known, costs, turned)
    both = (both + both.transpose(0, 2, 1)) / 2
    size = both.shape[1]
    each = polished(both)
    whole = polished(np.median(both, axis=0))
    rests = (costs - _sums(each))[:, known]
    rests -= np.median(rests, axis=1, keepdims=True)
    rest = (np.median(costs, axis=0) - _sums(whole))[known]
    rest -= np.median(rest)
    freedom = size * (size - 3) // 2
    scale = _scale(rest, size)
    spread = scale * math.sqrt(math.pi / 2 / (size - 1))
    bound = max(MATTERS, spread * quantile(ERROR / size, freedom))
    named = np.flatnonzero(_lasting(each, rng) & (whole > bound))
    bound = max(MATTERS, scale * quantile(ERROR / len(rest), freedom))
    always = rests.min(axis=0) > MATTERS
    outside = np.flatnonzero(_lasting(rests, rng) & (rest > bound) & always)
    is_slow = np.isin(np.arange(size), named)
    usual = np.median(whole[~is_slow]) if not is_slow.all() else 0.0
    nodes = [Outlier(math.exp(whole[i] - usual), int(i)) for i in named]
    places = np.argwhere(known)
    pairs = [Outlier(math.exp(rest[k]), int(places[k][0]), int(places[k][1])) for k in outside]
    return (
        tuple(sorted(nodes, key=lambda o: -o.ratio)),
        tuple(sorted(pairs, key=lambda o: -o.ratio)),
        _apart(np.median(both, axis=0), whole, is_slow),
    )


def polished(costs: Floats) -> Floats:
    """Return the effect of each node of symmetric matrices of log costs; their median is 0.

    The diagonal is skipped. One matrix or a stack of them.
    """
    import numpy as np

    size = costs.shape[-1]
    others = ~np.eye(size, dtype=bool)
    effects = np.zeros(costs.shape[:-1])
    for _ in range(STEPS):
        rest = (costs - _sums(effects))[..., others]
        rows = np.median(rest.reshape(*costs.shape[:-1], size - 1), axis=-1)
        # By half: a node's effect is in the rows of all others too.
        effects += (rows - np.median(rows, axis=-1, keepdims=True)) / 2
    found: Floats = effects - np.median(effects, axis=-1, keepdims=True)
    return found


def _sums(effects: Floats) -> Floats:
    """Return the matrix of the sums of the effects of both nodes of each pair."""
    found: Floats = effects[..., :, None] + effects[..., None, :]
    return found


def _scale(rest: Floats, effects: int) -> float:
    """Return the standard deviation of rests, robustly.

    As many of them as there are `effects` are 0, or nearly, because those were chosen so; the
    median is of the others.
    """
    import numpy as np

    return float(np.median(np.sort(np.abs(rest))[effects:])) / 0.6745


def _lasting(table: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which columns are higher than the others from launch (row) to launch."""
    import numpy as np

    centred = table - np.median(table, axis=1, keepdims=True)
    sd = float(np.median(np.abs(centred))) * 1.4826
    centred = centred.clip(-max(CLIP * sd, 2 * MATTERS), max(CLIP * sd, 2 * MATTERS))
    mean = centred.mean(axis=0)
    squares = (_permuted_means(centred, rng) ** 2).sum(axis=1)
    # What is equal but for rounding is as large.
    if (1 + (squares >= (mean**2).sum() * (1 - 1e-9)).sum()) > ERROR * (1 + PERMUTATIONS):
        return np.zeros(len(mean), dtype=bool)
    noise = (centred - mean) * math.sqrt(len(table) / (len(table) - 1))
    highest = _permuted_means(noise, rng).max(axis=1)
    found: NDArray[np.bool_] = mean - np.median(mean) > np.quantile(highest, 1 - ERROR)
    return found


def _permuted_means(table: Floats, rng: np.random.Generator) -> Floats:
    """Return PERMUTATIONS rows: the means of the columns, each row of the table shuffled."""
    import numpy as np

    each = max(1, AT_ONCE // table.size)
    return np.concatenate(
        [
            rng.permuted(np.tile(table, (min(each, PERMUTATIONS - start), 1, 1)), axis=2).mean(
                axis=1
            )
            for start in range(0, PERMUTATIONS, each)
        ]
    )


def _apart(costs: Floats, effects: Floats, slow: NDArray[np.bool_]) -> bool:
    """Return whether slow nodes reach each other about as fast as the others reach each other.

    If the nodes themselves were slow, a pair of two would be slow by both.
    """
    import numpy as np

    if slow.sum() < 2 or (~slow).sum() < 2:
        return False
    inside, outside = (
        np.median(costs[np.ix_(one, one)][~np.eye(one.sum(), dtype=bool)]) for one in (slow, ~slow)
    )
    return bool(inside - outside < np.median(effects[slow]) - np.median(effects[~slow]))
