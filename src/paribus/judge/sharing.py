"""Ranks that share cores by the plan: more of them than there are cores for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from paribus.core import Facts, Notice, NoticeName
from paribus.plan import Plan
from paribus.probes.values import parts_of_cores, placed


def sharing(plan: Plan, facts: Mapping[str, Mapping[str, Sequence[Facts]]]) -> list[Notice]:
    """Return where ranks share cores: once for benchmarks with as many ranks, cores and arms.

    `facts` are those of the launches by benchmark and arm. It is a warning where only some arms
    have ranks that share cores.
    """
    alike: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for selection in plan.study.benchmarks:
        seen: dict[tuple[int, int], list[str]] = {}
        for arm in plan.study.arms:
            several = facts.get(selection.label, {}).get(arm.name)
            if several and (counts := _shared(several[-1])):
                seen.setdefault(counts, []).append(arm.name)
        for counts, arms in seen.items():
            alike.setdefault((*counts, tuple(arms)), []).append(selection.label)
    found = []
    for (ranks, cores, sharers), labels in alike.items():
        every = len(sharers) == len(plan.study.arms)
        figures = {"ranks": ranks, "cores": cores, "arms": list(sharers), "all": every}
        level: Literal["warning", "note"] = "note" if every else "warning"
        found.append(Notice(NoticeName.SHARED_CORES, level, tuple(labels), figures))
    return found


def _shared(facts: Facts) -> tuple[int, int] | None:
    """Return how many ranks share how many cores in a launch, None where each has its own."""
    where = placed(facts.get("rank.machines"), facts.get("rank.affinity"))
    parts = parts_of_cores(where)
    crowded = [place for place, part in zip(where, parts, strict=True) if part < 1]
    cores = {
        (machine, core)
        for machine, spans in crowded
        for first, last in spans
        for core in range(first, last + 1)
    }
    return (len(crowded), len(cores)) if crowded else None
