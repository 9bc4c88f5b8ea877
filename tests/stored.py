"""Studies in real stores, filled by a seeded script instead of launches, and judged as any other.

What the script decides is what came of each launch; the order of launches, when a benchmark ends
and every sentence about it are the product's own.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paribus.audit.accepted import add_accepted
from paribus.core import Case, Judgement, Launch, Metric, Outcome, Sample, State, Study, Word
from paribus.judge.cases import cases_settled
from paribus.judge.conclude import conclude
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import given_up, headlines
from paribus.plan import Plan
from paribus.plan import frozen as plans
from paribus.store import Gathered, Store

MACHINES = Path(__file__).parent / "machines"
STARTED = 1_763_683_200.0
SOFTWARE = {"paribus": "0.1.0", "kernels": "5" * 64}
MEMORY = Path("/dev/shm")
"""Where every commit is synchronised at once; where there is none, on a disk."""

NOISE = [abs(random.Random(n).gauss(0, 0.015)) for n in range(1000)]
"""Of iterations: by how much they take longer than they might."""


@dataclass(frozen=True, slots=True)
class Twist:
    """What is unusual about a launch: it took so many `times` longer, it failed, what it saw.

    With `void` the attempt does not count, and the launch is made again.
    """

    times: float = 1.0
    state: State = State.OK
    error: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    pause_s: float = 0.0
    interrupted: int = 0
    void: str = ""


@dataclass(frozen=True, slots=True)
class Script:
    """What the launches of a study come to.

    `ratios` are the arm's times over the reference's, by benchmark and arm, growing with the case;
    `growth` says how much. `scatter` is that of launches, `samples` how many a case has. A block
    shares the state of the machine, which scatters by `machine`.
    """

    ratios: Mapping[str, Mapping[str, float]]
    twist: Callable[[Launch, int], Twist] = lambda launch, attempt: Twist()
    scatter: Mapping[str, float] = field(default_factory=dict)
    machine: float = 0.02
    samples: int = 100
    growth: float = 0.4
    base: Mapping[str, float] = field(default_factory=dict)
    usual: float = 0.005

    def outcome(
        self, launch: Launch, attempt: int, metric: Metric, cases: Sequence[Case], at: float
    ) -> tuple[Outcome, Twist]:
        """Return what comes of `launch`, started `at`, and what was unusual about it."""
        twist = self.twist(launch, attempt)
        draw = random.Random(f"{launch.benchmark} {launch.number} {attempt}")
        block = random.Random(f"{launch.benchmark} {launch.block}")
        state = math.exp(block.gauss(0, self.machine)) * twist.times
        level = state * math.exp(draw.gauss(0, self.scatter.get(launch.benchmark, self.usual)))
        samples = []
        for index, case in enumerate(cases if twist.state is State.OK else ()):
            place = 2 * index / max(1, len(cases) - 1) - 1 if len(cases) > 1 else 0.0
            ratio = self.ratios[launch.benchmark].get(launch.arm, 1.0) ** (1 + self.growth * place)
            size = case.get("bytes")
            bytes_ = size if isinstance(size, int) else 0
            time = self.base.get(launch.benchmark, 9 + bytes_ / 4200) * ratio * level
            moved = {"MB/s": bytes_, "GB/s": bytes_ / 1000}.get(metric.unit, 1e6)
            value = time if metric.better == "lower" else moved / time
            sign = 1 if metric.better == "lower" else -1
            first = draw.randrange(len(NOISE) - self.samples)
            values = [value * (1 + sign * one) for one in NOISE[first : first + self.samples]]
            for slow in range(twist.interrupted):
                values[slow] *= 20.0**sign
            name = metric.sampled or metric.name
            samples.append(Sample(name, case, tuple(values)))
        wall_s = 60.0 if twist.state is State.TIMEOUT else 0.9 + 0.2 * draw.random()
        argv = ("mpirun", "-n", "2", launch.benchmark)
        code = {State.OK: 0, State.FAILED: 1}.get(twist.state)
        error = twist.error
        if twist.state is State.FAILED:
            log = f"{launch.number:04d}-{attempt}-{launch.arm}-{launch.benchmark}.err"
            error = f"exit code 1: {error} (logs/{log})"
        facts = dict(twist.facts)
        return Outcome(twist.state, at, wall_s, code, argv, tuple(samples), facts, error), twist


def nodes(arm: str, machine: str, changes: Mapping[str, Any], at: float = STARTED) -> Gathered:
    """Return the facts of the one node of `arm`: a recorded `machine` with some `changes`."""
    facts = json.loads((MACHINES / f"{machine}.json").read_text())
    return Gathered(arm, "node1", at, {**facts, **changes})


def judged(
    study: Study,
    script: Script,
    *,
    name: str,
    facts: Sequence[Gathered] = (),
    accepted: Mapping[str, str] | None = None,
    most: int | None = None,
    metrics: Mapping[str, tuple[Metric, ...]] | None = None,
    cases: Mapping[str, Sequence[Case]] | None = None,
    damage: Callable[[Path], None] | None = None,
) -> Judgement:
    """Return the judgement of `study`, whose launches came to what `script` says.

    It stops after `most` blocks, as if it had been interrupted. `name` stands for the directory
    in what is printed. `metrics` replace those of the benchmarks. `damage` does something to the
    directory before it is read.
    """
    frozen = plans.freeze(study, SOFTWARE)
    frozen = replace(frozen, metrics=metrics) if metrics else frozen
    memory = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="paribus-golden-", dir=memory) as folder:
        directory = Path(folder)
        plans.write_plan(frozen, directory)
        with Store(directory, write=True) as store:
            store.bind_plan(frozen.sha256)
            if facts:
                store.keep_gathered(facts)
            if accepted:
                add_accepted(directory, accepted)
            _fill(frozen, store, script, cases or {}, most)
        if damage:
            damage(directory)
        with Store(directory, salvage=damage is not None) as store:
            judgement = conclude(frozen, store)
    return replace(judgement, directory=name)


def _fill(
    plan: Plan,
    store: Store,
    script: Script,
    cases: Mapping[str, Sequence[Case]],
    most: int | None,
) -> None:
    """Launch block after block until everything is settled, as study/execute.py does."""
    evidence = Evidence(plan.metrics, plan.session)
    settled: set[str] = set()
    at, spent = STARTED, 0.0
    of = {s.label: s for s in plan.study.benchmarks}
    for block in plan.blocks():
        if (most is not None and block[0].block > most) or plan.used_up(spent):
            return
        again = [launch for launch in block if launch.benchmark not in settled]
        attempt = 0
        while again:
            launched, void = [], ""
            for launch in again:
                label = launch.benchmark
                metric = plan.metrics[label][0]
                points = cases.get(label) or _cases(of[label].parameters)
                outcome, twist = script.outcome(launch, attempt, metric, points, at)
                at += outcome.wall_s + 0.3 + twist.pause_s
                spent += outcome.wall_s
                void = void or twist.void
                launched.append((launch, outcome))
            for launch, outcome in launched:
                number = store.append(launch, outcome, void=void or None)
                evidence.add(launch, outcome, number, void or None)
            again, attempt = (again, attempt + 1) if void else ([], 0)
        for label in {launch.benchmark for launch in block} - settled:
            sizes = plan.study.sizes_with(label)
            if all(_settled(plan, evidence, one, block[0].block) for one in sizes):
                settled.update(sizes)


def _cases(parameters: Mapping[str, Any]) -> Sequence[Case]:
    sizes = parameters.get("bytes")
    return [Case.of(bytes=size) for size in sizes] if isinstance(sizes, list) else [Case()]


def _settled(plan: Plan, evidence: Evidence, label: str, block: int) -> bool:
    """Return whether no further block of a benchmark would be launched: only looks can say so.

    And launches that failed, of which reliability may be the finding.
    """
    if given_up(plan, evidence, label):
        return True
    reference, *others = (arm.name for arm in plan.study.arms)
    complete = {len(evidence.complete(label, [reference, arm])) for arm in others}
    units = evidence.blocks.get(label, {}).get(block, {})
    failed = any(e.state is not State.OK for e in units.values())
    if plan.study.settings.monitor or not (failed or complete & set(plan.looks.at)):
        return False
    selection = next(s for s in plan.study.benchmarks if s.label == label)
    return all(
        f.verdict.final
        and f.verdict.word is not Word.NO_DATA
        and (plan.study.settings.decides == "headline" or cases_settled(plan, evidence, f))
        for f in headlines(plan, evidence, selection)
    )
