"""From an interval and a margin to one word, and how many blocks it may still take."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from paribus.core import Comparison, Direction, Metric, Reason, Verdict, Word
from paribus.stats.estimate import compare

# How far values scatter, robustly and from few of them: half of all pairs differ by less.
#
# The median absolute difference between two values, over 0.9539, is the standard deviation of
# normal ones (M. I. Shamos, in *Algorithms and Complexity*, 1976). It bears 29 % of outliers, as
# the Hodges-Lehmann estimate does, needs no centre, and from 8 values errs by a third (sd of its
# log) where the median absolute deviation errs by 45 %.

MEDIAN_OF_DIFFERENCES = math.sqrt(2) * statistics.NormalDist().inv_cdf(0.75)
"""Median of |x - y| for two independent values of a normal distribution with sd 1: 0.9539."""

MOST_PAIRED = 1000
"""Values, the latest, of which pairs are made: half a million."""


def sd_of(values: Sequence[float]) -> float:
    """Return the standard deviation of `values`, in their unit; NaN for fewer than two."""
    import numpy as np

    if len(values) < 2:
        return math.nan
    recent = np.asarray(values[-MOST_PAIRED:], dtype=np.float64)
    first, second = np.triu_indices(len(recent), 1)
    return float(np.median(np.abs(recent[first] - recent[second]))) / MEDIAN_OF_DIFFERENCES


def sd_within(groups: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation inside `groups`, from pairs of one group; NaN without any."""
    pairs = (pair for group in groups for pair in itertools.combinations(group, 2))
    differences = [abs(x - y) for x, y in pairs]
    return statistics.median(differences) / MEDIAN_OF_DIFFERENCES if differences else math.nan


_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
"""Microseconds of a unit of time."""


def case_margin(metric: Metric, typical_reference: float) -> float:
    """Return the margin of a case as a share, from the reference's typical value there.

    It is `metric.margin`, but `metric.small_margin` for times below `metric.small_us`
    microseconds, where 2 % is a few ticks of a clock. Raises ValueError when a metric sets
    `small_us` and its unit is not one of time.
    """
    if not metric.small_us:
        return metric.margin
    if metric.unit not in _US:
        raise ValueError(f"metric {metric.name}: small_us is for times, not for {metric.unit}")
    small = typical_reference * _US[metric.unit] < metric.small_us
    return metric.small_margin if small else metric.margin


def headline_margin(case_margins: Iterable[float]) -> float:
    """Return the margin of the mean log ratio over cases: the mean of theirs on the log scale.

    Raises ValueError for no cases.
    """
    logs = [math.log1p(margin) for margin in case_margins]
    if not logs:
        raise ValueError("no cases, no margin")
    return math.expm1(math.fsum(logs) / len(logs))


TYPICAL_CONFIDENCE = 0.987
"""The confidence at each look of the standard schedule (looks.schedule(60))."""


ROUNDING = 1e-12
"""Ends nearer to an edge of the margin, on the log scale, lie on it: 102 s is 2 % above 100 s."""


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def judge(
    comparison: Comparison,
    *,
    better: Direction,
    margin: float,
    last: bool,
    needed: int | None = None,
    size_known: bool = True,
    share: float = 1 / 4,
    large_only: bool = False,
) -> Verdict:
    """Return the verdict on `comparison` by `margin` (a share; delta = ln(1 + margin)).

    1. The interval lies wholly beyond the margin: faster or slower, once its half-width is at
       most max(delta, `share` of the effect), so that "by how much" is worth printing.
    2. It lies wholly inside: equivalent.
    3. Its half-width is at most delta / 4 and neither holds: the effect sits at the margin, and
       more blocks would not decide it: undecided, final.
    4. Otherwise undecided; final at the `last` look, where rule 1 asks for no precision.

    `needed`, from `blocks_needed`, is passed on in an undecided verdict. A comparison from a
    confidence sequence (betting.py) is judged alike; it has no last look. With
    `size_known` False the word stands and the size does not. `large_only` (the first
    looks of stats/few.py): nothing ends the study but an effect whose `share` the half-width is.
    """
    low, high, effect = map(_log, (comparison.low, comparison.high, comparison.ratio))
    delta = math.log1p(margin)
    outer, inner = delta + ROUNDING, delta - ROUNDING
    half = (high - low) / 2 if math.isfinite(low) and math.isfinite(high) else math.inf
    below, above = (Word.FASTER, Word.SLOWER) if better == "lower" else (Word.SLOWER, Word.FASTER)
    beyond = above if low > outer else below if high < -outer else None
    figures = {
        **{k: getattr(comparison, k) for k in ("low", "high", "ratio", "level", "blocks")},
        "margin": margin,
        "better": better,
    }

    def verdict(word: Word, code: Reason, *, final: bool) -> Verdict:
        return Verdict(word, code, final, size_known=size_known, figures=figures)

    if beyond and (last or half <= max(0.0 if large_only else delta, abs(effect) * share)):
        return verdict(beyond, Reason.BEYOND_MARGIN, final=True)
    if -inner < low and high < inner and not large_only:
        real = low > 0 or high < 0
        inside = Reason.REAL_WITHIN_MARGIN if real else Reason.WITHIN_MARGIN
        return verdict(Word.EQUIVALENT, inside, final=True)
    if half <= delta / 4 and not large_only:
        return verdict(Word.UNDECIDED, Reason.AT_MARGIN, final=True)
    code = Reason.SIZE_UNCERTAIN if beyond else Reason.ACROSS_MARGIN
    if comparison.low == 0 and comparison.high == math.inf:
        code = Reason.TOO_FEW_BLOCKS
    if needed is not None and needed > comparison.blocks:
        figures["needed"] = needed
    return replace(verdict(Word.UNDECIDED, code, final=last), blocks_needed=needed)


def blocks_needed(
    log_ratios: Sequence[float],
    margin: float,
    confidence: float = TYPICAL_CONFIDENCE,
    *,
    fewest: int = 8,
    share: float = 1 / 4,
    signs: bool = False,
) -> int | None:
    """Return about how many blocks in all settle a study, or None from fewer than four ratios.

    n = 4 + 18 (sigma_d / Delta)^2, where sigma_d is the scatter of the log ratios and Delta the
    distance of the Hodges-Lehmann estimate from the margin. 18 is pi/3 (z + 1.645)^2 at the
    98.7 % `confidence` of a look: pi/3 is the price of ranks under normal noise, 1.645 asks for
    95 % of studies to be decided. Delta counts as at least delta / 4: by then the interval is so
    short that rule 3 of `judge` ends the study; and as at most 1.2 times the half-width that
    rule 1 asks for (`share` of the effect), which is what large effects wait for. It is at least
    `fewest`, the first look. `signs` (stats/few.py) cost pi/2 instead.

    Planned from 8 blocks, n settles 86 to 100 % of studies in normal noise and the look that
    follows n 90 to 100 %; from 12 blocks, 92 to 100 %. Where launches have heavy tails it is
    often too few (tests/test_stats_planning.py).
    """
    finite = [d for d in log_ratios if math.isfinite(d)]
    if len(finite) < 4:
        return None
    sigma = sd_of(finite)
    delta = math.log1p(margin)
    effect = abs(_log(compare(finite, confidence).ratio))
    distance = max(abs(delta - effect), delta / 4)
    distance = min(distance, 1.2 * max(delta, effect * share))
    factor = _factor(confidence, 2 if signs else 3)
    return max(fewest, math.ceil(4 + factor * (sigma / distance) ** 2))


def least_difference(
    log_ratios: Sequence[float], blocks: int, confidence: float = TYPICAL_CONFIDENCE
) -> float:
    """Return the smallest distance from a margin, as a share, that `blocks` blocks settle.

    The formula of `blocks_needed`, solved for Delta: so far from the margin 78 to 97 % of studies
    are decided in normal noise (tests/test_calibrate.py). With no difference at all, arms are
    equivalent within a margin of that size. NaN for fewer than two ratios; raises ValueError for 4
    blocks or fewer.
    """
    if blocks <= 4:
        raise ValueError(f"nothing is settled by block {blocks}")
    finite = [d for d in log_ratios if math.isfinite(d)]
    return math.expm1(sd_of(finite) * math.sqrt(_factor(confidence) / (blocks - 4)))


def _factor(confidence: float, ranks: float = 3) -> int:
    """Return pi / `ranks` (z + 1.645)^2, rounded up; see `blocks_needed`."""
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2) + 1.645
    return math.ceil(math.pi / ranks * z**2)


def word_of(low: float, high: float, margin: float) -> Word:
    """Return the word for the interval [low, high] of a ratio of times, by rules 1, 2 and 4 of
    `judge` at the last look."""
    least, most = 1 / (1 + margin), 1 + margin
    if low > most:
        return Word.SLOWER
    if high < least:
        return Word.FASTER
    return Word.EQUIVALENT if least <= low and high <= most else Word.UNDECIDED
