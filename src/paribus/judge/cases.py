"""The cases below a headline, and the other figures beside it, judged together as families.

The more there are, the more would look different by chance: so their verdicts are corrected for
their number (stats/family.py).
"""

from __future__ import annotations

from dataclasses import replace

from paribus.core import Finding, Reason, Word
from paribus.designs.standard import Series
from paribus.judge.evidence import Cell, Evidence, looks_at
from paribus.judge.headlines import (
    case_spread,
    cell_margin,
    cut_off,
    log_ratios,
    margin_of,
    no_data,
    pooled_ratios,
    typical_level,
)
from paribus.plan import Plan
from paribus.stats.band import LEAST_BLOCKS

DECIDED_SHARE = 0.9
"""With decides = "cases" a benchmark ends when this share of its cases is decided: a few noisy ones
are not to hold up all others."""


def cases(plan: Plan, evidence: Evidence, headline: Finding) -> tuple[Finding, ...]:
    """Return the findings of every cell of a headline's benchmark, over the headline's blocks.

    Cases are a family: their verdicts are corrected for their number and for the looks
    (stats/family.py). One that cannot be decided says "undecided".
    """
    label, arm = headline.benchmark, headline.arm
    reference = plan.study.arms[0].name
    merit = plan.metrics[label][0]
    metrics = {m.name: m for m in plan.metrics[label] if m.endpoint == merit.endpoint}
    cells = [cell for cell in evidence.cells(label) if cell[0] in metrics]
    blocks = counted(plan, evidence, headline)
    ratios: dict[Cell, dict[int, float]] = {}
    for cell in cells:
        better = metrics[cell[0]].better
        found = log_ratios(evidence, label, reference, arm, better, [cell])[cell]
        ratios[cell] = {block: ratio for block, ratio in found.items() if block in blocks}
    margins = {cell: cell_margin(plan, evidence, label, metrics[cell[0]], cell) for cell in cells}
    measured = [cell for cell in cells if ratios[cell]]
    whole = len(evidence.complete(label, [reference, arm]))
    design = plan.design
    at = looks_at(plan, evidence, [label], whole)
    series = [
        Series(plan, at, ratios[cell], metrics[cell[0]].better, margins[cell]) for cell in measured
    ]
    judged = design.family(series, "cases")
    found_of = dict(zip(measured, judged, strict=True))
    alone = evidence.cells_of(label, merit.name)
    if len(alone) == 1 and (judged_alone := design.lone_case(headline)):
        found_of[alone[0]] = judged_alone
    shown = {cell: design.stands_on(list(ratios[cell]), found_of[cell][1]) for cell in measured}
    missing = no_data(Reason.CASE_NOT_IN_BOTH_ARMS)
    cut = cut_off(evidence, [label], (reference, arm))
    known = not blocks or design.size_known(sorted(blocks), cut)
    return tuple(
        Finding(
            benchmark=label,
            arm=arm,
            metric=metrics[cell[0]],
            case=cell[1],
            margin=margins[cell],
            comparison=found_of[cell][1] if cell in found_of else None,
            verdict=replace(found_of[cell][0], size_known=known) if cell in found_of else missing,
            reference_value=case_spread(evidence, label, reference, cell, shown.get(cell, ())),
            arm_value=case_spread(evidence, label, arm, cell, shown.get(cell, ())),
        )
        for cell in cells
    )


def others(plan: Plan, evidence: Evidence, headline: Finding) -> tuple[Finding, ...]:
    """Return the headlines of a benchmark's other metrics, over the blocks of its headline.

    All metrics of an output are a family: their verdicts are corrected for the number of
    all, the one that decides included. If the headline says "reliability differs", so do they.
    """
    label, arm = headline.benchmark, headline.arm
    reference = plan.study.arms[0].name
    merit, *_ = every = plan.metrics[label]
    blocks = counted(plan, evidence, headline)
    pooled_of = {}
    for metric in every if blocks else ():
        pooled = pooled_ratios(evidence, label, reference, arm, metric)
        ratios = {block: ratio for block, ratio in pooled.items() if block in blocks}
        if metric.endpoint == merit.endpoint and ratios:
            pooled_of[metric] = ratios
    if not pooled_of.keys() - {merit}:
        return ()
    at = looks_at(plan, evidence, [label], len(evidence.complete(label, [reference, arm])))
    series = [
        Series(plan, at, ratios, metric.better, margin_of(plan, evidence, label, metric))
        for metric, ratios in pooled_of.items()
    ]
    judged, found = plan.design.family(series, "figures"), []
    for metric, one, (verdict, comparison) in zip(pooled_of, series, judged, strict=True):
        shown = plan.design.stands_on(sorted(one.ratios), comparison)
        cells = evidence.cells_of(label, metric.name)
        known = replace(verdict, size_known=headline.verdict.size_known)
        failures = headline.verdict.word is Word.RELIABILITY
        finding = Finding(
            benchmark=label,
            arm=arm,
            metric=metric,
            case=None,
            margin=one.margin,
            comparison=comparison,
            verdict=headline.verdict if failures else known,
            reference_value=typical_level(evidence, label, reference, cells, shown),
            arm_value=typical_level(evidence, label, arm, cells, shown),
            decides=False,
        )
        found += [finding] if metric is not merit else []
    return tuple(found)


def counted(plan: Plan, evidence: Evidence, headline: Finding) -> set[int]:
    """Return the blocks by which the cases are judged: those up to the look that decided.

    That is the headline's look, or, before it and where cases decide, the last one reached. Blocks
    beyond it are left out, because the correction is for looks at these moments only. In a
    monitored study they are the blocks since the headline changed.
    """
    arms = [plan.study.arms[0].name, headline.arm]
    complete = evidence.complete(headline.benchmark, arms)
    looks = looks_at(plan, evidence, [headline.benchmark], len(complete))
    reached = [look for look in looks if look <= len(complete)]
    between = headline.verdict.code is Reason.BEFORE_NEXT_LOOK
    if reached and (between or plan.study.settings.decides != "headline"):
        return set(complete[: reached[-1]])
    if headline.comparison is None:
        return set()
    return set(plan.design.stands_on(complete, headline.comparison))


def cases_settled(plan: Plan, evidence: Evidence, headline: Finding) -> bool:
    """Return whether enough cases of a headline are decided to end its benchmark.

    This is called after every block, and can be True only at a look.
    """
    arms = [plan.study.arms[0].name, headline.arm]
    done = len(evidence.complete(headline.benchmark, arms))
    if done not in plan.looks.at:
        return False
    if plan.study.settings.decides == "sizes" and done < min(LEAST_BLOCKS, plan.looks.at[-1]):
        return False
    rows = cases(plan, evidence, headline)
    decided = sum(row.verdict.word is not Word.UNDECIDED for row in rows)
    return done == plan.looks.at[-1] or (bool(rows) and decided >= DECIDED_SHARE * len(rows))
