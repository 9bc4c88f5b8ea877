"""Efficiency: the share of the ideal speed at a larger size, and up to which size it suffices.

The ideal speed grows as the size does: twice the hosts do twice the work in the same time. With
10 s on 2 hosts and 5.5 s on 4 the efficiency is 10 / (2 x 5.5) = 0.91. Launches of one block at two
sizes make one log efficiency, so drift between blocks cancels, and the interval is that of any
ratio (stats/estimate.py), at the looks of the study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from paribus.core import Case, Comparison, Finding, Metric, Selection, Spread, Word
from paribus.judge.evidence import Cell, Evidence, looks_at
from paribus.judge.headlines import cut_off, decide, margin_of
from paribus.plan import Plan
from paribus.stats.estimate import compare
from paribus.stats.pairs import block_log_ratios, headline_log_ratios

Kind = Literal["strong", "weak"]

STEPS = frozenset({"ns/day", "steps/s", "timesteps/s", "iterations/s"})
"""Units of rates that count steps of the whole problem: with a larger problem they fall, as times
rise."""

LEAST_RISE = 0.02
"""The speed no longer rises where it certainly grows by less than this share."""

EFFICIENCY = Metric("efficiency", "", "higher")

WITHOUT = (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
"""Words of a headline without which its size cannot be compared with another."""

Series = Mapping[int, float]
"""Log efficiencies, or log ratios of speeds, by block."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """One size of a benchmark in one arm of a study that scales.

    `efficiency`: the speed over the ideal one (None at the smallest size, and without data).
    `step`: the speed of all hosts over that at the size before. `against`: the efficiency over that
    of the reference (None there), whose "faster" means that the arm scales better.
    """

    benchmark: str
    arm: str
    size: int
    metric: Metric
    value: Spread | None
    efficiency: Comparison | None = None
    step: Comparison | None = None
    against: Finding | None = None


class Reach(NamedTuple):
    """How far an arm scales by the intervals of its efficiencies; fields are sizes, 0 for none.

    `up_to`: the largest size up to which every efficiency is above the bound; the next size is
    `below` it, or `undecided`. `flat`: the first size at which all hosts or ranks together are
    certainly no faster than at the size before.
    """

    up_to: int
    below: int = 0
    undecided: int = 0
    flat: int = 0


def log_efficiency(
    first: Mapping[int, float],
    other: Mapping[int, float],
    metric: Metric,
    kind: Kind,
    growth: float,
) -> dict[int, float]:
    """Return ln(efficiency) by block, from the costs of two sizes by block.

    A cost is a time or the inverse of a rate, infinite for a launch that was cut off; `growth` is
    the larger size over the smaller one. Ideally the cost falls by `growth`. In weak scaling, where
    the problem grows as well, only that of a rate of all work does; times, and rates of STEPS,
    ideally stay. Raises ValueError as block_log_ratios does.
    """
    same = kind == "weak" and (metric.better == "lower" or metric.unit in STEPS)
    ideal = 0.0 if same else -math.log(growth)
    return {block: ideal - ratio for block, ratio in block_log_ratios(first, other).items()}


def reach(rows: Sequence[Efficiency], bound: float) -> Reach:
    """Return how far one arm scales in one benchmark; `rows` are its sizes, the smallest first."""
    if rows[0].value is None:
        return Reach(0)
    up_to, below, undecided = rows[0].size, 0, 0
    for row in rows[1:]:
        if row.efficiency is None or row.efficiency.low <= bound:
            certain = row.efficiency is not None and row.efficiency.high < bound
            below, undecided = (row.size, 0) if certain else (0, row.size)
            break
        up_to = row.size
    flat = (one.size for one in rows if one.step and one.step.high < 1 + LEAST_RISE)
    return Reach(up_to, below, undecided, next(flat, 0))


def efficiencies(
    plan: Plan, evidence: Evidence, heads: Sequence[Finding], over: Mapping[str, bool]
) -> tuple[Efficiency, ...]:
    """Return the efficiency of each benchmark, arm and size; none for a study that does not scale.

    `heads`: the headlines as they are reported. `over`: of each benchmark whether no further launch
    will come; verdicts against the reference are final then, and where all sizes have theirs.
    """
    if plan.study.scaling is None:
        return ()
    open_ = {f.benchmark for f in heads if not (f.verdict.final or over[f.benchmark])}
    found: list[Efficiency] = []
    for of in dict.fromkeys(one.of for one in plan.study.benchmarks):
        sizes = plan.study.sizes_of(of)
        known = {arm.name: _series(plan, evidence, sizes, arm.name) for arm in plan.study.arms}
        reference, *others = known
        ended = not any(one.label in open_ for one in sizes)
        found += _curve(plan, evidence, sizes, reference, known[reference], heads)
        for arm in others:
            first, *rows = _curve(plan, evidence, sizes, arm, known[arm], heads)
            found.append(first)
            for row, one, mine, theirs in zip(
                rows, sizes[1:], known[arm][1:], known[reference][1:], strict=True
            ):
                pair, ratios = (sizes[0], one), _less(mine, theirs)
                against = _against(plan, evidence, pair, arm, ratios, heads, over=ended)
                found.append(replace(row, against=against))
    return tuple(found)


def _series(
    plan: Plan, evidence: Evidence, sizes: Sequence[Selection], arm: str
) -> list[dict[int, float]]:
    """Return the log efficiencies of an arm by block, at each size."""
    assert plan.study.scaling is not None
    first, metric = sizes[0], plan.metrics[sizes[0].label][0]
    found = []
    for one in sizes:
        cells = [evidence.cells_of(size.label, metric.name) for size in (first, one)]
        pairs = [(cell, cell) for cell in cells[0] if cell in cells[1]]
        if not pairs and [len(some) for some in cells] == [1, 1]:  # a case may name the size
            pairs = [(cells[0][0], cells[1][0])]
        several = [
            log_efficiency(
                _costs(evidence, first.label, arm, cell, metric),
                _costs(evidence, one.label, arm, other, metric),
                metric,
                plan.study.scaling.kind,
                one.size / first.size,
            )
            for cell, other in pairs
        ]
        found.append(headline_log_ratios(several))
    return found


def _costs(
    evidence: Evidence, label: str, arm: str, cell: Cell, metric: Metric
) -> dict[int, float]:
    """Return times, or inverse rates, by block; one that the time limit cut off is infinite."""
    values = evidence.series(label, arm, cell)
    lower = metric.better == "lower"
    costs = {block: value if lower else 1 / value for block, value in values.items() if block > 0}
    return costs | dict.fromkeys(evidence.cut_off(label, arm), math.inf)


def _less(mine: Series, theirs: Series) -> dict[int, float]:
    """Return `mine` less `theirs` by block, without blocks in which both are infinite."""
    found = {block: mine[block] - theirs[block] for block in sorted(mine.keys() & theirs.keys())}
    return {block: value for block, value in found.items() if not math.isnan(value)}


def _curve(
    plan: Plan,
    evidence: Evidence,
    sizes: Sequence[Selection],
    arm: str,
    series: Sequence[Series],
    heads: Sequence[Finding],
) -> list[Efficiency]:
    """Return the efficiency of one arm at each size."""
    metric, reference = plan.metrics[sizes[0].label][0], plan.study.arms[0].name
    found = []
    for place, one in enumerate(sizes):
        mine = [f for f in heads if f.benchmark == one.label and arm in (f.arm, reference)]
        value = mine[0].reference_value if arm == reference else mine[0].arm_value
        row = Efficiency(one.of, arm, one.size, metric, value)
        if place:
            before = sizes[place - 1]
            grown = math.log(one.size / before.size)
            rise = _less(series[place], series[place - 1])
            speeds = {block: value + grown for block, value in rise.items()}
            row = replace(
                row,
                efficiency=_interval(plan, evidence, (sizes[0], one), series[place]),
                step=_interval(plan, evidence, (before, one), speeds),
            )
        found.append(row)
    return found


def _interval(
    plan: Plan, evidence: Evidence, pair: Sequence[Selection], series: Series
) -> Comparison | None:
    """Return ratio and interval at the last look that was reached.

    Before the first one the interval is 0 to infinity; None without a block.
    """
    if not series:
        return None
    labels = [one.label for one in pair]
    values = [series[block] for block in sorted(series)]
    looks = looks_at(plan, evidence, labels, len(values))
    reached = [look for look in looks if look <= len(values)]
    found = compare(values[: reached[-1]] if reached else values, plan.looks.confidence)
    return found if reached else replace(found, low=0.0, high=math.inf)


def _against(
    plan: Plan,
    evidence: Evidence,
    pair: tuple[Selection, Selection],
    arm: str,
    ratios: Series,
    heads: Sequence[Finding],
    *,
    over: bool,
) -> Finding:
    """Return the ratio of an arm's efficiency to the reference's, with a verdict.

    It rests on the headlines at that size and at the smallest: where one of them has no verdict on
    speed, neither has this.
    """
    assert plan.study.scaling is not None
    labels = [one.label for one in pair]
    margins = [margin_of(plan, evidence, label, plan.metrics[label][0]) for label in labels]
    cut = cut_off(evidence, labels, (plan.study.arms[0].name, arm))
    at = looks_at(plan, evidence, labels, len(ratios))
    margin = max(margins)
    verdict, comparison = decide(plan, at, ratios, EFFICIENCY.better, margin, cut, over=over)
    rests_on = [f.verdict for f in heads if f.benchmark in labels and f.arm == arm]
    if (no_word := next((v for v in rests_on if v.word in WITHOUT), None)) and comparison:
        verdict = replace(no_word, word=Word.WITHHELD)
    case = Case.of(**{plan.study.scaling.over: pair[1].size})
    return Finding(pair[1].of, arm, EFFICIENCY, case, margin, comparison, verdict, None, None)
