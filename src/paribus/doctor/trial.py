"""A few seconds of short launches: what this machine can resolve, and whether it has two states.

`examine` is all of `paribus doctor`; `try_out` makes the launches and `judged` turns them into
findings, such as "differences below about 1.5 % are not detectable in 60 blocks".
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paribus.benchmarks import benchmark_of
from paribus.core import (
    Arm,
    Facts,
    Outcome,
    ParibusError,
    Selection,
    Settings,
    State,
    Study,
    count,
    percent,
)
from paribus.doctor import gpu
from paribus.doctor.fitness import (
    OBSERVE_S,
    Finding,
    Fitness,
    company,
    rated,
    room,
    settings,
    tools,
    watch,
)
from paribus.launch import launching
from paribus.launch.arms import Ready
from paribus.launch.gpu_toolchain import lacking
from paribus.launch.launching import prepare
from paribus.launch.local import LocalStation
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.toolchain import find_mpi
from paribus.stats.states import two_states
from paribus.stats.summary import launch_median
from paribus.stats.verdict import least_difference

BLOCKS = 60
"""The most blocks of a study that does not say otherwise."""

LAUNCHES_S = 9.0
"""Seconds of short launches: about forty of two ranks."""

LIMIT_S = 20.0
"""Seconds after which a launch of two ranks is taken to hang."""

LEAST_PAIRS = 6
"""Fewest pairs of launches for which a resolution is reported."""

PROBED: Mapping[str, str] = {
    "core_to_core_ns": "core-to-core latency of a cache line",
    "triad_gbps": "memory bandwidth of one core",
    "clock_ghz": "clock frequency of a core",
}

TRIALS = (
    Selection("latency", "latency", 2, {"bytes": [8, 4096], "samples": 100}),
    Selection("triad", "triad", 2, {"bytes": [16 * 2**20], "samples": 10}),
)
"""A benchmark that waits for nothing but the other core, and one that waits for memory."""

GPU_TRIALS = (
    Selection("gpu_copy", "gpu_copy", 1, {"bytes": [64 * 2**20], "samples": 5, "gpus": 1}),
)
"""The same of a GPU: a launch takes 2 s, of which CUDA's start is one."""

GPU_LAUNCHES_S = 35.0
"""Seconds of launches on a GPU: enough for LEAST_PAIRS."""

GPU_BUSY_S = 3.0
"""Seconds of launches in which its PCIe link is looked at."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What short launches gave: figures in order, by benchmark, and the facts of each launch.

    `why` some or all failed is "" where none did.
    """

    figures: Mapping[str, Sequence[float]] = field(default_factory=dict)
    facts: Sequence[Facts] = ()
    why: str = ""


def try_out(
    seconds: float,
    notify: Callable[[str], None],
    mpi: str | None = None,
    trials: Sequence[Selection] = (),
) -> Trial:
    """Make short launches of `trials`, or TRIALS, in turn, as many as fit into `seconds`.

    The first launch of each benchmark warms up and is left out. Never raises for a machine that
    can launch nothing: `why` says what is missing.
    """
    trials = trials or TRIALS
    study = Study(
        question="How much do launches scatter on this machine?",
        factor="nothing",
        arms=(Arm("doctor", mpi=mpi, transport="shm"),),
        benchmarks=tuple(trials),
        settings=Settings(),
        path="doctor",
    )
    try:
        ready = make_ready(study, notify)["doctor"]
    except ParibusError as error:
        return Trial(why=f"{error.cause}. {error.fix}".strip())
    figures: dict[str, list[float]] = {s.label: [] for s in trials}
    facts: list[Facts] = []
    failed: dict[str, str] = {}
    deadline = time.monotonic() + seconds
    with LocalStation() as station, tempfile.TemporaryDirectory(dir=station.scratch) as folder:
        number = 0
        while time.monotonic() < deadline and len(failed) < len(trials):
            # Pairs in turn: two of one benchmark follow each other, as the arms of a block do.
            selection = trials[number // 2 % len(trials)]
            number += 1
            if selection.label in failed:
                continue
            outcome = launched(station, ready, selection, Path(folder))
            if outcome.state is not State.OK:
                failed[selection.label] = f"{selection.label}: {outcome.error}"
                figures[selection.label].clear()
                continue
            facts.append(outcome.facts)
            if number > 2 * len(trials):
                figures[selection.label].append(_figure(outcome))
    return Trial(figures, facts, "; ".join(failed.values()))


def launched(station: LocalStation, ready: Ready, selection: Selection, folder: Path) -> Outcome:
    """Return the outcome of one launch of a benchmark, with its logs in `folder`."""
    logs = folder / "out", folder / "err"
    what = selection, benchmark_of(selection)
    scratch = f"{station.scratch}/trial"
    return launching.launched(station, prepare(ready, what, 0, scratch, logs, LIMIT_S))


def _figure(outcome: Outcome) -> float:
    """Return the geometric mean over cases of the launch's medians, as headlines are made of."""
    return statistics.geometric_mean(launch_median(s.values) for s in outcome.samples)


def judged(trial: Trial) -> tuple[list[Finding], dict[str, float]]:
    """Return the findings of a trial on clock, states and resolution, and the resolutions.

    These are by benchmark, as shares: 0.015 is 1.5 %.
    """
    found: list[Finding] = []
    if trial.why:
        text, means = (
            ("some failed", "so the resolution stays unknown in part")
            if trial.facts
            else ("none could be made", "so the resolution, and its states, stay unknown")
        )
        found.append(Finding("launches", "poor", text, means, trial.why))
    if trial.facts:
        found += [_clock(trial.facts), _states(trial.facts)]
    resolved = {}
    for label, figures in trial.figures.items():
        logs = [math.log(b / a) for a, b in zip(figures[::2], figures[1::2], strict=False)]
        if len(logs) >= LEAST_PAIRS:
            resolved[label] = float(f"{least_difference(logs, BLOCKS):.2g}")  # on all surfaces
            found.append(_resolved(label, resolved[label], len(logs)))
    return found, resolved


def _resolved(label: str, share: float, pairs: int) -> Finding:
    """Return the finding of the smallest difference that a study of a benchmark detects."""
    return rated(
        f"resolution: {label}",
        "good" if share <= 0.02 else "fair" if share <= 0.1 else "poor",
        f"differences below about {percent(share)} are not detectable in {BLOCKS} blocks"
        f" ({pairs} pairs of short launches)",
        "the launches scatter by more than a typical margin",
        "fix what is listed above, lengthen launches (samples), or widen the margin",
    )


def _clock(facts: Sequence[Facts]) -> Finding:
    """Return the finding of the timer: its resolution, and what a reading costs."""
    tick = statistics.median(float(f["clock.tick_ns"]) for f in facts)
    cost = statistics.median(float(f["clock.cost_ns"]) for f in facts)
    return rated(
        "timer",
        "fair" if tick > 100 or cost > 200 else "good",
        f"ticks of {tick:.0f} ns, {cost:.0f} ns to read",
        "a message of 8 B takes a few hundred ns, so each sample needs more iterations",
        "see clock source",
    )


def _states(facts: Sequence[Facts]) -> Finding:
    """Return the finding whether the state probes of the launches fall into two clusters."""
    bimodal = []
    for name, means in PROBED.items():
        values = [
            value
            for f in facts
            for when in ("before", "after")
            if isinstance(value := f.get(f"probe.{when}.{name}"), int | float) and value > 0
        ]
        states = two_states(values)
        if states is not None:
            bimodal.append(
                f"{means} is bimodal (modes {states.apart:.2g}x apart;"
                f" upper mode: {percent(round(states.share, 2))})"
            )
    if bimodal:
        return Finding(
            "states",
            "poor",
            "; ".join(bimodal),
            "the machine switches between two states; pairs that span a switch show a difference",
            "fix the clock frequency, stop migrations of this guest or its cores, or use more"
            " blocks; Paribus reruns blocks that span a switch",
        )
    return Finding("states", "good", f"one, in {count(len(facts), 'launch')}")


def examine(
    notify: Callable[[str], None],
    *,
    mpi: str | None = None,
    watch_s: float = OBSERVE_S,
    launches_s: float = LAUNCHES_S,
) -> Fitness:
    """Return how fit this machine is; `notify` hears what takes time. Nothing is changed.

    Raises UserError for an `mpi` that was named and cannot be used.
    """
    if mpi is not None:
        find_mpi(mpi, HERE)
    notify(f"watching the machine for {watch_s:g} s")
    seen = watch(watch_s)
    found = [*room(), *settings(), *company(seen), *tools()]
    notify(f"making short launches for about {launches_s:g} s")
    judgements, resolved = judged(try_out(launches_s, notify, mpi))
    if several := gpu.cards():
        found += [*gpu.graded(several), *gpu.around(several)]
        more, smallest = of_gpus(notify, mpi)
        judgements, resolved = [*judgements, *more], {**resolved, **smallest}
    found += gpu.unseen(several)
    return Fitness((*found, *judgements), resolved)


def of_gpus(
    notify: Callable[[str], None], mpi: str | None
) -> tuple[list[Finding], dict[str, float]]:
    """Return the findings of launches on a GPU, and the resolutions, as `judged`."""
    if "nvcc or hipcc" in lacking(HERE):
        fix = "load the module of CUDA, or put the directory of nvcc on the PATH"
        return [Finding("GPU: launches", "unknown", "none could be made: no nvcc", "", fix)], {}
    notify(f"making launches on the GPU for about {GPU_LAUNCHES_S:g} s")
    # Apart from the others, for nvidia-smi may disturb a launch.
    busy = gpu.busiest(lambda: try_out(GPU_BUSY_S, notify, mpi, GPU_TRIALS))
    trial = try_out(GPU_LAUNCHES_S, notify, mpi, GPU_TRIALS)
    # Without facts: clock and states are those of the cores, and known.
    judgements, resolved = judged(replace(trial, facts=()))
    named = [
        replace(one, name="GPU: launches") if one.name == "launches" else one for one in judgements
    ]
    return [*gpu.graded(busy, busy=True), *named], resolved
