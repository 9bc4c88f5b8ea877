"""Launches of two modes: in which arms, and whether the state probe goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paribus.core import Cause, Notice, NoticeName, Point
from paribus.judge.evidence import Evidence
from paribus.plan import Plan
from paribus.stats.probes import switching
from paribus.stats.states import StateRatios, TwoStates, higher_sides, ratio_per_state

ByBlock = Mapping[str, Mapping[str, Mapping[int, Any]]]
"""Something of launches by benchmark, arm (the reference first) and block."""


def modes(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks of a study launches fall into two modes, and what switches them."""
    levels: dict[str, dict[str, dict[int, float]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    probes: dict[str, dict[str, dict[int, Mapping[str, float]]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    seen = {e.launch.number: e.probe for label in plan.metrics for e in evidence.entries(label)}
    for p in points:
        if p.block and p.level:
            levels[p.benchmark][p.arm][p.block] = p.level
            probes[p.benchmark][p.arm][p.block] = seen[p.number]
    return two_states(levels, probes)


def two_states(
    levels: ByBlock, probes: ByBlock | None = None, *, paired: bool = True
) -> Iterable[Notice]:
    """Say in which benchmarks the launches of an arm fall into two modes.

    Of launches that are not `paired` the numbers of blocks are those of no two arms. Benchmarks of
    which the same is to be said share one notice.
    """
    alike: dict[Cause | None, dict[str, dict[str, Any]]] = {}
    for label, of_arms in levels.items():
        reference, *others = of_arms
        found = {arm: ratio_per_state(of_arms[reference], of_arms[arm]) for arm in others}
        seen = {arm: ratios for arm, ratios in found.items() if ratios is not None}
        if not seen:
            continue
        figures = _of_states(reference, seen, paired)
        cause = None
        if not any(ratios.shares_differ for ratios in seen.values()):
            cause, probe = _cause(of_arms, (probes or {}).get(label, {}))
            figures[reference] |= {"cause": cause, **probe}
        alike.setdefault(cause, {})[label] = figures
    for several in alike.values():
        yield Notice(NoticeName.TWO_STATES, "warning", tuple(several), several)


def _cause(
    levels: Mapping[str, Mapping[int, float]],
    probes: Mapping[str, Mapping[int, Mapping[str, float]]],
) -> tuple[Cause, dict[str, Any]]:
    """Return what switches the launches of all arms alike, and what the state probe shows of it.

    Arms of one mode say nothing.
    """
    launches = []
    for arm in probes:
        upper = higher_sides([*levels[arm].values()]) or ()
        known = zip(levels[arm], upper, strict=False)
        launches += [(arm, high, probes[arm].get(block, {})) for block, high in known]
    found = switching(launches)
    if found is None:
        return Cause.NO_PROBE, {}
    cause = Cause.MACHINE if found.found else Cause.PROGRAM_OR_UNSEEN
    return cause, {"probe": asdict(found)}


def _of_states(reference: str, seen: Mapping[str, StateRatios], paired: bool) -> dict[str, Any]:
    """Return the figures of the states of one benchmark by arm, the reference first."""
    first = next(iter(seen.values())).reference
    found: dict[str, Any] = {reference: _counts(first) | ({} if paired else {"paired": False})}
    for arm, ratios in seen.items():
        found[arm] = {
            **_counts(ratios.arm),
            "ratio_lower": ratios.lower,
            "ratio_upper": ratios.higher,
            "shares_differ": ratios.shares_differ,
        }
    return found


def _counts(states: TwoStates) -> dict[str, Any]:
    return {"apart": states.apart, "higher": states.higher, "launches": states.launches}
