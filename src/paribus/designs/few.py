"""The design for few, expensive launches: looks from 6 blocks on (stats/few.py).

The launches of the first blocks are shuffled together, so that all of them can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from paribus.core import Comparison, Direction, Finding, Metric, Reason, Verdict
from paribus.designs.auto import why_not_few
from paribus.designs.standard import Design, Said, Series
from paribus.stats import few
from paribus.stats.looks import Looks
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.verdict import ROUNDING, blocks_needed, judge
from paribus.words.designs.few import FewWords

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan

Logs = tuple[Mapping[int, float], Mapping[int, float]]
"""Logs of the reference's and of the arm's launches by block."""


class Few(FewWords, Design):
    """Looks from 6 blocks on; the launches of the first blocks are in one random order."""

    least_blocks = few.LOOKS[0]
    most_blocks = few.LOOKS[-1]

    def refusal(self) -> tuple[str, object, str, str] | None:
        if why := why_not_few(self.study):
            return "design", "few", *why
        return super().refusal()

    def looks(self) -> Looks:
        return few.schedule(self.settings.blocks, self.shuffled)

    def looks_of(self, at: Sequence[int], level: float) -> Looks:
        return Looks(tuple(at), level, few=True)

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Logs:
        """Return the mean logs of the figures of both `arms`, by complete block.

        A launch that the time limit cut off is infinitely slow. Several benchmarks have equal
        weights, as times: the sign of the log of a rate is inverted.
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
        return _comparison(now, now.estimate, few.interval([now], last=False)[0])

    def needed(self, series: Series, blocks: int) -> int | None:
        if series.logs is None:
            return super().needed(series, blocks)
        return blocks_needed(
            series.values,
            series.margin,
            series.level,
            fewest=series.plan.looks.at[0],
            share=few.SIZE_SHARE,
            signs=self._weigh(series, blocks).uneven > 0,
        )

    def _weigh(self, series: Series, blocks: int) -> few.Weighed:
        return weigh(series.plan, series.logs, series.blocks[:blocks])

    def lone_case(self, headline: Finding) -> Said | None:
        """Return the verdict of the headline, which uses more than the pairs of a family do."""
        if headline.comparison is None or headline.verdict.code is Reason.BEFORE_NEXT_LOOK:
            return None
        better, margin = headline.metric.better, headline.margin
        verdict = judge(headline.comparison, better=better, margin=margin, last=True)
        return verdict, headline.comparison

    def fewest_blocks(self, level: float, looks: Sequence[int]) -> int:
        return looks[0] if looks else super().fewest_blocks(level, looks)


def weigh(frozen: Plan, logs: Logs, blocks: Sequence[int]) -> few.Weighed:
    """Return the evidence at a look after `blocks` (stats/few.py)."""
    # Levels are calibrated for a start of this length; with another, in older plans, pairs count.
    start = sum(map(frozen.shuffled, blocks)) if frozen.looks.at[0] == few.START else 0
    reference, arm = (tuple(of_arm[block] for block in blocks) for of_arm in logs)
    return _weighed(reference, arm, start, frozen.looks.at[-1])


# Cached, because all looks so far are weighed again after every block.
@lru_cache(maxsize=1024)
def _weighed(
    reference: tuple[float, ...], arm: tuple[float, ...], start: int, most: int
) -> few.Weighed:
    return few.weigh(reference, arm, start, most)


def verdict(
    looks: Sequence[few.Weighed],
    *,
    better: Direction,
    margin: float,
    last: bool,
    needed: int | None,
    size_known: bool,
) -> tuple[Verdict, Comparison]:
    """Return verdict and comparison at the latest of `looks`, the others having passed."""
    now = looks[-1]
    ends, settled = few.interval(looks, last=last)
    delta, estimate = math.log1p(margin) - ROUNDING, now.estimate
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
        share=few.SIZE_SHARE,
        large_only=now.blocks < few.LARGE_UNTIL and not last,
    )
    if now.uneven:
        judged = replace(judged, figures={**judged.figures, "uneven": now.uneven})
    return judged, comparison


def _comparison(now: few.Weighed, estimate: float, ends: few.Ends) -> Comparison:
    low, high = (_exp(end) for end in ends)
    return Comparison(now.blocks, _exp(estimate), low, high, now.level)


def _exp(log: float) -> float:
    return math.inf if log > 700 else math.exp(log)
