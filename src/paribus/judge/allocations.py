"""Which nodes of a scheduler each arm had, and whether verdicts hold for other nodes.

All launches of an allocation share its nodes. If the arms have different nodes, an effect of the
nodes is in every block alike, and the interval over blocks holds for these nodes only. For other
nodes of the same kind, the experimental unit is the allocation: each pair of node sets gives one
log ratio, the median of its blocks, and these are compared as blocks are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from paribus.core import Notice, NoticeName
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import margin_of, pooled_ratios
from paribus.plan import Plan
from paribus.stats.estimate import compare, fewest_pairs
from paribus.stats.verdict import judge
from paribus.store import Stored

JOB, NODES = "placement.job", "placement.nodes"
"""Facts of launches on nodes of a scheduler: the allocation's number, and its nodes."""

Lent = Mapping[tuple[int, str], str]
"""The nodes of each launch of a benchmark, by block and arm."""


def allocations(plan: Plan, evidence: Evidence, launches: Iterable[Stored]) -> list[Notice]:
    """Return the notice on the nodes of each arm; none if no scheduler lent any."""
    arms = [arm.name for arm in plan.study.arms]
    had: dict[str, dict[str, str]] = {arm: {} for arm in arms}  # nodes, by arm and job
    at: dict[str, dict[tuple[int, str], str]] = {}  # nodes of launches, by benchmark
    for one in launches:
        job, nodes = (one.outcome.facts.get(key) for key in (JOB, NODES))
        if one.void is None and isinstance(job, str) and isinstance(nodes, str):
            had[one.launch.arm][job] = nodes
            at.setdefault(one.launch.benchmark, {})[one.launch.block, one.launch.arm] = nodes
    if not any(had.values()):
        return []
    of_arms = {
        arm: {"allocations": len(jobs), "nodes": list(dict.fromkeys(jobs.values()))}
        for arm, jobs in had.items()
    }
    fewest = fewest_pairs(round(1 - plan.looks.confidence, 12))
    figures: dict[str, Any] = {"arms": of_arms, "same": _same(at, arms), "fewest": fewest}
    if figures["same"]:
        return [Notice(NoticeName.ALLOCATIONS, "note", figures=figures)]
    figures["others"] = [
        found
        for label, lent in at.items()
        for arm in arms[1:]
        if (found := over_nodes(plan, evidence, label, arm, lent, fewest))
    ]
    return [Notice(NoticeName.ALLOCATIONS, "warning", figures=figures)]


def over_nodes(
    plan: Plan, evidence: Evidence, label: str, arm: str, lent: Lent, fewest: int
) -> dict[str, Any]:
    """Return ratio, interval and word that hold for other nodes of the same kind, as JSON values.

    {} for fewer than `fewest` pairs of node sets, of which there is no interval.
    """
    reference, metric = plan.study.arms[0].name, plan.metrics[label][0]
    ratios: dict[tuple[str, str], list[float]] = {}
    for block, ratio in pooled_ratios(evidence, label, reference, arm, metric).items():
        both = lent.get((block, reference)), lent.get((block, arm))
        if both[0] and both[1] and math.isfinite(ratio):
            ratios.setdefault((both[0], both[1]), []).append(ratio)
    if len(ratios) < fewest:
        return {}
    found = compare([statistics.median(some) for some in ratios.values()], plan.looks.confidence)
    margin = margin_of(plan, evidence, label, metric)
    word = judge(found, better=metric.better, margin=margin, last=True).word
    figures = {"ratio": found.ratio, "low": found.low, "high": found.high}
    of = {"benchmark": label, "arm": arm, "allocations": found.blocks}
    return {**of, **figures, "word": str(word)}


def _same(at: Mapping[str, Lent], arms: Iterable[str]) -> bool:
    """Return whether all arms had the same nodes in each block; `at` is by benchmark."""
    return all(
        len({lent[block, arm] for arm in arms if (block, arm) in lent}) < 2
        for lent in at.values()
        for block in {block for block, _ in lent}
    )
