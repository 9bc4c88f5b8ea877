"""After which blocks a study looks at its evidence, and at which level, so that all looks together
err as rarely as one would.

Looking six times at 5 % each would find "a difference" between identical arms in 16 % of
studies. Every look of a schedule uses the same smaller level instead (Pocock, Biometrika 64
(1977) 191), chosen so that all looks together err in 1 - confidence of them.

For errors other than the usual three, and for a p value found at one of the looks,
`any_look_p` gives what all looks together do, and `nominal_level` its inverse. Signed ranks make
that possible: without a difference and without ties their p values at the looks have one joint
distribution whatever the data's, so it can be tabulated once (tools/calibrate_looks.py).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from paribus.core import units

LOOKS = (8, 12, 18, 27, 40, 60)
"""Numbers of complete blocks after which the evidence is judged, each about 1.5 times the last."""

LONGER = (90, 135, 200, 300, 450, 675, 1000)
"""The looks of studies that may go on beyond 60 blocks."""

FEW_LOOKS = (6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 34, 42, 50, 60)
"""The looks of studies of few launches (stats/few.py)."""

# Largest level at which studies with 1, 2, 3, ... looks err in at most 1 - confidence of them:
# tools/calibrate_looks.py, 4,000,000 draws (1,000,000 beyond 60 blocks), seed 2026, two standard
# errors on the safe side. One exception: 0.0140 would do for the six looks to 60 blocks at 95 %
# (it errs in 4.97 %); 0.0130 (4.69 %) is what Paribus documents and what its plans say.
LEVELS = {
    0.90: (
        *(0.1000, 0.0771, 0.0538, 0.0409, 0.0343, 0.0288),
        *(0.0245, 0.0222, 0.0200, 0.0174, 0.0159, 0.0154, 0.0139),
    ),
    0.95: (
        *(0.0500, 0.0390, 0.0236, 0.0200, 0.0158, 0.0130),
        *(0.0120, 0.0100, 0.0089, 0.0078, 0.0078, 0.0072, 0.0067),
    ),
    0.99: (
        *(0.0100, 0.0078, 0.0065, 0.0047, 0.0034, 0.0027),
        *(0.0023, 0.0019, 0.0017, 0.0015, 0.0014, 0.0012, 0.0011),
    ),
}


OTHER_LOOKS = 1.05
"""The factor of any_look_p for looks that the table was not made for, as of a case that lacks
blocks: with one or two fewer at each look it is up to 3.5 % low (calibrate_looks.py --check)."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The blocks `at` which to look, and the nominal two-sided error `level` at each of them.

    `few`: those of stats/few.py, where `level` is for what is judged by pairs at the same looks.
    """

    at: tuple[int, ...]
    level: float
    few: bool = False

    @property
    def confidence(self) -> float:
        """The confidence level of the interval at each look: what `compare` takes."""
        return 1 - self.level

    def any_p(self, p: float, at: Sequence[int] | None = None) -> float:
        """Return `any_look_p` at these looks; `at`: where a case had so many log ratios there."""
        return any_look_p(p, self.at if at is None else at, few=self.few)

    def nominal(self, error: float, at: tuple[int, ...] | None = None) -> float:
        """Return `nominal_level` at these looks; `at` as in `any_p`."""
        return nominal_level(error, self.at if at is None else at, few=self.few)


def schedule(blocks: int, confidence: float = 0.95, comparisons: int = 1) -> Looks:
    """Return the looks of a study of at most `blocks` blocks, the last at `blocks` itself.

    With several `comparisons` (arms against one reference) the error is divided among them
    (Bonferroni), so that any of them errs at any look in at most 1 - confidence of studies.
    A study that ends between two looks uses the level of the one that ends at the later of them
    and so errs less, if anything (checked by tools/calibrate_looks.py --check). Raises ValueError
    for fewer than 8 blocks, with which no verdict is possible, for more than 1000, for a
    confidence that has no tabulated levels, for fewer than 1 comparison, and for blocks that can
    never decide that many comparisons.
    """
    every = LOOKS + LONGER
    many = units.count(blocks, "block")
    if blocks < every[0]:
        raise ValueError(
            f"{many}: no verdict is possible with fewer than {every[0]}, because"
            " chance alone favours one arm in all of them too often"
        )
    if blocks > every[-1]:
        raise ValueError(f"{many}: looks are planned for at most {every[-1]}")
    if confidence not in LEVELS:
        allowed = ", ".join(f"{c:.2f}" for c in LEVELS)
        raise ValueError(f"confidence {confidence}: looks are calibrated for {allowed}")
    if comparisons < 1:
        raise ValueError(units.count(comparisons, "comparison"))
    at = (*(n for n in every if n < blocks), blocks)
    if comparisons == 1:
        return Looks(at, LEVELS[confidence][len(at) - 1])
    level = nominal_level(round(1 - confidence, 12) / comparisons, at)
    if level < 2.0 ** (1 - blocks):
        raise ValueError(
            f"{many}: too few for {units.count(comparisons, 'comparison')} at"
            f" {confidence * 100:.3g} % confidence; allow more blocks or compare fewer arms"
        )
    return Looks(at, level)


def any_look_p(p: float, at: Sequence[int], *, few: bool = False) -> float:
    """Return P(the two-sided p is at or below `p` at any of the looks `at`), without a difference.

    This is what a p found at whichever look a study stopped at is worth: the event that it is as
    small there lies within the event that it is anywhere, whatever the rule that stopped the study
    looked at. Valid (a share a of studies at most has it at or below a) and never below `p`.

    `at` are the numbers of log ratios at the looks, in order: all that were planned, those not
    reached included. Returned is the sum over looks of the chance of a first crossing, its exact
    part times a tabulated share that is two standard errors high (at the levels of LEVELS, what
    these were calibrated to); 0 to 3 % above the truth for the standard looks, more for others.
    Below 1e-6 the looks are simply added up. `few`: the looks are those of stats/few.py. Raises
    ValueError for `p` outside 0 ... 1 and for no looks.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a p of {p}")
    if not at:
        raise ValueError("no looks")
    if len(at) == 1:
        return p
    at = tuple(at)
    cell = bisect_right(_table(few)[0], p) - 1
    together = min(_crossing(p, at, cell, few), _at_grid(at, few)[cell + 1])
    every, last = LOOKS + LONGER, len(at) - 1
    if not few and last < len(every) and at[:-1] == every[:last] and at[-1] <= every[last]:
        calibrated = (round(1 - c, 12) for c, levels in LEVELS.items() if p <= levels[last])
        return min([1.0, max(p, together), *calibrated])
    return min(1.0, max(p, OTHER_LOOKS * together))


@lru_cache(maxsize=1024)
def nominal_level(error: float, at: tuple[int, ...], *, few: bool = False) -> float:
    """Return the largest level at which looks `at` together err in at most `error`.

    The inverse of `any_look_p`, to 1e-15 of itself from below. Raises ValueError for an `error`
    outside 0 < error < 1.
    """
    if not 0 < error < 1:
        raise ValueError(f"an error of {error}")
    if any_look_p(error, at, few=few) <= error:
        return error
    low, high = 0.0, error
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        enough = any_look_p(middle, at, few=few) <= error
        low, high = (middle, high) if enough else (low, middle)
    return low


@lru_cache(maxsize=256)
def _at_grid(at: tuple[int, ...], few: bool) -> tuple[float, ...]:
    """Return the least chance of a crossing at each level of the grid or a larger one; inf at last.

    The chance for a larger p bounds that for a smaller one, so that the limits only rise.
    """
    grid, _ = _table(few)
    falling = [math.inf]
    for cell in reversed(range(len(grid))):
        falling.append(min(_crossing(grid[cell], at, cell, few), falling[-1]))
    return tuple(reversed(falling))


def _crossing(p: float, at: tuple[int, ...], cell: int, few: bool) -> float:
    """Return the sum over looks of P(crosses `p` there) P(at no earlier look | crosses there)."""
    _, none_earlier = _table(few)
    total, reachable = 0.0, False
    for look, n in enumerate(at):
        crosses = chance_at_most(n, p)
        # Before the first look that can cross at all, "no earlier look" is certain.
        if reachable and cell >= 0:
            crosses_first = none_earlier[min(look, len(none_earlier)) - 1][cell] / 1000
            total += crosses * crosses_first
        else:
            total += crosses
        reachable = reachable or crosses > 0
    return total


@cache
def _table(few: bool) -> tuple[tuple[float, ...], tuple[tuple[int, ...], ...]]:
    """Return the levels of the table, and for each look but the first, by level, the chance of no
    earlier crossing in thousandths."""
    import tomllib

    file = files("paribus.stats") / ("crossings_few.toml" if few else "crossings.toml")
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(table["grid"]), tuple(map(tuple, table["none_earlier"].values()))


def chance_at_most(n: int, p: float) -> float:
    """Return the chance that `n` log ratios give a two-sided p at or below `p`: at most `p`.

    From 91 log ratios on the steps of the distribution are too fine to matter: `p` itself.
    """
    from paribus.stats.estimate import signed_rank_cdf

    if n > 90:
        return p
    # The slack is that of estimate.critical_rank.
    cdf = signed_rank_cdf(n)
    k = int(cdf.searchsorted(p / 2 * (1 + 1e-12), side="right")) - 1
    return min(p, 2 * float(cdf[k])) if k >= 0 else 0.0
