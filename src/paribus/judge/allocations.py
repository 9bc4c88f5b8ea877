"""Which nodes a scheduler lent each arm, and whether verdicts hold for other nodes.

All launches of an allocation share its nodes, so where the arms have different ones an effect of
the nodes is in every block alike: the interval over blocks is about these nodes. Over other nodes
of the same kind it is the allocation that is drawn anew: each pair of node sets gives one log
ratio, the median of its blocks, and these are compared as blocks are.
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
    """Return the notice on the nodes of each arm; none where no scheduler lent any."""
    arms = [arm.name for arm in plan.study.arms]
    had: dict[str, dict[str, str]] = {arm: {} for arm in arms}
    at: dict[str, dict[tuple[int, str], str]] = {}
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
    """Return ratio, interval and word for other nodes of the same kind, as JSON values.

    {} for fewer than `fewest` pairs of node sets: from so few there is no interval.
    """
    reference, metric = plan.study.arms[0].name, plan.metrics[label][0]
    ratios: dict[tuple[str, str], list[float]] = {}
    for block, ratio in pooled_ratios(evidence, label, reference, arm, metric).items():
        both = lent.get((block, reference)), lent.get((block, arm))
        if both[0] and both[1] and math.isfinite(ratio):
            ratios.setdefault((both[0], both[1]), []).append(ratio)
    if len(ratios) < fewest:
        return {}
    over = compare([statistics.median(some) for some in ratios.values()], plan.looks.confidence)
    margin = margin_of(plan, evidence, label, metric)
    word = judge(over, better=metric.better, margin=margin, last=True).word
    figures = {"allocations": over.blocks, "ratio": over.ratio, "low": over.low, "high": over.high}
    return {"benchmark": label, "arm": arm, **figures, "word": str(word)}


def _same(at: Mapping[str, Lent], arms: Iterable[str]) -> bool:
    """Return whether in each block all arms had the same nodes."""
    return all(
        len({lent[block, arm] for arm in arms if (block, arm) in lent}) < 2
        for lent in at.values()
        for block in {block for block, _ in lent}
    )
