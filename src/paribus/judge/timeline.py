"""The launches of a study on the time axis, and how many came to what."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paribus.judge.evidence import Entry, Evidence
from paribus.judgement import Point, Tally
from paribus.model import State
from paribus.plan import Plan
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median


def tallies(plan: Plan, evidence: Evidence) -> tuple[Tally, ...]:
    """Return what came of the launches of each benchmark in each arm."""
    found = []
    for selection in plan.study.benchmarks:
        for arm in plan.study.arms:
            mine = [e for e in evidence.entries(selection.label) if e.launch.arm == arm.name]
            states = [e.state for e in mine if evidence.counted(e.launch)]
            warm_up = [e.state for e in mine if not evidence.counted(e.launch)]
            found.append(
                Tally(
                    benchmark=selection.label,
                    arm=arm.name,
                    counted=len(states),
                    failed=states.count(State.FAILED),
                    timed_out=states.count(State.TIMEOUT),
                    invalid=states.count(State.INVALID),
                    first_error=next((e.error for e in mine if e.error), ""),
                    warm_up=len(warm_up),
                    warm_up_failed=sum(state is not State.OK for state in warm_up),
                    wall_s=math.fsum(e.wall_s for e in mine),
                )
            )
    return tuple(found)


def points(plan: Plan, evidence: Evidence) -> tuple[tuple[Point, ...], float | None, float]:
    """Return every launch on the time axis, when the first began, and the time they span."""
    entries = [e for s in plan.study.benchmarks for e in evidence.entries(s.label)]
    if not entries:
        return (), None, 0.0
    begin = min(entry.started for entry in entries)
    levels: dict[int, float] = {}
    far: dict[int, float] = {}
    for selection in plan.study.benchmarks:
        mine = evidence.entries(selection.label)
        levels |= relative(plan, mine)
        for arm in plan.study.arms:
            counted = [e for e in mine if e.launch.arm == arm.name and evidence.counted(e.launch)]
            far |= _outlying(counted, levels)
    found = tuple(
        Point(
            number=entry.launch.number,
            block=entry.launch.block if evidence.counted(entry.launch) else 0,
            benchmark=entry.launch.benchmark,
            arm=entry.launch.arm,
            at_s=entry.started - begin,
            state=entry.state,
            level=levels.get(entry.launch.number),
            outlying=far.get(entry.launch.number),
            disturbed=entry.disturbed if evidence.counted(entry.launch) else (),
        )
        for entry in sorted(entries, key=lambda e: e.started)
    )
    return found, begin, max(entry.started + entry.wall_s for entry in entries) - begin


def relative(plan: Plan, entries: Sequence[Entry]) -> dict[int, float]:
    """Return each good launch's level, over the cases that all of them have, 1 = reference."""
    good = [entry for entry in entries if entry.medians]
    if not good:
        return {}
    merit = plan.metrics[good[0].launch.benchmark][0].name
    common = set.intersection(*(set(entry.medians) for entry in good))
    cells = [cell for cell in good[0].medians if cell in common and cell[0] == merit]
    if not cells:
        return {}
    level = {e.launch.number: geometric_mean([e.medians[c] for c in cells]) for e in good}
    reference = plan.study.arms[0].name
    theirs = [level[e.launch.number] for e in good if e.launch.arm == reference]
    usual = launch_median(theirs or list(level.values()))
    return {number: value / usual for number, value in level.items()}


def _outlying(entries: Sequence[Entry], levels: dict[int, float]) -> dict[int, float]:
    """Return the launches of one arm that lie far from the others, in times its usual level."""
    numbers = [e.launch.number for e in entries if e.launch.number in levels]
    values = [levels[number] for number in numbers]
    usual = launch_median(values) if values else 1.0
    return {numbers[i]: values[i] / usual for i in outlying(values)}
