"""Words on many cases of a benchmark, with control of the error over all: which are supported.

Among ten cases of identical arms some interval excludes 1 in a third of studies. So each case gets
a p value, at which it would just have its word; the p is corrected for the looks (looks.any_look_p)
and then for the family: from 8 cases on by Benjamini & Hochberg (J. R. Stat. Soc. B 57 (1995)
289), which keeps the share of wrong words among the words said; below, where a share means little,
by a closed test that keeps the chance of any wrong word.

When to stop may be decided by anything that the looks show, the headline above all, and cases are
then judged where it stopped: "p is small at the look where we stopped" lies within "p is small at
some look", and that is what `any_look_p` gives the chance of. What is not allowed is to judge at a
number of blocks that is not one of the looks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core import units
from paribus.stats.looks import LOOKS, Looks
from paribus.stats.verdict import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_FOR_SHARE = 8
"""Cases from which on the share of wrong words is controlled rather than the chance of any."""

FLIPS = 4000
"""Draws of the signs: they place a chance of 5 % to within 0.35 % (one standard error)."""

FLIPPED_BLOCKS = 200
"""The dependence between cases is taken from the first so many blocks."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The result for one case of a family.

    `p` is `word_p` of its log ratios; `adjusted` the same after the looks and the family: a word
    is `supported` if it is at or below the error asked for. `level` is the confidence level of
    the interval to print: if supported, one at which every supported case's interval gives its
    word, and at which all these intervals together miss the truth as rarely as one alone would
    (false coverage rate; Benjamini & Yekutieli, J. Am. Stat. Assoc. 100 (2005) 71); otherwise
    that of a case on its own.
    """

    p: float
    adjusted: float
    supported: bool
    level: float


def word_p(log_ratios: Sequence[float], margin: float) -> float:
    """Return the smallest two-sided error at which the interval of `log_ratios` gives a word.

    The interval of estimate.compare at level 1 - a lies wholly above ln(1 + margin), wholly below
    its negative, or wholly between the two, if and only if a is at least this p. For "above" that
    is 2 P(W <= c), c the number of Walsh averages at or below ln(1 + margin); for "between" the
    larger of the two one-sided ones, doubled. A wrong word takes a rejection at one of the two
    limits, so at most a share a of studies gives one with p <= a. With margin 0 it is the p of
    "differs"; it is 1 for no log ratios and while no verdict is possible. +-inf stands for a launch
    cut off by a limit. Raises ValueError for NaN and for a negative margin.
    """
    import numpy as np

    values = np.sort(np.asarray(log_ratios, dtype=np.float64))
    if np.isnan(values).any():
        raise ValueError("a log ratio is NaN")
    if not margin >= 0:
        raise ValueError(f"a margin of {margin}")
    if not len(values):
        return 1.0
    outer, inner = (math.log1p(margin) + rounding for rounding in (ROUNDING, -ROUNDING))
    above, above_low = _at_or_below(values, outer), _at_or_below(values, -inner)
    mirrored = -values[::-1]
    below, below_high = _at_or_below(mirrored, outer), _at_or_below(mirrored, -inner)
    return _two_sided(len(values), min(above, below, max(above_low, below_high)))


def _at_or_below(values: Floats, limit: float) -> int:
    """Return how many Walsh averages of sorted `values` are at or below `limit`.

    The average of +inf and -inf is unknown and counts as such.
    """
    import numpy as np

    # x + y <= 2 limit, counted over ordered pairs; those of a value with itself occur once.
    partners = np.searchsorted(values, 2 * limit - values, side="right")
    return (int(partners.sum()) + int((values <= limit).sum()) + 1) // 2


def _two_sided(n: int, w: int) -> float:
    """Return 2 P(W <= w), at most 1: the smallest error at which critical_rank(n, error) >= w."""
    from paribus.stats.estimate import EXACT_UP_TO, critical_rank, signed_rank_cdf

    if n <= EXACT_UP_TO:
        return min(1.0, 2 * float(signed_rank_cdf(n)[w]))
    low, high = -300.0, 0.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if critical_rank(n, 10**middle) >= w else (middle, high)
    return float(10**high)


def claims(
    series: Sequence[Mapping[int, float]],
    margins: Sequence[float],
    looks: Looks,
    *,
    seed: int,
    error: float = 0.05,
) -> tuple[Claim, ...]:
    """Return, for each case, whether the family supports a word on it.

    `series` holds the log ratios of a case by block, up to the look at which the benchmark stands;
    `margins` belong to them. A case may lack blocks, for reasons that have nothing to do with its
    values. Cases with fewer blocks than the first look, at most 8, are no members. `looks`
    are all looks planned, `seed` is that of the flips of fewer than 8 cases, and `error` the share
    of wrong words among words (8 or more) or the chance of any wrong word (fewer).

    Raises ValueError for as many margins as there are not series, and what `word_p` raises.
    """
    if len(series) != len(margins):
        cases = units.count(len(series), "case")
        raise ValueError(f"{cases} and {units.count(len(margins), 'margin')}")
    p = [word_p(list(one.values()), m) for one, m in zip(series, margins, strict=True)]
    at = counts_at_looks(series, looks)
    members = [i for i, one in enumerate(series) if len(one) >= min(LOOKS[0], looks.at[0])]
    any_look = {i: looks.any_p(p[i], at[i]) for i in members}
    alone = [any_look[i] for i in members]
    if len(members) >= LEAST_FOR_SHARE:
        corrected = benjamini_hochberg(alone)
    else:
        corrected = _closed_test([series[i] for i in members], alone, seed)
    adjusted = dict(zip(members, corrected, strict=True))
    supported = {i for i in members if adjusted[i] <= error}
    # Dependence may support a case beyond the false coverage rate; its interval must show it.
    together = max(
        [error * len(supported) / max(1, len(members)), *(any_look[i] for i in supported)]
    )
    return tuple(
        Claim(
            p=p[i],
            adjusted=adjusted.get(i, 1.0),
            supported=i in supported,
            level=1 - _up(max(p[i], looks.nominal(together, at[i])))
            if i in supported
            else looks.confidence,
        )
        for i in range(len(series))
    )


def counts_at_looks(series: Sequence[Mapping[int, float]], looks: Looks) -> list[tuple[int, ...]]:
    """Return how many log ratios each case had, or will have, at each look."""
    blocks = sorted(set().union(*series))
    found = []
    for one in series:
        missing = [block not in one for block in blocks]
        found.append(tuple(n - sum(missing[:n]) for n in looks.at))
    return found


def _up(error: float) -> float:
    """Return an error rounded up to 12 digits, as compare() rounds: never below a case's p."""
    return math.ceil(error * 1e12) / 1e12


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the share of false ones among those called.

    The share is kept for independent p values and those that depend positively, as cases of one
    launch do (Benjamini & Yekutieli, Ann. Statist. 29 (2001) 1165).
    """
    count = len(p_values)
    return _from_largest(p_values, lambda place: count / (count - place))


def hochberg(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the chance of any false one, if they depend positively.

    Y. Hochberg, Biometrika 75 (1988) 800; positive dependence is that of cases of one launch.
    """
    return _from_largest(p_values, lambda place: place + 1)


def _from_largest(p_values: Sequence[float], factor: Callable[[int], float]) -> list[float]:
    """Return p values times the factor of their place from the largest, 0, and never growing."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i], reverse=True)
    adjusted = [1.0] * len(p_values)
    least = 1.0
    for place, i in enumerate(order):
        least = min(least, p_values[i] * factor(place))
        adjusted[i] = least
    return adjusted


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p values adjusted for the chance of any false one, however they depend.

    Holm, Scand. J. Statist. 6 (1979) 65; for the ranking of more than two arms.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [1.0] * len(p_values)
    most = 0.0
    for place, i in enumerate(order):
        most = max(most, min(1.0, p_values[i] * (len(p_values) - place)))
        adjusted[i] = most
    return adjusted


def _closed_test(
    series: Sequence[Mapping[int, float]], alone: Sequence[float], seed: int
) -> list[float]:
    """Return the p values adjusted for the chance of any false one, given the dependence.

    Closed testing (Marcus, Peritz & Gabriel, Biometrika 63 (1976) 655): a case is called only if
    every set of cases that it belongs to differs. A set differs if its smallest p is rarely so
    small (what the largest statistic shows, good for one case among many that vary together), or
    if many of its p are small by Simes' inequality (Biometrika 73 (1986) 751; good for cases that
    all say the same). How often chance brings about either is counted among flips of the signs of
    whole blocks, in which the cases vary together as they do in the data.
    """
    import numpy as np

    count = len(alone)
    if count < 2:
        return list(alone)
    p = np.array(alone)
    flipped = flipped_p(series, seed)
    order = np.argsort(flipped, axis=0)
    ranked = np.take_along_axis(flipped, order, axis=0)
    adjusted = p.copy()
    for chosen in itertools.product((False, True), repeat=count):
        members = np.array(chosen)
        if members.sum() > 1:
            chance = _set_p(np.sort(p[members]), ranked, members[order])
            adjusted[members] = np.maximum(adjusted[members], chance)
    return [min(1.0, float(x)) for x in adjusted]


def _set_p(p: Floats, ranked: Floats, member: NDArray[np.bool_]) -> float:
    """Return the chance of the sorted p values `p` of a set, or of worse, among the flips.

    `ranked` are the p values of the flips (place, flip), `member` says which belong to the set.
    """
    import numpy as np

    size, flips = len(p), ranked.shape[1]
    theirs = np.where(member, ranked, np.inf)
    smallest = theirs.min(axis=0)
    simes = size * (theirs / np.maximum(1, np.cumsum(member, axis=0, dtype=np.int8))).min(axis=0)
    as_small = float(p[0])
    share = float((smallest <= as_small).mean())
    of_simes = float((p * size / np.arange(1, size + 1)).min())
    if of_simes < share:
        # The smallest p that is as rare among the flips as Simes' statistic is by his inequality.
        share = of_simes
        place = max(0, math.floor(share * flips) - 1)
        as_small = float(np.partition(smallest, place)[place])
    either = (smallest <= as_small) | (simes <= share)
    return float((1 + either.sum()) / (1 + flips))


def flipped_p(series: Sequence[Mapping[int, float]], seed: int) -> Floats:
    """Return the signed-rank p of each case (row) under flips of whole blocks (column).

    The log ratios are centred at their Hodges-Lehmann estimate; a flip turns all cases of a block
    at once, so what the cases have in common stays. Each row by itself is uniform: a p is drawn
    from the step of the exact distribution that it stands for.
    """
    import numpy as np

    from paribus.stats.estimate import signed_rank_cdf

    blocks = sorted(set().union(*series))[:FLIPPED_BLOCKS]
    rng = np.random.Generator(np.random.PCG64(seed))
    flips = rng.integers(0, 2, (FLIPS, len(blocks))).astype(np.float32)
    found = np.ones((len(series), FLIPS))
    for row, one in enumerate(series):
        here = [place for place, block in enumerate(blocks) if block in one]
        n = len(here)
        if not n:
            continue
        centred = _centred(np.array([one[blocks[place]] for place in here]))
        ranks = np.empty(n)
        ranks[np.argsort(np.abs(centred), kind="stable")] = np.arange(1, n + 1)
        up = centred > 0
        # W is the sum of the ranks whose sign, after the flip, is up.
        signed = np.where(up, -ranks, ranks).astype(np.float32)
        w = np.rint(flips[:, here] @ signed + ranks[up].sum()).astype(np.int64)
        tail = np.minimum(w, n * (n + 1) // 2 - w)
        cdf = np.concatenate([[0.0], signed_rank_cdf(n)])
        step = cdf[tail + 1] - cdf[tail]
        found[row] = 2 * (cdf[tail] + rng.random(FLIPS) * step)
    return found


def _centred(values: Floats) -> Floats:
    """Return the values less their Hodges-Lehmann estimate, which infinite ones stay out of."""
    import numpy as np

    from paribus.stats.estimate import hodges_lehmann

    finite = values[np.isfinite(values)]
    centred: Floats = values - (hodges_lehmann(finite, 0.5)[0] if len(finite) else 0.0)
    return centred
