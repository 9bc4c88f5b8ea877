"""Rounds of launches on all nodes that a screen wants, each launch stored as it ends.

A node that hangs, dies or answers late costs that node its round, and nobody else's: a thread
runs each launch, and who is far behind the others is not waited for.
"""

from __future__ import annotations

import math
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from paribus.benchmarks import benchmark_of
from paribus.core import (
    Launch,
    LaunchError,
    Metric,
    Outcome,
    Selection,
    State,
    StoreError,
    count,
    format_seconds,
)
from paribus.judge.evidence import figures
from paribus.launch.execute import prepare
from paribus.launch.launching import Ended, Prepared, outcome_of, start
from paribus.launch.local import LocalStation
from paribus.screen.fleet import Fleet
from paribus.screen.plan import Screen
from paribus.stats.screen import PARTNERS, ROUNDS, Standing, looks, standing
from paribus.store import Store, Stored

OFTEN = 0.05
"""The share of nodes nominated that is forecast beside a single one."""


def show(screen: Screen, fleet: Fleet, local: LocalStation) -> int:
    """Print rounds and minutes for no nominated node and for a twentieth; return the exit code."""
    walls = {one.label: _wall_s(one, fleet, local) for one in screen.selections}
    nodes = len(screen.nodes)
    most = screen.at_once or nodes
    print(f"{count(nodes, 'node')}, {count(most, 'node')} at once")
    for label, wall_s in walls.items():
        print(f"  {label}: {format_seconds(wall_s)} a launch")
    for name, why in screen.absent.items():
        print(f"  not screened: {name}: {why}")
    all_s = ROUNDS * sum(walls.values()) * math.ceil(nodes / most)
    print(f"no node is nominated: {count(ROUNDS, 'round')}, {format_seconds(all_s)}")
    for some in sorted({1, max(1, round(OFTEN * nodes))}):
        at = looks(some * len(walls))
        beside = min(nodes, some + max(PARTNERS, some))
        each_s = sum(walls.values()) * math.ceil(beside / most)
        first, last = (count(ROUNDS + n, "round") for n in (at[0], at[-1]))
        first_s, last_s = (format_seconds(all_s + n * each_s) for n in (at[0], at[-1]))
        print(f"{count(some, 'node')} nominated: {first} and {first_s}, to {last} and {last_s}")
    return 0


def _wall_s(selection: Selection, fleet: Fleet, local: LocalStation) -> float:
    """Return the seconds of a launch on the first node; raises LaunchError where it fails."""
    name, station = next(iter(fleet.stations.items()))
    with tempfile.TemporaryDirectory(dir=local.here) as folder:
        logs = Path(folder, "out"), Path(folder, "err")
        what = selection, benchmark_of(selection)
        launch = Launch(1, 1, selection.label, name, 1)
        prepared = prepare(fleet.ready[name], what, launch, station, logs, {}, FIRST_S)
        ended = Ended()
        start(station, prepared, ended)
        outcome = outcome_of(prepared, ended)
    if outcome.state is not State.OK:
        raise LaunchError(
            f"a launch of {selection.label} failed: {outcome.error}",
            place=name,
            fix="see that the benchmark works on this node, or choose another --with",
        )
    return outcome.wall_s


FIRST_S = 600.0
"""Seconds that a launch may take while nothing is known of its length."""

LATE = 5.0
"""How many times as long as half of the nodes a launch may take: a clock at a fifth is seen."""

LEAST_S = 10.0
"""Seconds that a launch may take in any case."""

ENDING_S = 10.0
"""Seconds that a launch which is ended may take to end, before its node is left to itself."""

POLL_S = 0.2


@dataclass(slots=True)
class Known:
    """What the stored launches say: log speeds by label, round and node; NaN for a failure.

    `why` has the last failure of each node, `walls` the seconds of launches by label; `absent`:
    round, label and node of launches that were not made, for the node could not be had.
    """

    tables: dict[str, dict[int, dict[str, float]]]
    why: dict[str, str] = field(default_factory=dict)
    walls: dict[str, list[float]] = field(default_factory=dict)
    launches: int = 0
    seconds: float = 0.0
    absent: set[tuple[int, str, str]] = field(default_factory=set)

    def add(
        self, screen: Screen, launch: Launch, outcome: Outcome, void: str | None = None
    ) -> None:
        """Take what came of a launch; `void` is why there was none."""
        label, node = launch.benchmark, launch.arm
        if void:
            self.absent.add((launch.block, label, node))
            self.why[node] = void
            return
        value = math.nan
        if outcome.state is State.OK:
            value = log_speed(outcome, screen.metric(label))
            self.walls.setdefault(label, []).append(outcome.wall_s)
        else:
            self.why[node] = outcome.error.removeprefix(f"{node}: ")
        self.tables[label].setdefault(launch.block, {})[node] = value
        self.launches += 1
        self.seconds += outcome.wall_s

    def up_to(self, last: int) -> dict[str, dict[int, dict[str, float]]]:
        """Return the tables of the first rounds alone."""
        return {
            label: {number: row for number, row in table.items() if number <= last}
            for label, table in self.tables.items()
        }


def log_speed(outcome: Outcome, metric: Metric) -> float:
    """Return the mean log of a metric over its cases, higher for better; NaN without a figure."""
    found, _ = figures(outcome.samples, [metric])
    logs = [math.log(value) for value in found.values()]
    sign = 1 if metric.better == "higher" else -1
    return sign * sum(logs) / len(logs) if logs else math.nan


def known_of(screen: Screen, stored: Iterable[Stored], place: str = "launches.db") -> Known:
    """Return what stored launches say.

    Raises StoreError, naming `place`, for one that is not of the screen.
    """
    known, nodes = Known({one.label: {} for one in screen.selections}), {*screen.nodes}
    for one in stored:
        launch = one.launch
        if launch.benchmark not in known.tables or launch.arm not in nodes:
            cause = f"launch {launch.number} is of {launch.benchmark!r} on {launch.arm!r}"
            fix = "restore it, or screen anew with another --out"
            raise StoreError(f"{cause}, which is not of this screen", place=place, fix=fix)
        known.add(screen, one.launch, one.outcome, one.void)
    return known


def stands(screen: Screen, known: Known) -> Standing:
    """Return where the screen stands after the rounds that are whole."""
    last = 0
    while True:
        units = {one.label: screen.nodes for one in screen.selections}
        found = standing(known.up_to(last), units, screen.bounds, screen.seed)
        if found.done or any(_missing(found, known).values()):
            return found
        last += 1


def _missing(found: Standing, known: Known) -> dict[str, list[str]]:
    """Return who has not been launched in the round that is next, by label."""
    number = found.round + 1
    return {
        label: [
            unit
            for unit in wanted
            if unit not in known.tables[label].get(number, {})
            and (number, label, unit) not in known.absent
        ]
        for label, wanted in found.wanted.items()
    }


def carry_out(
    screen: Screen,
    store: Store,
    fleet: Fleet,
    known: Known,
    tell: Callable[[str], None],
    budget_s: float = math.inf,
) -> None:
    """Run rounds until nothing is wanted, or `budget_s` seconds would be exceeded.

    `known` has what is stored already, and then all. Raises StoreError, and AllocationError where
    nodes were lent and are taken back.
    """
    begin = time.monotonic()
    numbers = [one.launch.number for one in store.launches(samples=False, void=True)]
    sitting = _Sitting(screen, store, fleet, known, max(numbers, default=0))
    longest = 0.0
    while not (found := stands(screen, known)).done:
        began = time.monotonic()
        if began - begin + longest > budget_s:
            tell(f"the budget is used up before round {found.round + 1}")
            return
        for label, units in _missing(found, known).items():
            if units:
                tell(sitting.told(label, found, units))
                sitting.launch(label, found.round + 1, units)
        longest = max(longest, time.monotonic() - began)


@dataclass(slots=True)
class _Flight:
    """A launch on its way: since when, and whether it was told to end."""

    launch: Launch
    prepared: Prepared
    ended: Ended
    since: float
    told_s: float = 0.0
    broken: list[BaseException] = field(default_factory=list)


class _Sitting:
    """Launches of rounds; nodes whose last launch has not ended are `stuck`."""

    def __init__(
        self, screen: Screen, store: Store, fleet: Fleet, known: Known, number: int
    ) -> None:
        self.screen, self.store, self.fleet, self.known = screen, store, fleet, known
        self.number = number
        self.what = {one.label: (one, benchmark_of(one)) for one in screen.selections}
        self.stuck: dict[str, threading.Thread] = {}

    def told(self, label: str, found: Standing, units: Sequence[str]) -> str:
        """Return the line about a round before it starts."""
        open_ = sum(one.word == "open" for one in found.suspects)
        what = f"; {open_} to be proved" if open_ else ""
        walls = self.known.walls.get(label)
        takes = f", {format_seconds(median(walls))} a launch" if walls else ""
        return f"round {found.round + 1}: {label} on {len(units)} nodes{takes}{what}"

    def launch(self, label: str, number: int, units: Sequence[str]) -> None:
        """Run a launch of `label` on each of `units`, so many at once, and store each."""
        waiting, busy = [*reversed(units)], dict[str, _Flight]()
        done: queue.SimpleQueue[str] = queue.SimpleQueue()
        most = self.screen.at_once or len(units)
        walls: list[float] = []
        self.store.check_in_place()
        try:
            while waiting or busy:
                while waiting and len(busy) < most:
                    self._start(waiting.pop(), label, number, busy, done)
                try:
                    name = done.get(timeout=POLL_S)
                except queue.Empty:
                    self._hurry(label, len(units), walls, busy)
                    continue
                if name in busy:  # else it was given up, and ends now
                    flight = busy.pop(name)
                    self._keep(flight)
                    walls.append(time.monotonic() - flight.since)
        finally:
            for name in busy:
                self.fleet.stations[name].cancel()

    def _start(
        self,
        name: str,
        label: str,
        number: int,
        busy: dict[str, _Flight],
        done: queue.SimpleQueue[str],
    ) -> None:
        self.number += 1
        seed = self.screen.seed + number
        launch = Launch(self.number, number, label, name, seed)
        thread = self.stuck.get(name)
        if name not in self.fleet.stations:
            why = self.fleet.absent.get(name, "is not among the hosts any more")
            self._append(launch, why, void=why)
            return
        if thread and thread.is_alive():
            self._append(launch, "its last launch has not ended")
            return
        station, ready = self.fleet.stations[name], self.fleet.ready[name]
        logs = self.store.log_paths(launch)
        prepared = prepare(ready, self.what[label], launch, station, logs, {}, self._limit(label))
        flight = _Flight(launch, prepared, Ended(), time.monotonic())

        def carried() -> None:
            try:
                start(station, prepared, flight.ended)
            except BaseException as error:
                flight.broken.append(error)
            done.put(name)

        busy[name] = flight
        self.stuck[name] = threading.Thread(target=carried, daemon=True)
        self.stuck[name].start()

    def _limit(self, label: str) -> float:
        walls = self.known.walls.get(label)
        return max(LEAST_S, LATE * median(walls)) if walls else FIRST_S

    def _hurry(
        self, label: str, number: int, walls: Sequence[float], busy: dict[str, _Flight]
    ) -> None:
        """End launches that are far behind half of their round, and give up nodes that hang."""
        limit_s = self._limit(label)
        if len(walls) >= number / 2:
            limit_s = min(limit_s, max(LEAST_S, LATE * median(walls)))
        now = time.monotonic()
        for name, flight in [*busy.items()]:
            late = now - flight.since > limit_s
            if late and not flight.told_s:
                flight.told_s = now
                self.fleet.stations[name].cancel()
            elif flight.told_s and now - flight.told_s > ENDING_S:
                del busy[name]
                self._append(flight.launch, f"hangs: no end {ENDING_S:.0f} s after it was ended")

    def _keep(self, flight: _Flight) -> None:
        """Store what came of a launch; raises what broke it, if that was no node's fault."""
        for error in flight.broken:
            if isinstance(error, LaunchError):
                flight.ended.failure, flight.ended.fault = str(error), True
                continue
            raise error
        ended = flight.ended
        if flight.told_s and ended.done is not None:
            ended.done = replace(ended.done, timed_out=True)
        outcome = outcome_of(flight.prepared, ended)
        if flight.told_s and outcome.state is State.TIMEOUT:
            half = f"over {LATE:g} times as long as half of the nodes"
            outcome = replace(outcome, error=f"late: ended after {outcome.wall_s:.0f} s, {half}")
        self.store.append(flight.launch, outcome)
        self.known.add(self.screen, flight.launch, outcome)

    def _append(self, launch: Launch, why: str, void: str | None = None) -> None:
        """Store a launch that was none; with `void` the node could not be had: no failure of it."""
        outcome = Outcome(State.FAULT, time.time(), 0.0, None, (), error=why)
        self.store.append(launch, outcome, void=void)
        self.known.add(self.screen, launch, outcome, void)
