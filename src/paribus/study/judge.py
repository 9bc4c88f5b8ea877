"""From evidence to findings: the headline of each benchmark and its cases, at the plan's looks."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.judgement import Comparison, Finding, Spread, Verdict, Word
from paribus.model import Metric, Selection, State
from paribus.stats.estimate import compare
from paribus.stats.margin import case_margin, headline_margin
from paribus.stats.pairs import block_log_ratios, headline_log_ratios
from paribus.stats.reliability import reliability
from paribus.stats.summary import geometric_mean, spread
from paribus.stats.verdict import blocks_needed, judge
from paribus.study.evidence import Cell, Evidence
from paribus.study.plan import Plan


def headlines(
    plan: Plan, evidence: Evidence, selection: Selection, *, over: bool = False
) -> tuple[Finding, ...]:
    """Return the headline of a benchmark for each arm against the reference.

    A verdict is final from the first look at which it was final; `over` says that no further
    launch will come, so what is undecided stays so.
    """
    return tuple(
        headline(plan, evidence, selection, arm.name, over=over) for arm in plan.study.arms[1:]
    )


def headline(
    plan: Plan, evidence: Evidence, selection: Selection, arm: str, *, over: bool = False
) -> Finding:
    """Return the headline of one benchmark for one arm: mean log ratio over cases, per block."""
    metric = plan.metrics[selection.label][0]
    cells = [cell for cell in evidence.cells(selection.label) if cell[0] == metric.name]
    series = _log_ratios(plan, evidence, selection.label, arm, cells)
    pooled = headline_log_ratios(list(series.values()))
    margins = [_margin(plan, evidence, selection.label, metric, cell) for cell in cells]
    margin = headline_margin(margins) if margins else metric.margin
    verdict, comparison = _decide(plan, pooled, metric, margin, over=over)
    unreliable = _reliability(plan, evidence, selection.label, arm, over=over)
    blocks = sorted(pooled)[: comparison.blocks] if comparison else []
    return Finding(
        benchmark=selection.label,
        arm=arm,
        metric=metric,
        case=None,
        margin=margin,
        comparison=comparison,
        verdict=unreliable or verdict,
        reference_value=_level(evidence, selection.label, plan.study.arms[0].name, cells, blocks),
        arm_value=_level(evidence, selection.label, arm, cells, blocks),
    )


def cases(plan: Plan, evidence: Evidence, headline_of: Finding) -> tuple[Finding, ...]:
    """Return the findings of every cell of a headline's benchmark, over the headline's blocks."""
    label, arm = headline_of.benchmark, headline_of.arm
    reference = plan.study.arms[0].name
    blocks = headline_of.comparison.blocks if headline_of.comparison else 0
    found = []
    for cell in evidence.cells(label):
        metric = next(m for m in plan.metrics[label] if m.name == cell[0])
        ratios = _log_ratios(plan, evidence, label, arm, [cell])[cell]
        counted = dict(list(ratios.items())[:blocks]) if blocks else ratios
        margin = _margin(plan, evidence, label, metric, cell)
        comparison = compare(list(counted.values()), plan.looks.confidence) if counted else None
        found.append(
            Finding(
                benchmark=label,
                arm=arm,
                metric=metric,
                case=cell[1],
                margin=margin,
                comparison=comparison,
                verdict=judge(comparison, better=metric.better, margin=margin, last=True)
                if comparison
                else _no_data("no block has this case in both arms"),
                reference_value=_spread(evidence, label, reference, cell, counted),
                arm_value=_spread(evidence, label, arm, cell, counted),
            )
        )
    return tuple(found)


def given_up(evidence: Evidence, label: str, arms: Sequence[str]) -> str:
    """Return why `label` should not be launched again ("" if it should).

    When the warm-up failed twice, or the last four blocks did, more of the same says nothing new.
    """
    failed = 0
    for block, entries in sorted(evidence.blocks.get(label, {}).items()):
        bad = [entries[arm] for arm in arms if arm in entries and entries[arm].state != State.OK]
        failed = failed + 1 if bad else 0
        if bad and (block == 0 or failed == 4):
            return f"{bad[0].launch.arm}: {bad[0].error}"
    return ""


def _decide(
    plan: Plan, pooled: dict[int, float], metric: Metric, margin: float, *, over: bool
) -> tuple[Verdict, Comparison | None]:
    """Replay the looks over the blocks in order; the first final verdict stands.

    A study that ends between two looks stands by the last one that it reached.
    """
    ratios = [pooled[block] for block in sorted(pooled)]
    if not ratios:
        return _no_data("no block was completed by both arms"), None
    level = plan.looks.confidence
    reached = [look for look in plan.looks.at if look <= len(ratios)]
    for look in reached:
        comparison = compare(ratios[:look], level)
        verdict = judge(
            comparison,
            better=metric.better,
            margin=margin,
            last=look == plan.looks.at[-1] or (over and look == reached[-1]),
            needed=blocks_needed(ratios[:look], margin, level),
        )
        if verdict.final:
            return verdict, comparison
    if over:
        reason = f"the study ended after {len(ratios)} blocks, before its first look"
    else:
        reason = f"{len(ratios)} blocks so far; the next look is after {_next_look(plan, ratios)}"
    needed = blocks_needed(ratios, margin, level)
    undecided = Verdict(Word.UNDECIDED, reason, final=over, blocks_needed=needed)
    return undecided, compare(ratios, level)


def _next_look(plan: Plan, ratios: Sequence[float]) -> int:
    return next((look for look in plan.looks.at if look > len(ratios)), plan.looks.at[-1])


def _reliability(
    plan: Plan, evidence: Evidence, label: str, arm: str, *, over: bool
) -> Verdict | None:
    reference = plan.study.arms[0].name
    failed: dict[str, list[int]] = {reference: [], arm: []}
    attempted = 0
    for block, entries in evidence.blocks.get(label, {}).items():
        if block > 0 and reference in entries and arm in entries:
            attempted += 1
            for name, blocks in failed.items():
                if entries[name].state is not State.OK:
                    blocks.append(block)
    return reliability(failed[reference], failed[arm], attempted, last=over)


def _log_ratios(
    plan: Plan, evidence: Evidence, label: str, arm: str, cells: Sequence[Cell]
) -> dict[Cell, dict[int, float]]:
    """Return the log ratios of each cell over the blocks that every arm completed."""
    reference = plan.study.arms[0].name
    complete = set(evidence.complete(label, [reference, arm]))
    found = {}
    for cell in cells:
        ratios = block_log_ratios(
            evidence.series(label, reference, cell), evidence.series(label, arm, cell)
        )
        found[cell] = {block: ratio for block, ratio in ratios.items() if block in complete}
    return found


def _margin(plan: Plan, evidence: Evidence, label: str, metric: Metric, cell: Cell) -> float:
    """Return the margin of a cell: the study's, or the metric's rule at the first reference value.

    The first is the warm-up's: known before any launch that counts.
    """
    if plan.study.settings.margin is not None:
        return plan.study.settings.margin
    series = evidence.series(label, plan.study.arms[0].name, cell)
    return case_margin(metric, series[min(series)]) if series else metric.margin


def _spread(
    evidence: Evidence, label: str, arm: str, cell: Cell, blocks: Sequence[int] | dict[int, float]
) -> Spread | None:
    series = evidence.series(label, arm, cell)
    values = [series[block] for block in blocks if block in series]
    return spread(values) if values else None


def _level(
    evidence: Evidence, label: str, arm: str, cells: Sequence[Cell], blocks: Sequence[int]
) -> Spread | None:
    """Return the spread over launches of the geometric mean over cells."""
    series = [evidence.series(label, arm, cell) for cell in cells]
    values = [
        geometric_mean([one[block] for one in series])
        for block in blocks
        if series and all(block in one for one in series)
    ]
    return spread(values) if values else None


def _no_data(reason: str) -> Verdict:
    return Verdict(Word.NO_DATA, reason, final=True)
