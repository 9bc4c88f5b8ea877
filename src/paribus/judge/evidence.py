"""The evidence: the figures of all launches that count, by benchmark, block and arm.

Stored launches with their samples go in; out come, for each cell (a metric at a case), the figures
of an arm by block, and the log ratios between two arms, on which all verdicts rest.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from paribus.audit.gate import GATE
from paribus.border import read_json
from paribus.core import Case, Facts, Launch, Metric, Outcome, Sample, State, StoreError
from paribus.plan import MOST_BYTES, Plan
from paribus.probes.load import BESIDE
from paribus.stats.pairs import block_log_ratios
from paribus.stats.probes import ProbeOfLaunch
from paribus.stats.summary import (
    LEAST_SAMPLES,
    LEAST_STEPS,
    ascending,
    endpoint,
    geometric_mean,
    interrupted,
    thinned,
)
from paribus.store import Stored, check_version, open_for_reading
from paribus.store.damage import converted


def last_block_over(plan: Plan, evidence: Evidence, label: str) -> bool:
    """Return whether every stage of the last planned block of `label` was launched.

    If the last block is shuffled with others, of all of these.
    """
    blocks, most = evidence.blocks.get(label, {}), plan.study.settings.blocks
    last = range(1, most + 1) if plan.shuffled(most) else (most,)
    return all(name in blocks.get(n, {}) for n in last for name in plan.design.holds(label, n))


def looks_at(
    plan: Plan, evidence: Evidence, labels: Sequence[str], complete: int
) -> tuple[int, ...]:
    """Return the numbers of complete blocks after which a verdict on `labels` may fall.

    These are the looks of the plan. Once the last planned block is over, the last look is at the
    `complete` blocks, even if some failed. Their number does not depend on what was measured, so
    the error of all looks stays that of the plan (tests/test_stats_endpoints.py).
    """
    at = plan.looks.at
    over = all(last_block_over(plan, evidence, label) for label in labels)
    if not over or not at or complete < at[0]:
        return at
    return (*(look for look in at if look < complete), complete)


MOST = 200
"""The most study directories that `launch_seconds` reads."""


def launch_seconds(folder: Path) -> dict[str, tuple[float, int]]:
    """Return the median seconds of a launch, and the number of launches, by benchmark.

    They are those that succeeded in study directories in `folder` and one level below it.
    Directories that cannot be read are skipped: `paribus report` reports what is wrong with them.
    """
    found: dict[str, list[float]] = {}
    for path in sorted([*folder.glob("*/plan.json"), *folder.glob("*/*/plan.json")])[:MOST]:
        for benchmark, seconds in _launches(path):
            found.setdefault(benchmark, []).append(seconds)
    return {name: (median(seconds), len(seconds)) for name, seconds in found.items()}


def _launches(plan: Path) -> Iterator[tuple[str, float]]:
    """Yield the benchmark and the seconds of each launch beside a plan."""
    try:
        selections = read_json(plan, MOST_BYTES, "a plan")["study"]["benchmarks"]
        names = {one["label"]: one["benchmark"] for one in selections}
        path = plan.with_name("launches.db")
        with converted(path), closing(open_for_reading(path)) as store:
            check_version(store, path, write=False)
            query = "SELECT benchmark, wall_s FROM launches WHERE state = 'ok' AND void IS NULL"
            rows = store.execute(query).fetchall()
    except (OSError, ValueError, KeyError, TypeError, StoreError):
        return
    yield from ((names[label], seconds) for label, seconds in rows if label in names)


Cell = tuple[str, Case]
"""A metric's name and a case."""

COUNTED = (State.OK, State.TIMEOUT)
"""States of launches that enter a ratio; a launch that was cut off ranks as slower than all."""

PROBE = "probe."
"""The beginning of the keys of facts that hold figures of the state probe."""

LEAST_FOR_ENDPOINT = 4
"""The fewest samples of a launch of which p25, p99 and min say more than the median."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One attempt at a launch: its outcome, its place on the time axis, its figures by cell."""

    launch: Launch
    state: State
    started: float  # seconds since the epoch
    wall_s: float
    error: str
    medians: Mapping[Cell, float]  # the figure of each cell, at its metric's endpoint
    probe: Mapping[str, float] = field(default_factory=dict)  # figures of its state probe
    interference: float = 0.0  # share of its iterations that took over five times the median
    disturbed: tuple[str, ...] = ()  # why it is outside the noise gate
    busy: tuple[str, ...] = ()  # commands that used processors beside it
    attempt: int = 0  # which attempt at its launch it was, from 0
    void: str = ""  # why it does not count
    # At most 40 quantiles of the samples that decide, ascending; several cases are scaled to one.
    steps: Sequence[float] = ()


@dataclass(slots=True)
class Evidence:
    """The launches of a study. In `blocks` stands what counts: the launch, or in a study of
    sessions the whole session, by the median of its launches."""

    metrics: Mapping[str, Sequence[Metric]]  # of the plan, by benchmark: what launches contribute
    session: int = 0  # the number of launches of a session, 0 without sessions
    recorded: bool = True  # False of figures from elsewhere, without `probes` and `first`
    # By benchmark, block and arm.
    blocks: dict[str, dict[int, dict[str, Entry]]] = field(default_factory=dict)
    launches: dict[str, dict[int, dict[str, list[Entry]]]] = field(default_factory=dict)
    # The state probes of all attempts; and those attempts that do not count.
    probes: list[ProbeOfLaunch] = field(default_factory=list)
    voided: list[Entry] = field(default_factory=list)
    # States of first attempts without a fault, void or not: by benchmark, arm, (block, place).
    first: dict[str, dict[str, dict[tuple[int, int], State]]] = field(default_factory=dict)
    # Caches, which `_forget` clears.
    _whole: dict[str, dict[str, list[Cell]]] = field(default_factory=dict, compare=False)
    _complete: dict[str, dict[tuple[str, ...], list[int]]] = field(
        default_factory=dict, compare=False
    )
    _series: dict[str, dict[str, dict[Cell, dict[int, float]]]] = field(
        default_factory=dict, compare=False
    )
    _ratios: dict[str, dict[tuple[str, str, Cell], dict[int, float]]] = field(
        default_factory=dict, compare=False
    )

    def add(
        self, launch: Launch, outcome: Outcome, attempt: int = 0, void: str | None = None
    ) -> None:
        """Add a stored attempt at a launch; `void` is why it does not count, None if it does."""
        samples = () if void else outcome.samples
        medians, interfered = figures(samples, self.metrics[launch.benchmark])
        entry = Entry(
            launch,
            outcome.state,
            outcome.started,
            outcome.wall_s,
            outcome.error,
            medians,
            _probe(outcome.facts),
            interfered,
            tuple(outcome.facts.get(GATE, ())),
            _busy(outcome.facts),
            attempt,
            void or "",
            _steps(samples, self.metrics[launch.benchmark], medians),
        )
        if void:
            self.voided.append(entry)
        else:
            self.add_entry(entry)
        if outcome.state is not State.FAULT:
            arms = self.first.setdefault(launch.benchmark, {})
            arms.setdefault(launch.arm, {}).setdefault((launch.block, launch.place), outcome.state)
        if entry.probe:
            block = (launch.benchmark, launch.block, launch.place)
            self.probes.append(ProbeOfLaunch(block, launch.arm, entry.probe))

    def add_entry(self, entry: Entry) -> None:
        """Add a launch that counts, or a warm-up, whose figures are known."""
        launch = entry.launch
        self._forget(launch.benchmark)
        block = self.launches.setdefault(launch.benchmark, {}).setdefault(launch.block, {})
        of_arm = block.setdefault(launch.arm, [])
        of_arm.append(entry)
        units = self.blocks.setdefault(launch.benchmark, {}).setdefault(launch.block, {})
        if not self.session:
            units[launch.arm] = entry
        elif len(counting := [one for one in of_arm if one.launch.place]) == self.session:
            units[launch.arm] = _session(counting)

    def drop(self, launches: Iterable[Launch], void: str) -> None:
        """Move launches whose attempts no longer count to `voided`, with the reason `void`."""
        for launch in launches:
            self._forget(launch.benchmark)
            self.blocks.get(launch.benchmark, {}).get(launch.block, {}).pop(launch.arm, None)
            block = self.launches.get(launch.benchmark, {}).get(launch.block, {})
            self.voided += [
                replace(one, medians={}, void=void) for one in block.pop(launch.arm, [])
            ]

    def _forget(self, benchmark: str) -> None:
        """Clear what is cached for a benchmark, because its launches changed."""
        for known in (self._whole, self._complete, self._series, self._ratios):
            known.pop(benchmark, None)

    def entries(self, benchmark: str) -> list[Entry]:
        """Return the launches of `benchmark` by block, warm-up included."""
        blocks = self.launches.get(benchmark, {})
        return [
            entry for block in sorted(blocks) for arm in blocks[block].values() for entry in arm
        ]

    def counted(self, launch: Launch) -> bool:
        """Return whether a launch counts: it is no warm-up of the study or of its session."""
        return bool(launch.place) if self.session else launch.block > 0

    def complete(self, benchmark: str, arms: Iterable[str]) -> list[int]:
        """Return the counted blocks of `benchmark` in which each of `arms` gives a figure.

        A launch that the time limit cut off counts as slower than all; a block in which every arm
        was cut off has no ratio and is left out.
        """
        names = tuple(arms)
        known = self._complete.setdefault(benchmark, {})
        if names not in known:
            known[names] = sorted(
                block
                for block, units in self.blocks.get(benchmark, {}).items()
                if block > 0
                and all(name in units and units[name].state in COUNTED for name in names)
                and any(units[name].state is State.OK for name in names)
            )
        return known[names]

    def cells(self, benchmark: str) -> list[Cell]:
        """Return the cells that any launch of `benchmark` has, in the order of their appearance."""
        found: dict[Cell, None] = {}
        for units in self.blocks.get(benchmark, {}).values():
            for unit in units.values():
                found.update(dict.fromkeys(unit.medians))
        return list(found)

    def cells_of(self, benchmark: str, metric: str) -> list[Cell]:
        """Return the cells of `metric` that every good launch of `benchmark` has.

        A cell that some launches lack, such as a p99 of which slow launches have too few samples,
        is left out: to use it would select the fast ones.
        """
        if benchmark not in self._whole:
            good = [
                unit.medians
                for units in self.blocks.get(benchmark, {}).values()
                for unit in units.values()
                if unit.state is State.OK
            ]
            shared = set(good[0]).intersection(*good) if good else set()
            found = self._whole[benchmark] = {}
            for cell in good[0] if good else ():
                if cell in shared:
                    found.setdefault(cell[0], []).append(cell)
        return self._whole[benchmark].get(metric, [])

    def series(self, benchmark: str, arm: str, cell: Cell) -> dict[int, float]:
        """Return the figures of one cell by block, warm-up (block 0) included."""
        known = self._series.setdefault(benchmark, {})
        if arm not in known:
            # For all cells at once, so that of ten thousand launches each is visited only once.
            found = known[arm] = {}
            blocks = self.blocks.get(benchmark, {})
            for block in sorted(blocks):
                if arm in blocks[block]:
                    for one, figure in blocks[block][arm].medians.items():
                        found.setdefault(one, {})[block] = figure
        return known[arm].get(cell, {})

    def log_ratios(self, benchmark: str, reference: str, arm: str, cell: Cell) -> dict[int, float]:
        """Return ln(arm / reference) of one cell by block, warm-up included."""
        known = self._ratios.setdefault(benchmark, {})
        if (reference, arm, cell) not in known:
            known[reference, arm, cell] = block_log_ratios(
                self.series(benchmark, reference, cell), self.series(benchmark, arm, cell)
            )
        return known[reference, arm, cell]

    def cut_off(self, benchmark: str, arm: str) -> list[int]:
        """Return the counted blocks in which the time limit cut the arm off."""
        return sorted(
            block
            for block, units in self.blocks.get(benchmark, {}).items()
            if block > 0 and arm in units and units[arm].state is State.TIMEOUT
        )


def _steps(
    samples: Sequence[Sample], metrics: Sequence[Metric], medians: Mapping[Cell, float]
) -> Sequence[float]:
    """Return quantiles of the samples of what decides, at most 40; cases are scaled to the mean."""
    if not metrics:
        return ()
    merit = metrics[0]
    by_case = {
        one.case: thinned(ascending(one.values))
        for one in samples
        if one.metric == (merit.sampled or merit.name) and len(one.values) >= LEAST_STEPS
    }
    if len(by_case) < 2:
        return next(iter(by_case.values()), ())
    known = {c: figure for c in by_case if (figure := medians.get((merit.name, c), 0.0)) > 0}
    mean = geometric_mean(known.values()) if known else 0.0
    pooled = (mean * step / figure for case, figure in known.items() for step in by_case[case])
    return thinned(sorted(pooled))


def merit(samples: Sequence[Sample], metrics: Sequence[Metric]) -> float | None:
    """Return the figure of a launch that decides: the geometric mean over its cases.

    `metrics` are those of its benchmark, the one that decides first. None without a figure.
    """
    if not metrics:
        return None
    found, _ = figures(samples, metrics)
    values = [value for (name, _), value in found.items() if name == metrics[0].name]
    return geometric_mean(values) if values else None


def figures(
    samples: Sequence[Sample], metrics: Sequence[Metric]
) -> tuple[dict[Cell, float], float]:
    """Return the figures of a launch by cell, and the share of its samples that were interrupted.

    A figure is the endpoint of a metric's samples at a case; a cell with too few samples for its
    endpoint is left out. Interrupted samples are defined in stats/summary.py.
    """
    sampled: dict[str, list[Metric]] = {}
    for metric in metrics:
        sampled.setdefault(metric.sampled or metric.name, []).append(metric)
    found: dict[Cell, float] = {}
    slow = count = 0
    for sample in samples:
        of_sample = sampled.get(sample.metric)
        if not of_sample:
            continue
        values = ascending(sample.values)
        if len(values) > 1:
            slow += interrupted(values, of_sample[-1].better)
            count += len(values)
        for metric in of_sample:
            if metric.endpoint != "median" and len(values) < LEAST_FOR_ENDPOINT:
                continue
            if len(values) >= LEAST_SAMPLES[metric.endpoint]:
                found[(metric.name, sample.case)] = endpoint(values, metric.endpoint, metric.better)
    return found, slow / count if count else 0.0


def collect(plan: Plan, launches: Iterable[Stored]) -> Evidence:
    """Return the evidence of stored attempts, void ones included; raises as `planned` does."""
    evidence = Evidence(plan.metrics, plan.session)
    for one in planned(plan, launches):
        evidence.add(one.launch, one.outcome, one.attempt, one.void)
    return evidence


def planned(plan: Plan, launches: Iterable[Stored]) -> Iterator[Stored]:
    """Yield `launches`; raises StoreError for one whose arm, benchmark or block `plan` lacks."""
    arms, settings = {one.name for one in plan.design.stages()}, plan.study.settings
    labels, endless = {one.label for one in plan.study.benchmarks}, not plan.design.has_end
    for one in launches:
        launch = one.launch
        inside = launch.block >= 0 and (endless or launch.block <= settings.blocks)
        if launch.arm not in arms or launch.benchmark not in labels or not inside:
            raise StoreError(
                f"launch {launch.number} is of no arm, benchmark or block of the plan",
                place="launches.db",
                fix="restore the directory from a copy, or ask for it anew where it comes from",
            )
        yield one


def _session(launches: Sequence[Entry]) -> Entry:
    """Return a session as one entry: in each cell the median over its good launches.

    It is good if most of its launches are; otherwise it has the most frequent state of the others.
    """
    good = [one for one in launches if one.state is State.OK]
    states = [one.state for one in launches]
    if 2 * len(good) <= len(launches):
        worst = max(set(states) - {State.OK}, key=states.count)
        return replace(next(one for one in launches if one.state is worst), medians={})
    cells = set.intersection(*(set(one.medians) for one in good))
    medians = {
        cell: statistics.median(one.medians[cell] for one in good)
        for cell in good[0].medians
        if cell in cells
    }
    return replace(good[0], medians=medians)


def _busy(facts: Facts) -> tuple[str, ...]:
    """Return the commands in the fact BESIDE, without the share of a processor after each."""
    consumers = facts.get(BESIDE)
    return tuple(one.rpartition(" ")[0] for one in consumers) if isinstance(consumers, list) else ()


def _probe(facts: Facts) -> dict[str, float]:
    return {
        key.removeprefix(PROBE): float(value)
        for key, value in facts.items()
        if key.startswith(PROBE) and isinstance(value, int | float)
    }
