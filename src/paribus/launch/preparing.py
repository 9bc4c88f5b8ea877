"""A launch made ready to start: its whole command, its files, its time limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paribus.core import Benchmark, Facts, Launch, Selection
from paribus.judge.evidence import LaunchEvidence
from paribus.launch.arms import Ready, compose, concrete, discreet, slots_of
from paribus.launch.launching import Prepared
from paribus.launch.station import Station
from paribus.plan import Plan

WARM_UP_LIMIT_S = 300.0
"""Limit of a warm-up launch, of which nothing is known yet."""


def prepare(
    ready: Ready,
    what: tuple[Selection, Benchmark],
    launch: Launch,
    station: Station,
    logs: tuple[Path, Path],
    facts: Facts,
    timeout_s: float,
) -> Prepared:
    """Return `launch` ready to start on `station`, its output going to the two files of `logs`."""
    selection, benchmark = concrete(ready, *what), what[1]
    scratch = f"{station.scratch}/{launch.number}"
    command, shown = (
        compose(one, selection, benchmark, seed=launch.seed, scratch=scratch)
        for one in (ready, discreet(ready))
    )
    return Prepared(
        command=command,
        selection=selection,
        benchmark=benchmark,
        slots=slots_of(ready, selection, benchmark),
        facts=facts,
        out=logs[0],
        err=logs[1],
        scratch=scratch,
        timeout_s=timeout_s,
        shown=shown.argv,
        adapter=ready.arm.adapter,
    )


def part_of(ready: Ready, part: int) -> Ready:
    """Return an arm of a duet with its part of the cores."""
    return replace(ready, cores=ready.parts[part])


def limit(plan: Plan, evidence: LaunchEvidence, selection: Selection) -> float:
    """Return the time limit of a launch in seconds, the same for all arms.

    Unless the study gives one: 20 times the slowest first launch of an arm and at least 10 s. Far
    beyond what any launch needs, so that it only ends those that hang; a limit that bites censors.
    """
    if selection.timeout_s is not None:
        return selection.timeout_s
    first: dict[str, float] = {}
    for entry in evidence.entries(selection.label):
        if not evidence.counted(entry.launch):
            first.setdefault(entry.launch.arm, entry.wall_s)
    if len(first) < len(plan.design.holds(selection.label, 0)):
        return WARM_UP_LIMIT_S
    return max(10.0, 20 * max(first.values()))
