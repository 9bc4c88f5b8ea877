"""The launches of a study on the time axis, and how many came to what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from paribus.core import Launch, Point, State, Tally
from paribus.judge.evidence import Entry, Evidence
from paribus.plan import Plan
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median


def tallies(plan: Plan, evidence: Evidence) -> tuple[Tally, ...]:
    """Return what came of the launches of each benchmark at each stage: of every stored attempt."""
    found = []
    for selection in plan.study.benchmarks:
        label = selection.label
        voided = [e for e in evidence.voided if e.launch.benchmark == label]
        every = sorted([*evidence.entries(label), *voided], key=lambda e: e.started)
        for arm in plan.design.stages():
            mine = [e for e in every if e.launch.arm == arm.name]
            launches = [e for e in mine if evidence.counted(e.launch)]
            states = [e.state for e in launches]
            warm_up = [e.state for e in mine if not evidence.counted(e.launch)]
            first = {
                key: state
                for key, state in (evidence.first or {}).get(label, {}).get(arm.name, {}).items()
                if evidence.counted(Launch(0, key[0], label, arm.name, 0, key[1]))
            }
            found.append(
                Tally(
                    benchmark=label,
                    arm=arm.name,
                    counted=sum(not e.void for e in launches),
                    failed=states.count(State.FAILED),
                    timed_out=states.count(State.TIMEOUT),
                    invalid=states.count(State.INVALID),
                    first_error=next((e.error for e in mine if e.error), ""),
                    warm_up=len(warm_up),
                    warm_up_failed=sum(state is not State.OK for state in warm_up),
                    wall_s=math.fsum(e.wall_s for e in mine),
                    rerun=sum(bool(e.void) for e in launches),
                    faults=states.count(State.FAULT),
                    first=len(first),
                    first_failed=sum(state is not State.OK for state in first.values()),
                )
            )
    return tuple(found)


class Track(NamedTuple):
    """The launches on the time axis, those that do not count apart.

    `started` is when the first one began, `wall_s` the seconds that all of them span.
    """

    points: tuple[Point, ...] = ()
    voided: tuple[Point, ...] = ()
    started: float | None = None
    wall_s: float = 0.0


def track(plan: Plan, evidence: Evidence) -> Track:
    """Return every launch on the time axis."""
    entries = [e for s in plan.study.benchmarks for e in evidence.entries(s.label)]
    every = [*entries, *evidence.voided]
    if not every:
        return Track()
    begin = min(entry.started for entry in every)
    levels: dict[int, float] = {}
    far: dict[int, float] = {}
    for selection in plan.study.benchmarks:
        mine = evidence.entries(selection.label)
        levels |= relative(plan, mine)
        for arm in plan.study.arms:
            counted = [e for e in mine if e.launch.arm == arm.name and evidence.counted(e.launch)]
            far |= _outlying(counted, levels)

    def point(entry: Entry) -> Point:
        number, counted = entry.launch.number, evidence.counted(entry.launch)
        return Point(
            number=number,
            block=entry.launch.block if counted else 0,
            benchmark=entry.launch.benchmark,
            arm=entry.launch.arm,
            at_s=entry.started - begin,
            state=entry.state,
            level=None if entry.void else levels.get(number),
            outlying=None if entry.void else far.get(number),
            disturbed=entry.disturbed if counted and not entry.void else (),
            attempt=entry.attempt,
            void=entry.void,
        )

    counting, others = (
        tuple(point(one) for one in sorted(several, key=lambda e: e.started))
        for several in (entries, evidence.voided)
    )
    span_s = max(entry.started + entry.wall_s for entry in every) - begin
    return Track(counting, others, begin, span_s)


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
