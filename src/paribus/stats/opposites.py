"""Parts of four changes or more that are free: each combination is launched with its opposite.

The opposite of a combination has every change switched that it has not. The two are launched one
after the other, which of them first by a coin, so that drift favours neither; reference and arm are
such a pair. The difference of their logs is the sum of the parts that the combination has less the
sum of the others, also where changes act in pairs. So least squares over all pairs of a study, with
the sum of the parts held at the difference of reference and arm, gives the parts. If combinations
of s changes of n are launched in proportion to 1 / (s (n - s)), these are Shapley values also where
more than two act together (Charnes, Golany, Keane & Rousseau, in *Econometrics of Planning and
Efficiency* (1988) 123; in pairs: Covert & Lee, AISTATS 2021, PMLR 130, 3457).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core import Comparison
from paribus.stats.looks import LOOKS
from paribus.stats.schedule import Randomiser
from paribus.stats.student import quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RUN = LOOKS[1]
"""Blocks over which combinations are spread evenly: as many as the first look of most takes."""

HELD = 1e6
"""The weight of reference and arm in least squares: that of a constraint."""


@lru_cache(maxsize=4096)
def dealt(several: int, seed: int, stream: str, run: int) -> tuple[tuple[int, ...], ...]:
    """Return for each block of a run the combinations that it launches beside both arms.

    A combination is a set of changes as bits of a number; of it and its opposite, which is launched
    too, it is the one with change 0. There are half as many as changes: with more a block, the
    reference and the arm would have too few launches. Sizes come in their proportion; of one size,
    none comes again before all others.
    """
    draw = Randomiser(seed, f"opposites of {stream} in run {run}")
    every: dict[int, list[int]] = {size: [] for size in range(1, several // 2 + 1)}
    for one in range(1, (1 << several) - 1, 2):
        every[min(one.bit_count(), several - one.bit_count())].append(one)
    share = {size: (2 - (2 * size == several)) / size / (several - size) for size in every}
    given = {size: draw.below(1000) / 1000 for size in every}  # rounds up or down by chance
    left: dict[int, list[int]] = {size: [] for size in every}
    blocks = []
    for _ in range(RUN):
        hand: list[int] = []
        while len(hand) < (several + 1) // 2:
            size = min(every, key=lambda size: given[size] / share[size])
            if set(left[size]) <= set(hand):
                left[size] += draw.shuffled(every[size])
            hand.append(next(one for one in left[size] if one not in hand))
            left[size].remove(hand[-1])
            given[size] += 1
        blocks.append(tuple(hand))
    return tuple(blocks)


class Unit(NamedTuple):
    """A pair of launches: the logs of the combination `station` and of its opposite."""

    block: int
    station: int
    log: float
    opposite: float


class Fit(NamedTuple):
    """Least squares: the coefficients `found`, log ratios, of units, one for each pair of launches.

    `weights`: of each unit in each coefficient; `errors`: what is left of each unit, whose block is
    in `blocks`. `scatter`, `freedom`: standard error and degrees of freedom of each coefficient; a
    freedom of 0 leaves no interval.
    """

    found: Floats
    weights: Floats
    errors: Floats
    scatter: Floats
    freedom: Floats
    blocks: NDArray[np.int64]

    def comparison(self, n: int, level: float) -> Comparison:
        """Return coefficient `n` as a ratio with its interval by Student's t."""
        middle, half, freedom = float(self.found[n]), math.inf, int(self.freedom[n])
        if freedom > 2:
            half = quantile((1 - level) / 2, freedom) * float(self.scatter[n])
        ends = [middle, middle - half, middle + half]
        ratio, low, high = (math.exp(one) if one < 700 else math.inf for one in ends)
        return Comparison(len(set(self.blocks.tolist())), ratio, low, high, level)


def _fit(rows: Floats, values: Floats, held: Floats, blocks: Sequence[int], more: Any = 0) -> Fit:
    """Return the least squares of `values` by `rows`, whose weights are `held`.

    `more` is the leverage of what was taken off both before, such as the means of blocks. Standard
    errors bear units of unequal scatter (HC2; MacKinnon & White, J. Econometrics 29 (1985)
    305). Degrees of freedom are how many units a coefficient rests on, or how many are left over.
    Values that are not finite, of launches that were cut off, count as none and leave no interval.
    """
    import numpy as np

    known = np.isfinite(values)
    root = np.sqrt(held) * known
    weights = np.asarray(np.linalg.pinv(rows * root[:, None]) * root, dtype=np.float64)
    values = np.where(known, values, 0.0)
    found = weights @ values
    errors = (values - rows @ found) * known
    free = 1 - np.einsum("un,nu->u", rows, weights) - more
    squares = weights**2
    scatter: Floats = np.sqrt(squares @ (errors**2 / np.maximum(free, 1e-6)))
    rests_on: Floats = squares.sum(axis=1) ** 2 / np.maximum((squares**2).sum(axis=1), 1e-300)
    sure = known.all() and (free > 1e-6).all() and np.linalg.matrix_rank(rows) == rows.shape[1]
    freedom = np.minimum(rests_on, free.sum()) * bool(sure)
    return Fit(found, weights, errors, scatter, freedom, np.array(blocks))


@dataclass(frozen=True)
class Opposed:
    """The units of a study of `several` changes, in any order."""

    several: int
    units: tuple[Unit, ...]

    @cached_property
    def parts(self) -> Sequence[Mapping[int, float]]:
        """Each part by block, as log ratios: in a block they add up to the whole."""
        import numpy as np

        fit = self._fit({one.block for one in self.units})
        if fit is None:
            return [{} for _ in range(self.several)]
        known, own = np.unique(fit.blocks, return_inverse=True)
        shares = [np.bincount(own, one * fit.errors) * len(known) for one in fit.weights]
        rows = (fit.found[:, None] + np.array(shares)).tolist()
        return [dict(zip(known.tolist(), row, strict=True)) for row in rows]

    def compared(self, blocks: Collection[int], level: float) -> list[Comparison | None]:
        """Return ratio and interval of each part over these blocks; None without both arms."""
        fit = self._fit(blocks)
        return [fit and fit.comparison(n, level) for n in range(self.several)]

    def acting(self, blocks: Collection[int], level: float) -> dict[tuple[int, int], Comparison]:
        """Return for each pair how much more one change makes where the other is switched.

        It is the mean of combinations that have both or neither, less that of those with one of
        them. In each block these sums have a level of their own, which is taken off.
        """
        import numpy as np

        units, signs = self._known(blocks)
        pairs = list(combinations(range(self.several), 2))
        sums = np.array([one.log + one.opposite for one in units])
        own, more = np.array([one.block for one in units]), np.zeros(len(units))
        rows = np.array([signs[:, one] * signs[:, other] / 2 for one, other in pairs]).T
        for here in (own == block for block in set(own.tolist())):
            rows[here] -= rows[here].mean(axis=0)
            with np.errstate(invalid="ignore"):  # a launch of the block was cut off
                sums[here] -= sums[here].mean()
            more[here] = 1 / here.sum()
        fit = _fit(rows, sums, np.ones(len(units)), own.tolist(), more) if units else None
        return {pair: fit.comparison(n, level) for n, pair in enumerate(pairs) if fit}

    def _fit(self, blocks: Collection[int]) -> Fit | None:
        """Return the parts; None where no block has both arms."""
        import numpy as np

        units, signs = self._known(blocks)
        both = (signs > 0).all(axis=1)
        values = np.array([one.log - one.opposite for one in units])
        if not (both & np.isfinite(values)).any():
            return None
        return _fit(signs, values, np.where(both, HELD, 1.0), [one.block for one in units])

    def _known(self, blocks: Collection[int]) -> tuple[list[Unit], Floats]:
        """Return the units of `blocks` whose effect is known, and the changes of each: 1 or -1."""
        import numpy as np

        own = set(blocks)
        units = [one for one in self.units if one.block in own]
        units = [one for one in units if not math.isnan(one.log - one.opposite)]
        stations = np.array([one.station for one in units], dtype=np.int64)
        return units, np.where(stations[:, None] >> np.arange(self.several) & 1, 1.0, -1.0)
