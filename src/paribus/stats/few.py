"""Verdicts from few launches: a start in fully random order, then pairs, and looks from 6 on.

Six pairs have 2^6 orders, so that chance alone puts all of A below all of B in 2 of 64 studies.
Six launches of each arm in fully random order have 924: 2 of 924 is less than nine pairs cost.
So the launches of the first START blocks are shuffled, and the statistic at a look is

    T(theta) = a #{differences of the start > theta} + b #{Walsh averages of the pairs > theta},

Mann and Whitney's count and Wilcoxon's, whose distribution under "no difference" is an exact
convolution, free of the noise. a : b is (pairs + 1) : 1.43 / (2 start + 1), as their efficacies in
normal noise. The interval holds the theta that T does not reject; without a start it is that of
estimate.py.

Each look has two one-sided levels: `away` for the ends away from a ratio of 1, `towards` for those
towards it. A true effect above 1 is missed if the data are too high (away; 1.5 % over all looks) or
too low (towards; 3.5 %): so the width is spent where it decides (J. W. Pratt, J. Am. Stat. Assoc.
56 (1961) 549, has the idea). few.toml holds the levels (tools/calibrate_few.py).

All of this rests on arms that differ by a factor, not in kind. Where their launches scatter
differently, the log ratios of pairs need not be symmetric, and then neither count is about the
ratio of a typical pair, which half of all pairs exceed. So such a look takes the launches as the
pairs that they also are (the blocks of the start match them at random) and inverts the sign test,
at the level away on both sides: two of the ordered log ratios, whatever their distribution.

What no look can see is a second state that no launch has met yet. If one arm alone has it in half
of its launches, all of START are alike in 2 of 2^START studies, and the ratio is wrong: 3.1 % for
6. With 5 it would be 6.3 %, more than all looks together may err. docs/statistics-details.md has
the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from paribus.core import SHUFFLED, units
from paribus.stats.looks import FEW_LOOKS, Looks, nominal_level

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Logs = Sequence[float] | Floats

Ends = tuple[float, float]

START = SHUFFLED
"""Blocks whose launches are in fully random order."""

LOOKS = FEW_LOOKS

LARGE_UNTIL = 8
"""Blocks before which only a large effect is found, and from which on pairs alone can find any."""

SIZE_SHARE = 1 / 2
"""Share of the effect that the half-width may have for a verdict "by how much"."""

UNEVEN = 1.75
"""Arms scatter differently where their standard deviations are over exp(UNEVEN / sqrt(n - 1))
apart: 2.2-fold after 6 launches, 1.5-fold after 20. In normal noise one look in ten is such."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """The result of a look after so many `blocks`, as logs: `estimate`, and ends by both levels.

    `level`: the confidence of the interval by itself. `uneven`: the ratio of the arms' scatters,
    where it was so large that the sign test was used; else 0.
    """

    blocks: int
    estimate: float
    away: Ends
    towards: Ends
    level: float
    uneven: float = 0.0

    @property
    def ends(self) -> Ends:
        """The interval: each end by the level that is for its side of a ratio of 1."""
        return joined(self.away, self.towards)


def joined(away: Ends, towards: Ends) -> Ends:
    """Return the interval of the ends at both levels."""
    low = towards[0] if towards[0] < 0 else max(away[0], 0.0)
    high = towards[1] if towards[1] > 0 else min(away[1], 0.0)
    return low, high


def schedule(blocks: int, start: int = START) -> Looks:
    """Return the looks of a study of at most `blocks` blocks, the last at `blocks` itself.

    `level` is for what is judged by pairs at the same looks (cases, changes between studies): all
    looks together err in 5 %. Without a `start` the first look is at 8. Raises ValueError for
    fewer blocks than the first look, and for more than the last one.
    """
    first = LOOKS[0] if start else LARGE_UNTIL
    if not first <= blocks <= LOOKS[-1]:
        raise ValueError(f"{units.count(blocks, 'block')}: this design has from {first} to 60")
    at = (*(n for n in LOOKS if first <= n < blocks), blocks)
    return Looks(at, nominal_level(0.05, at, few=True), few=True)


def levels(n: int, most: int, start: int) -> tuple[float, float]:
    """Return the one-sided levels away from 1 and towards 1 after `n` blocks of at most `most`."""
    of = _constants(most)["mixed" if start else "pairs"]
    away = of["away"] * math.sqrt(12 / n)
    return away, max(of["towards"], away)


@cache
def _constants(most: int) -> dict[str, dict[str, float]]:
    """Return the levels of the shortest tabulated study that is at least `most` blocks long."""
    import tomllib

    table = tomllib.loads((files("paribus.stats") / "few.toml").read_text(encoding="utf-8"))
    constants: dict[str, dict[str, float]] = next(
        of for blocks, of in table.items() if int(blocks) >= most
    )
    return constants


def weights(start: int, pairs: int) -> tuple[int, int]:
    """Return the weights of a difference of the start and of a Walsh average of the pairs."""
    if not (start and pairs):
        return 1, 1
    return pairs + 1, round((2 * start + 1) / 1.43)


@lru_cache(maxsize=64)
def null_cdf(start: int, pairs: int) -> Floats:
    """Return P(T <= t), t from 0 on, for `start` launches of each arm and `pairs` without ties."""
    import numpy as np

    from paribus.stats.estimate import signed_rank_cdf

    a, b = weights(start, pairs)
    of_start = np.zeros(a * start * start + 1)
    of_start[::a] = _rank_sum_chances(start)
    of_pairs = np.zeros(b * pairs * (pairs + 1) // 2 + 1)
    of_pairs[::b] = np.diff(signed_rank_cdf(pairs), prepend=0.0)
    cdf: Floats = np.cumsum(np.convolve(of_start, of_pairs))
    return cdf


def _rank_sum_chances(m: int) -> Floats:
    """Return P(U = u), u the differences above 0 of two arms of `m` launches in random order."""
    import numpy as np

    # Launch after launch of the ordered 2 m: of those in the arm so far, the sum of their places.
    sums = np.zeros((m + 1, 2 * m * m + 1))
    sums[0, 0] = 1
    for place in range(2 * m):
        for count in range(m, 0, -1):
            sums[count, place:] += sums[count - 1, : sums.shape[1] - place]
    least = m * (m - 1) // 2
    chances: Floats = sums[m, least : least + m * m + 1] / math.comb(2 * m, m)
    return chances


def critical(start: int, pairs: int, level: float) -> int:
    """Return the largest t with P(T <= t) <= `level`, or -1 if even t = 0 is too likely."""
    cdf = null_cdf(start, pairs)
    return int(cdf.searchsorted(level * (1 + 1e-9), side="right")) - 1


def intervals(
    reference: Logs, arm: Logs, start: int, errors: Sequence[float]
) -> tuple[float, list[Ends]]:
    """Return the estimate of ln(arm / reference), and its interval at each one-sided error.

    `reference` and `arm` are the logs of the launches by block, the `start` shuffled blocks first.
    +-inf stands for a launch cut off by a time limit; of two nothing is known, which widens the
    interval and leaves the estimate to the others.
    """
    import numpy as np

    ours, theirs = np.asarray(reference, dtype=float), np.asarray(arm, dtype=float)
    pairs = len(ours) - start
    with np.errstate(invalid="ignore"):
        differences = (theirs[:start, None] - ours[None, :start]).ravel()
        ratios = theirs[start:] - ours[start:]
        one, other = np.triu_indices(pairs)
        walsh = (ratios[one] + ratios[other]) / 2
    a, b = weights(start, pairs)
    points = np.concatenate([differences, walsh])
    masses = np.concatenate([np.full(len(differences), a), np.full(len(walsh), b)])
    return _between(points, masses, [critical(start, pairs, error) for error in errors])


def by_signs(reference: Logs, arm: Logs, error: float) -> tuple[float, Ends]:
    """Return the median log ratio of the pairs, and the interval of the sign test at `error`.

    One-sided, as all errors here. Launches that were cut off count as in `intervals`.
    """
    import numpy as np

    with np.errstate(invalid="ignore"):
        ratios = np.asarray(arm, dtype=float) - np.asarray(reference, dtype=float)
    most = critical_sign(len(ratios), error)
    estimate, [ends] = _between(ratios, np.ones(len(ratios), dtype=int), [most])
    return estimate, ends


def critical_sign(n: int, error: float) -> int:
    """Return the largest k with P(k of `n` coins or fewer are heads) <= `error`, or -1."""
    allowed, k = error * (1 + 1e-9) * 2**n, -1
    while (allowed := allowed - math.comb(n, k + 1)) >= 0:
        k += 1
    return k


def _between(
    points: Floats, masses: NDArray[np.int64], most: Sequence[int]
) -> tuple[float, list[Ends]]:
    """Return the weighted median of `points`, and for each of `most` the interval it leaves.

    Its ends are the first points, from below and from above, at which the weight exceeds it.
    """
    import numpy as np

    found = [(_first_beyond(points, masses, k), -_first_beyond(-points, masses, k)) for k in most]
    known = ~np.isnan(points)
    return _middle(points[known], masses[known]), found


def _first_beyond(points: Floats, masses: NDArray[np.int64], most: int) -> float:
    """Return the first of the ascending points at which the weight from below exceeds `most`."""
    import numpy as np

    if most < 0:
        return -math.inf
    low = np.where(np.isnan(points), -np.inf, points)
    order = np.argsort(low)
    place = np.cumsum(masses[order]).searchsorted(most, side="right")
    return float(low[order[place]])


def _middle(points: Floats, masses: NDArray[np.int64]) -> float:
    """Return the weighted median: between the points at which half of the weight is reached."""
    import numpy as np

    if not len(points):
        return 0.0
    order = np.argsort(points)
    weight = np.cumsum(masses[order])
    half = weight[-1] / 2
    one, other = (points[order[weight.searchsorted(half, side=s)]] for s in ("left", "right"))
    return 0.0 if one == -other else float(one + other) / 2


def scatter_ratio(reference: Logs, arm: Logs) -> float:
    """Return how many times as much one arm scatters as the other, at least 1; inf if unknown."""
    import numpy as np

    ours, theirs = np.asarray(reference, dtype=float), np.asarray(arm, dtype=float)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return math.inf
    less, more = sorted((float(ours.std()), float(theirs.std())))
    if less == more:
        return 1.0
    return more / less if less > 0 else math.inf


def uneven(reference: Logs, arm: Logs) -> float:
    """Return the ratio of the scatters where it is too large for T to count, else 0."""
    ratio = scatter_ratio(reference, arm)
    limit = math.exp(UNEVEN / math.sqrt(len(reference) - 1)) if len(reference) > 1 else math.inf
    return ratio if ratio > limit else 0.0


def weigh(reference: Logs, arm: Logs, start: int, most: int) -> Weighed:
    """Return the result of a look at the logs of launches by block, the shuffled blocks first.

    `start`: how many of these blocks are of the start (fewer than START if some failed, 0 where
    nothing was shuffled). `most`: the last look of the plan, in blocks.
    """
    n = len(reference)
    away, towards = levels(n, most, START if start else 0)
    if scatters := uneven(reference, arm):
        # Eight pairs on one side may decide the case.
        away = max(away, 2.0**-n) if n == LARGE_UNTIL else away
        estimate, ends = by_signs(reference, arm, away)
        if n < LARGE_UNTIL:
            ends = (-math.inf, math.inf)
        return Weighed(n, estimate, ends, ends, 1 - 2 * away, scatters)
    estimate, (by_away, by_towards) = intervals(reference, arm, start, (away, towards))
    return Weighed(n, estimate, by_away, by_towards, 1 - away - towards)


def interval(looks: Sequence[Weighed], *, last: bool) -> tuple[Ends, Ends | None]:
    """Return the interval of the latest of `looks`, and the one that may say "equivalent".

    Before LARGE_UNTIL blocks the first is extended to a ratio of 1, unless it is short enough
    beside the effect for a verdict; the second is None, except at the `last` look. From then on it
    is what the intervals since have in common: they hold at all looks together, so an end that was
    reached stays reached. Where that is nothing, they contradict each other, and it is None.
    """
    now = looks[-1]
    low, high = now.ends
    if now.blocks < LARGE_UNTIL:
        if last:
            return (low, high), (low, high)
        if not (high - low) / 2 <= abs(now.estimate) * SIZE_SHARE:
            low, high = min(low, 0.0), max(high, 0.0)
        return (low, high), None
    since = [one for one in looks if one.blocks >= LARGE_UNTIL]
    away, towards = (
        (max(ends[0] for ends in several), min(ends[1] for ends in several))
        for several in ([one.away for one in since], [one.towards for one in since])
    )
    settled = joined(away, towards)
    return (low, high), settled if settled[0] <= settled[1] else None
