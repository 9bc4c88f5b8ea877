"""A pilot (`paribus run --dry-run`): a few launches that are not stored in the study.

They show how long the study will take, and how many iterations a launch should have.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from paribus.audit.accepted import add_accepted
from paribus.core import State
from paribus.launch.arms import Ready
from paribus.launch.execute import execute
from paribus.launch.station import Station
from paribus.plan import Plan
from paribus.stats.forecast import cost
from paribus.stats.iterations import Iterations, advise, sample_seconds
from paribus.stats.summary import launch_median
from paribus.store import Store, Stored

ROUNDS = 4
"""Rounds of a pilot, the first of which warms up: three show scatter between and in launches."""


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot saw."""

    seconds: Mapping[tuple[str, str], float]  # of a launch, by benchmark and arm
    advice: Mapping[str, Iterations]  # by benchmark
    failed: Mapping[tuple[str, str], str]  # the first error, by benchmark and arm
    logs: Path | None  # the output of all launches, if any failed


def refusal(plan: Plan) -> str:
    """Return why no pilot can be launched for `plan`, "" if it can."""
    if plan.design.builds:
        return "each block has builds of its own, and a dry run makes none"
    if any(arm.before or arm.after for arm in plan.study.arms):
        return "the commands of an arm switch the platform, and a dry run must not do that"
    if plan.session:
        return "each session begins with a switch of the platform, and a dry run makes none"
    return ""


def pilot(
    plan: Plan,
    stations: Mapping[str, Station],
    ready: Mapping[str, Ready],
    accepted: Mapping[str, str],
    *,
    anyway: bool = False,
) -> Pilot:
    """Launch the first rounds of `plan` and return what they show; raises as `execute` does."""
    # Launches of the first rounds of a shuffled start are spread over all of it.
    first = islice(plan.blocks(), 4 * ROUNDS * len(plan.study.benchmarks))
    planned = tuple(launch for block in first for launch in block if launch.block < ROUNDS)
    settings = replace(plan.study.settings, every_s=0.0)
    short = replace(plan, study=replace(plan.study, settings=settings), launches=planned)
    with (
        # There, because the warden of the station removes it even if this process is killed.
        tempfile.TemporaryDirectory(dir=next(iter(stations.values())).here) as folder,
        Store(Path(folder), write=True) as store,
    ):
        add_accepted(store.directory, accepted)
        execute(short, store, stations, ready, lambda _: None, anyway=anyway)
        stored = list(store.launches())
        logs = _kept(store) if any(_failed(one) for one in stored) else None
    seconds: dict[tuple[str, str], float] = {}
    failed: dict[tuple[str, str], str] = {}
    for key in {(one.launch.benchmark, one.launch.arm) for one in stored}:
        launches = [one for one in stored if (one.launch.benchmark, one.launch.arm) == key]
        seconds[key] = sum(one.outcome.wall_s for one in launches) / len(launches)
        errors = [one.outcome.error for one in launches if _failed(one)]
        if errors:
            failed[key] = errors[0]
    advice = {}
    for selection in plan.study.benchmarks:
        found = _advice(plan, [one for one in stored if one.launch.benchmark == selection.label])
        if found is not None:
            advice[selection.label] = found
    return Pilot(seconds, advice, failed, logs)


def _failed(one: Stored) -> bool:
    return one.outcome.state is not State.OK


def _kept(store: Store) -> Path:
    """Return a new directory, which is not removed, with the output of the launches."""
    place = Path(tempfile.mkdtemp(prefix="paribus-pilot-"))
    shutil.copytree(store.directory / "logs", place, dirs_exist_ok=True)
    return place


def durations(plan: Plan, seen: Pilot) -> list[str]:
    """Return sentences on how long the study will take, at best and at worst."""
    plan = followed(plan, seen)
    by_arm = {
        selection.label: {
            arm: seconds
            for (label, arm), seconds in seen.seconds.items()
            if label == selection.label and arm in plan.design.holds(label, 1)
        }
        for selection in plan.study.benchmarks
    }
    return plan.design.duration(cost(by_arm, together=plan.design.at_once), plan.looks)


def followed(plan: Plan, seen: Pilot) -> Plan:
    """Return `plan` with the design that it chooses for launches of this length."""
    return plan.design.after(plan, max(seen.seconds.values(), default=0.0))


def _advice(plan: Plan, stored: Sequence[Stored]) -> Iterations | None:
    """Return the advice for that case of a benchmark which needs most iterations, None if unknown.

    `stored` are its launches; only those of the reference that counted are used.
    """
    reference = plan.study.arms[0].name
    mine = [
        one
        for one in stored
        if one.launch.arm == reference and one.launch.block and one.outcome.state is State.OK
    ]
    if not mine:
        return None
    merit = plan.metrics[mine[0].launch.benchmark][0]
    name = merit.sampled or merit.name
    found = []
    for case in dict.fromkeys(s.case for s in mine[0].outcome.samples if s.metric == name):
        samples = [
            (sample, one.outcome.wall_s)
            for one in mine
            for sample in one.outcome.samples
            if (sample.metric, sample.case) == (name, case)
        ]
        first = samples[0][0]
        each_s = sample_seconds(launch_median(first.values), merit.unit, first.batch)
        if each_s and len(samples) > 1 and min(len(s.values) for s, _ in samples) > 1:
            values = [sample.values for sample, _ in samples]
            found.append(advise(values, [wall_s for _, wall_s in samples], each_s))
    return max(found, key=lambda one: one.n, default=None)
