"""Verdicts from few launches: a start in fully random order, then pairs, and looks from 6 on.

Six pairs have 2^6 orders, so that chance alone puts all of A below all of B in 2 of 64 studies.
Six launches of each arm in fully random order have 924: 2 of 924 is less than nine pairs cost.
So the launches of the first START blocks are shuffled, and the statistic at a look is

    T(theta) = a #{differences of the start > theta} + b #{Walsh averages of the pairs > theta},

Mann and Whitney's count and Wilcoxon's, whose distribution under "no difference" is an exact
convolution, free of the noise. a : b is (pairs + 1) : 1.43 / (2 start + 1), as their efficacies in
normal noise. The interval holds the theta that T does not reject; without a start it is that of
stats/estimate.py.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from paribus.core import (
    SHUFFLED,
    Comparison,
    Direction,
    Finding,
    Judgement,
    Metric,
    Verdict,
    percent,
    units,
)
from paribus.designs.auto import why_not_few
from paribus.designs.standard import Design, Said, Series
from paribus.stats.looks import FEW_LOOKS, Looks, nominal_level
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.verdict import blocks_needed, judge
from paribus.words.lists import listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan

    Floats = NDArray[np.float64]
    Logs = Sequence[float] | Floats

Both = tuple[Mapping[int, float], Mapping[int, float]]
"""Logs of the reference's and of the arm's launches by block."""

Ends = tuple[float, float]

START = SHUFFLED
"""Blocks whose launches are in fully random order."""

LOOKS = FEW_LOOKS

LARGE_UNTIL = 8
"""Blocks before which only a large effect is told, and from which on pairs alone can tell any."""

SIZE_SHARE = 1 / 2
"""Share of the effect that the half-width may have for a verdict "by how much"."""

UNEVEN = 1.75
"""Arms scatter differently where their standard deviations are over exp(UNEVEN / sqrt(n - 1))
apart: 2.2-fold after 6 launches, 1.5-fold after 20. In normal noise one look in ten is such."""


class Few(Design):
    """Looks from 6 blocks on, the launches of the first of which are in one random order."""

    shuffles = True
    least_blocks = LOOKS[0]
    most_blocks = LOOKS[-1]

    def refusal(self) -> tuple[str, object, str, str] | None:
        if why := why_not_few(self.study):
            return "design", "few", *why
        return super().refusal()

    def looks(self) -> Looks:
        return schedule(self.settings.blocks, self.shuffled)

    def looks_of(self, at: Sequence[int], level: float) -> Looks:
        return Looks(tuple(at), level, few=True)

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Both:
        """Return the mean logs of the launches of both `arms`, by complete block.

        A launch that the time limit cut off is infinitely slow. Of several benchmarks, each has one
        share, as times: the log of a rate has the other sign.
        """
        each: tuple[list[Mapping[int, float]], ...] = ([], [])
        for label, metric in of:
            sign = -1 if metric.better == "higher" and len(of) > 1 else 1
            slow = math.inf if metric.better == "lower" else -math.inf
            complete = evidence.complete(label, arms)
            for arm, means in zip(arms, each, strict=True):
                cut = dict.fromkeys(evidence.cut_off(label, arm), slow)
                series = []
                for cell in evidence.cells_of(label, metric.name):
                    values = evidence.series(label, arm, cell)
                    logs = {block: math.log(value) for block, value in values.items()} | cut
                    series.append({block: logs[block] for block in complete if block in logs})
                means.append({b: sign * log for b, log in headline_log_ratios(series).items()})
        return headline_log_ratios(each[0]), headline_log_ratios(each[1])

    def look(self, series: Series, looks: Sequence[int], *, last: bool) -> Said:
        if series.logs is None:
            return super().look(series, looks, last=last)
        weighed = [self._weigh(series, look) for look in looks]
        return verdict(weighed, **self.terms(series, looks[-1], last=last))

    def now(self, series: Series) -> Comparison:
        if series.logs is None:
            return super().now(series)
        now = self._weigh(series, len(series.ratios))
        return _comparison(now, now.estimate, interval([now], last=False)[0])

    def needed(self, series: Series, blocks: int) -> int | None:
        if series.logs is None:
            return super().needed(series, blocks)
        return blocks_needed(
            series.values,
            series.margin,
            series.level,
            fewest=series.plan.looks.at[0],
            share=SIZE_SHARE,
            signs=self._weigh(series, blocks).uneven > 0,
        )

    def _weigh(self, series: Series, blocks: int) -> Weighed:
        return weigh_blocks(series.plan, series.logs, series.blocks[:blocks])

    def lone_case(self, headline: Finding) -> Said | None:
        """Return what the headline says, which is this case: by pairs alone it would say less."""
        if headline.comparison is None:
            return None
        better, margin = headline.metric.better, headline.margin
        said = judge(headline.comparison, better=better, margin=margin, last=True)
        return said, headline.comparison

    def fewest_blocks(self, level: float, looks: Sequence[int]) -> int:
        return looks[0] if looks else super().fewest_blocks(level, looks)

    # --- words ---

    @property
    def _start(self) -> str:
        return units.count(self.shuffled, "launch")

    @property
    def _goes_on(self) -> bool:
        return self.settings.blocks > self.shuffled

    def sentence(self) -> str:
        rest = ", then pairs of neighbouring launches" * self._goes_on
        return (
            f"{self._start} of each arm in one random order{rest}; the launch is the experimental"
            " unit."
        )

    def compared(self) -> str:
        rest = ", then launch by launch within each block" * self._goes_on
        return f"between all of the first {self._start} of each arm{rest}"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        rows, sure = super().rows(looks, level), percent(self.settings.confidence)
        start = f"{self._start} of each arm in one random order, then " if self.shuffled else ""
        sides = "1.5 % of the error away from a ratio of 1 and 3.5 % towards it"
        return rows | {
            "Design": "few launches",
            "Order": start + rows["Order"],
            "Confidence": f"{sure} over all looks, {sides}",
        }

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        said = [f"design for few launches: looks after {', '.join(map(str, looks))} blocks"]
        if self.shuffled:
            said.append(f"  the first {self._start} of each arm are in one random order")
        return said

    def in_blocks(self) -> str:
        if not self.shuffled:
            return super().in_blocks()
        said = (
            f"The first {self._start} of each of {self.arms()} were started in one order, drawn at"
            f" random {self.seed()}."
        )
        if self._goes_on:
            said += f" Blocks followed: each held one launch of each arm, {self.placed()}."
        return said

    def estimated(self, judgement: Judgement) -> str:
        """Return what the ratio and its interval are, and which headlines rest on signs."""
        said = super().estimated(judgement)
        if self.shuffled:
            said = (
                f"{self.against()} is the weighted median of the differences between the arms'"
                " logarithms in the shuffled start and of the averages of two log ratios within"
                " later blocks, with the exact interval of the two counts together (Mann-Whitney"
                " and signed rank)."
            )
        signs = {f.benchmark for f in judgement.headlines if f.verdict.figures.get("uneven")}
        if signs:
            said += (
                f" The arms' launches of {listed(sorted(signs), last=' and ')} scattered"
                " differently: there the ratio is the median within blocks, with the exact interval"
                " of the sign test."
            )
        return said

    def level(self, level: float) -> str:
        return (
            "Each end of an interval has a level of its look and of its side, 1.5 % away from a"
            " ratio of 1 and 3.5 % towards it over all looks"
        )


def weigh_blocks(frozen: Plan, logs: Both, blocks: Sequence[int]) -> Weighed:
    """Return what a look at `blocks` says."""
    # A start of another length, as in plans frozen before, has no levels: it is judged by pairs.
    start = sum(map(frozen.shuffled, blocks)) if frozen.looks.at[0] == START else 0
    ours, theirs = (tuple(of[block] for block in blocks) for of in logs)
    return _weighed(ours, theirs, start, frozen.looks.at[-1])


def verdict(
    looks: Sequence[Weighed],
    *,
    better: Direction,
    margin: float,
    last: bool,
    needed: int | None,
    size_known: bool,
) -> tuple[Verdict, Comparison]:
    """Return what the latest of `looks` says after the others, and its interval."""
    now = looks[-1]
    ends, settled = interval(looks, last=last)
    delta, estimate = math.log1p(margin), now.estimate
    beyond = ends[0] > delta or ends[1] < -delta
    if settled and not beyond and -delta < settled[0] and settled[1] < delta:
        ends, estimate = settled, min(max(estimate, settled[0]), settled[1])
    comparison = _comparison(now, estimate, ends)
    judged = judge(
        comparison,
        better=better,
        margin=margin,
        last=last,
        needed=needed,
        size_known=size_known,
        share=SIZE_SHARE,
        large_only=now.blocks < LARGE_UNTIL and not last,
    )
    if now.uneven:
        judged = replace(judged, figures={**judged.figures, "uneven": now.uneven})
    return judged, comparison


def _comparison(now: Weighed, estimate: float, ends: Ends) -> Comparison:
    low, high = (_exp(end) for end in ends)
    return Comparison(now.blocks, _exp(estimate), low, high, now.level)


def _exp(log: float) -> float:
    return math.inf if log > 700 else math.exp(log)


# --- statistics ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a look at so many `blocks` says, as logs: `estimate`, and ends by both levels.

    `level` is the confidence of the interval by itself. `uneven` is how many times as much the
    launches of one arm scatter, where that made the signs of pairs alone count; else 0.
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

    table = tomllib.loads((files("paribus.designs") / "few.toml").read_text(encoding="utf-8"))
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
    heavy = np.concatenate([np.full(len(differences), a), np.full(len(walsh), b)])
    return _between(points, heavy, [critical(start, pairs, error) for error in errors])


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
    points: Floats, heavy: NDArray[np.int64], most: Sequence[int]
) -> tuple[float, list[Ends]]:
    """Return the weighted median, and the points beyond which each of `most` is exceeded."""
    import numpy as np

    found = [(_first_beyond(points, heavy, k), -_first_beyond(-points, heavy, k)) for k in most]
    known = ~np.isnan(points)
    return _middle(points[known], heavy[known]), found


def _first_beyond(points: Floats, heavy: NDArray[np.int64], most: int) -> float:
    """Return the first of the ascending points at which the weight from below exceeds `most`."""
    import numpy as np

    if most < 0:
        return -math.inf
    low = np.where(np.isnan(points), -np.inf, points)
    order = np.argsort(low)
    place = np.cumsum(heavy[order]).searchsorted(most, side="right")
    return float(low[order[place]])


def _middle(points: Floats, heavy: NDArray[np.int64]) -> float:
    """Return the weighted median: between the points at which half of the weight is reached."""
    import numpy as np

    if not len(points):
        return 0.0
    order = np.argsort(points)
    weight = np.cumsum(heavy[order])
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
    """Return what a look says of the logs of launches by block, the shuffled blocks first.

    `start` is how many of these blocks are of the start (fewer than START if some failed, 0 where
    nothing was shuffled), `most` the last look of the plan.
    """
    n = len(reference)
    away, towards = levels(n, most, START if start else 0)
    if apart := uneven(reference, arm):
        # Eight pairs on one side are to tell what they can.
        away = max(away, 2.0**-n) if n == LARGE_UNTIL else away
        estimate, ends = by_signs(reference, arm, away)
        if n < LARGE_UNTIL:
            ends = (-math.inf, math.inf)
        return Weighed(n, estimate, ends, ends, 1 - 2 * away, apart)
    estimate, (by_away, by_towards) = intervals(reference, arm, start, (away, towards))
    return Weighed(n, estimate, by_away, by_towards, 1 - away - towards)


# A study is replayed after every block, and each look is weighed with those before it.
_weighed = lru_cache(maxsize=1024)(weigh)


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
