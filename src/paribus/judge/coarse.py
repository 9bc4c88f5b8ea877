"""Which figures are too coarse to judge: clock ticks and printed digits against the margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paribus.core import Case, Finding
from paribus.judge.evidence import Evidence
from paribus.plan import Plan
from paribus.stats.ties import ties
from paribus.stats.verdict import judge


def coarse(
    plan: Plan, evidence: Evidence, cases: Sequence[Finding]
) -> dict[tuple[str, str, str, Case | None], dict[str, Any]]:
    """Return the figures of what is too coarse to judge, by benchmark, arm, metric and case.

    A headline (case None) is too coarse when half of its cases are. Words that would hold even if
    every ratio were off by one step of the values are let stand.
    """
    reference = plan.study.arms[0].name
    found: dict[tuple[str, str, str, Case | None], dict[str, Any]] = {}
    counts: dict[tuple[str, str, str], list[bool]] = {}
    for finding in cases:
        label, arm, metric = finding.benchmark, finding.arm, finding.metric
        if finding.case is None:
            continue
        complete = set(evidence.complete(label, [reference, arm]))
        ours, theirs = (
            evidence.series(label, name, (metric.name, finding.case)) for name in (reference, arm)
        )
        blocks = sorted(ours.keys() & theirs.keys() & complete)
        if len(blocks) < plan.looks.at[0] if plan.looks.at else not blocks:
            continue
        ratios = [math.log(theirs[b] / ours[b]) for b in blocks]
        values = [side[b] for side in (ours, theirs) for b in blocks]
        step = ties(ratios, finding.margin, values)
        coarse = step.too_coarse and not stands(finding, step.quantum)
        of = label, arm, metric.sampled or metric.name
        counts.setdefault(of, []).append(coarse)
        if coarse:
            found[*of, finding.case] = {"share": step.share, "quantum": step.quantum}
    for of, several in counts.items():
        if 2 * sum(several) >= len(several):
            first = next(figures for place, figures in found.items() if place[:3] == of)
            found[*of, None] = first | {"coarse": sum(several), "cases": len(several)}
    return found


def stands(finding: Finding, quantum: float) -> bool:
    """Return whether the word of a case holds even if every ratio is off by a whole quantum."""
    found = finding.comparison
    if found is None or math.isinf(quantum) or found.low <= 0 or math.isinf(found.high):
        return False
    wider = replace(found, low=found.low / (1 + quantum), high=found.high * (1 + quantum))
    verdict = judge(wider, better=finding.metric.better, margin=finding.margin, last=True)
    return verdict.word is finding.verdict.word
