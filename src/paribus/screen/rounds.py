"""Rounds of launches on all units that a screen wants, each launch stored as it ends.

A node that hangs, dies or answers late costs that node its round, and nobody else's: a thread
runs each launch, and who is far behind the others is not waited for.
"""

from __future__ import annotations

import math
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from paribus.benchmarks import benchmark_of
from paribus.core import (
    AllocationError,
    Launch,
    LaunchError,
    Metric,
    Outcome,
    Selection,
    State,
    StoreError,
    UserError,
    count,
    format_seconds,
)
from paribus.judge.evidence import figures
from paribus.launch.launching import Ended, Prepared, outcome_of, prepare, start
from paribus.launch.local import LocalStation
from paribus.launch.station import Station
from paribus.screen import links
from paribus.screen.fleet import Fleet
from paribus.screen.plan import BAR, Screen, nodes_of
from paribus.screen.standing import BELOW, LATER, PARTNERS, ROUNDS, Standing, looks, standing
from paribus.stats.ties import coarseness
from paribus.store import Store, Stored

OFTEN = 0.05
"""The share of nodes nominated that is forecast beside a single one."""


def show(screen: Screen, fleet: Fleet, local: LocalStation) -> None:
    """Print rounds and minutes for no nominated node and for a twentieth."""
    walls = {one.label: _wall_s(screen, one, fleet, local) for one in screen.selections}
    number = max(len(screen.units(label)) for label in walls) // (1 + screen.links)
    each = sum(wall_s * (1 + screen.both_ways(label)) for label, wall_s in walls.items())
    first, (shares, later, _) = ROUNDS, how_proved(screen)
    if screen.links:
        first = len(links.sweep(screen.nodes, screen.racks, screen.seed))
    most = _most(screen, number)
    noun = screen.noun(walls)
    print(f"{count(number, noun)}, {count(most, noun)} at once")
    for label, wall_s in walls.items():
        print(f"  {label}: {format_seconds(wall_s)} a launch")
    for name, why in screen.absent.items():
        print(f"  not screened: {name}: {why}")
    all_s = first * each * math.ceil(number / most)
    print(f"none is nominated: {count(first, 'round')}, {format_seconds(all_s)}")
    for some in sorted({1, max(1, round(OFTEN * number))}):
        at = looks(shares * some * len(walls), later)
        beside = min(number, some + max(PARTNERS, some))
        each_s = each * math.ceil(beside / most)
        soonest, latest = (count(first + n, "round") for n in (at[0], at[-1]))
        soonest_s, latest_s = (format_seconds(all_s + n * each_s) for n in (at[0], at[-1]))
        print(f"{some} nominated: {soonest} and {soonest_s}, to {latest} and {latest_s}")


def how_proved(screen: Screen) -> tuple[float, tuple[int, ...], float]:
    """Return into how many equal shares the error goes, the rounds from the first look to each, and
    the part of the margin below which a unit is nominated."""
    if screen.links:
        return links.FAMILIES, links.LATER, links.BELOW
    return screen.families, LATER, BELOW


def _most(screen: Screen, units: int) -> int:
    """Return how many of so many units are launched on at once; a pair takes two nodes."""
    return max(1, screen.at_once // (1 + screen.links)) if screen.at_once else units


def _wall_s(screen: Screen, selection: Selection, fleet: Fleet, local: LocalStation) -> float:
    """Return the seconds of a launch on the first unit; raises LaunchError where it fails."""
    name = BAR.join(screen.nodes[:2]) if screen.links else screen.units(selection.label)[0]
    flight = _Flight(Launch(1, 1, selection.label, name, 1))
    with tempfile.TemporaryDirectory(dir=local.here) as folder:
        logs = Path(folder, "out"), Path(folder, "err")
        _fly(screen, fleet, flight, logs, FIRST_S)
        outcome = _outcome(flight)
    if outcome.state is not State.OK:
        raise LaunchError(
            f"a launch of {selection.label} failed: {outcome.error}",
            place=name,
            fix="see that the benchmark works there, or choose another --with",
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
    """What the stored launches say: log speeds by label, round and unit; NaN for a failure.

    `why` has the last failure of each unit and of its nodes, `walls` the seconds of launches by
    label; `absent`: round, label and unit of launches that were not made, for the node could not be
    had; `last` is the greatest number of a launch; `whole`: so many rounds at least are complete,
    which `course` has taken, of links.
    """

    tables: dict[str, dict[int, dict[str, float]]]
    why: dict[str, str] = field(default_factory=dict)
    walls: dict[str, list[float]] = field(default_factory=dict)
    launches: int = 0
    last: int = 0
    absent: set[tuple[int, str, str]] = field(default_factory=set)
    whole: int = 0
    course: links.Course | None = None

    def add(
        self, screen: Screen, launch: Launch, outcome: Outcome, void: str | None = None
    ) -> None:
        """Take what came of a launch; `void` is why there was none."""
        label, unit, self.last = launch.benchmark, launch.arm, max(self.last, launch.number)
        if void:
            self.absent.add((launch.block, label, unit))
            self._explain(unit, void)
            return
        value = math.nan
        if outcome.state is State.OK:
            value = log_speed(outcome, screen.metric(label))
            self.walls.setdefault(label, []).append(outcome.wall_s)
        else:
            self._explain(unit, outcome.error.removeprefix(f"{unit}: "))
        self.tables[label].setdefault(launch.block, {})[unit] = value
        self.launches += 1

    def _explain(self, unit: str, why: str) -> None:
        nodes = nodes_of(unit)
        for name in (unit, BAR.join(sorted(nodes)), *nodes):
            self.why[name] = why

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
    most = 1 + screen.links
    for one in stored:
        launch = one.launch
        named = nodes_of(launch.arm)
        known_here = nodes.issuperset(named) and len(named) == most
        if launch.benchmark not in known.tables or not known_here:
            cause = f"launch {launch.number} is of {launch.benchmark!r} on {launch.arm!r}"
            fix = "restore it, or screen anew with another --out"
            raise StoreError(f"{cause}, which is not of this screen", place=place, fix=fix)
        known.add(screen, one.launch, one.outcome, one.void)
    return known


def stands(screen: Screen, known: Known) -> Standing:
    """Return where the screen stands after the rounds that are whole."""
    if screen.links and known.course is None:
        known.course = links.Course(screen.nodes, screen.racks, screen.bounds, screen.seed)
    course, units = known.course, {label: screen.units(label) for label in screen.margins}
    while True:
        steps = logs_of(coarse(screen, known, len(course.planned) if course else ROUNDS))
        if course is None:
            so_far = known.up_to(known.whole)
            found = standing(so_far, units, screen.bounds, screen.seed, screen.families, steps)
        else:
            found = course.standing()
            wanted = found.wanted.items()
            found = replace(found, wanted={m: _ways(screen, m, pairs) for m, pairs in wanted})
        if found.done or any(_missing(found, known).values()):
            return found
        known.whole += 1
        if course is not None:
            tables = known.tables.items()
            course.take({m: _pairs(table.get(known.whole, {})) for m, table in tables}, steps)


def _ways(screen: Screen, label: str, pairs: Sequence[str]) -> tuple[str, ...]:
    """Return the pairs that are launched: of a rate in both orders, for it is one way."""
    turned = [BAR.join(reversed(nodes_of(pair))) for pair in pairs if screen.both_ways(label)]
    return (*pairs, *turned)


def coarse(screen: Screen, known: Known, first: int) -> dict[str, float]:
    """Return the steps of figures, as shares, by label where they are coarse for the margin.

    The `first` rounds alone say so: what was named once stays named.
    """
    found = {}
    for label, table in known.up_to(first).items():
        sign = 1 if screen.metric(label).better == "higher" else -1
        speeds = (one for row in table.values() for one in row.values())
        # Of a figure that was made a logarithm and is one again the last digits are not its own.
        values = [float(f"{math.exp(sign * one):.9g}") for one in speeds if not math.isnan(one)]
        if step := coarseness(values, screen.bounds[label]):
            found[label] = step
    return found


def logs_of(steps: Mapping[str, float]) -> dict[str, float]:
    """Return steps, which are shares, as the log ratios by which they enlarge a difference."""
    return {m: -math.log1p(-step) if step < 1 else math.inf for m, step in steps.items()}


def _pairs(row: Mapping[str, float]) -> dict[links.Pair, float]:
    """Return the log speed of each pair, which is that of its slower way; NaN if one failed."""
    found: dict[links.Pair, float] = {}
    for unit, value in row.items():
        one, other = nodes_of(unit)
        pair = links.sorted_pair(one, other)
        before = found.get(pair, math.inf)
        found[pair] = math.nan if math.isnan(before + value) else min(before, value)
    return found


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
    notify: Callable[[str], None],
    budget_s: float = math.inf,
) -> None:
    """Run rounds until nothing is wanted, or `budget_s` seconds would be exceeded.

    `known` has what is stored already, and then all. Raises StoreError, and AllocationError where
    nodes were lent and are taken back.
    """
    begin = time.monotonic()
    sitting = _Sitting(screen, store, fleet, known)
    longest = 0.0
    while not (found := stands(screen, known)).done:
        began = time.monotonic()
        if began - begin + longest > budget_s:
            notify(f"round {found.round + 1} would end after the budget, or the time of a job")
            return
        if (left := _reachable(screen, fleet)) < screen.least:
            notify(
                f"{count(left, 'unit')} can be had for round {found.round + 1}, too few to compare"
            )
            return
        for label, units in _missing(found, known).items():
            if units:
                notify(sitting.reported(label, found, units))
                sitting.launch(label, found.round + 1, units)
        longest = max(longest, time.monotonic() - began)


def _reachable(screen: Screen, fleet: Fleet) -> int:
    """Return how many units can be launched on, of the benchmark that has the fewest."""
    several = (screen.units(label) for label in screen.margins)
    return min(sum(nodes_of(one)[0] in fleet.stations for one in units) for units in several)


@dataclass(slots=True)
class _Flight:
    """A launch on its way: since when, when it was told to end, and how it ended.

    `station` is there once its unit has been reached, then `prepared`; `broken` is what ended it.
    """

    launch: Launch
    since: float = field(default_factory=time.monotonic)
    station: Station | None = None
    prepared: Prepared | None = None
    ended: Ended = field(default_factory=Ended)
    thread: threading.Thread | None = None
    warned_s: float = 0.0
    broken: BaseException | None = None

    def cancel(self) -> None:
        """End the launch if it has begun."""
        if self.station is not None:
            self.station.cancel()


def _fly(
    screen: Screen, fleet: Fleet, flight: _Flight, logs: tuple[Path, Path], limit_s: float
) -> None:
    """Reach the unit of a launch and make it; may be told to end in the meantime."""
    launch, over = flight.launch, screen.networks.get(flight.launch.benchmark, "")
    selection = screen.selection(launch.benchmark)
    what = selection, benchmark_of(selection)
    with fleet.reached(launch.arm, over) as (station, ready):
        flight.station = station
        scratch = f"{station.scratch}/{launch.number}"
        flight.prepared = prepare(ready, what, launch.seed, scratch, logs, limit_s)
        start(station, flight.prepared, flight.ended)


def _outcome(flight: _Flight) -> Outcome:
    """Return what came of a launch; in the main thread alone, for expressions of users are read."""
    assert flight.prepared is not None
    if flight.warned_s and flight.ended.done is not None:
        flight.ended.done = replace(flight.ended.done, timed_out=True)
    outcome = outcome_of(flight.prepared, flight.ended)
    if flight.warned_s and outcome.state is State.TIMEOUT:
        half = f"over {LATE:g} times as long as half of the nodes"
        return replace(outcome, error=f"late: ended after {outcome.wall_s:.0f} s, {half}")
    return outcome


def _next(waiting: list[str], engaged: set[str]) -> str | None:
    """Take the last of `waiting` none of whose nodes is engaged; None where there is none."""
    for i in range(len(waiting) - 1, -1, -1):
        if engaged.isdisjoint(nodes_of(waiting[i])):
            return waiting.pop(i)
    return None


class _Sitting:
    """Launches of rounds; nodes whose last launch was given up are `stuck` until it ends."""

    def __init__(self, screen: Screen, store: Store, fleet: Fleet, known: Known) -> None:
        self.screen, self.store, self.fleet, self.known = screen, store, fleet, known
        self.stuck: dict[str, threading.Thread] = {}

    def reported(self, label: str, found: Standing, units: Sequence[str]) -> str:
        """Return the line about a round before it starts."""
        open_ = sum(one.word == "open" for one in found.suspects)
        what = f"; {open_} to be proved" if open_ else ""
        walls = self.known.walls.get(label)
        takes = f", {format_seconds(median(walls))} a launch" if walls else ""
        several = f"on {count(len(units), self.screen.noun([label]))}"
        if self.screen.links:
            several = f"in {count(len(units), 'launch')}"
        return f"round {found.round + 1}: {label} {several}{takes}{what}"

    def launch(self, label: str, number: int, units: Sequence[str]) -> None:
        """Run a launch of `label` on each of `units`, so many at once, and store each."""
        waiting, busy = [*reversed(units)], dict[str, _Flight]()
        done: queue.SimpleQueue[str] = queue.SimpleQueue()
        most, engaged = _most(self.screen, len(units)), set[str]()
        walls: list[float] = []
        begin, step = time.monotonic(), self.screen.step or len(units)
        self.store.check_in_place()
        try:
            while waiting or busy:
                due = step * (1 + int(time.monotonic() - begin))
                while (
                    len(busy) < most
                    and len(units) - len(waiting) < due
                    and (name := _next(waiting, engaged))
                ):
                    self._start(name, label, number, busy, done)
                    engaged.update(nodes_of(name) if name in busy else ())
                try:
                    name = done.get(timeout=POLL_S)
                except queue.Empty:
                    self._hurry(label, len(units), walls, busy)
                    engaged = {node for one in busy for node in nodes_of(one)}
                    continue
                if name in busy:  # else it was given up, and ends now
                    flight = busy.pop(name)
                    engaged.difference_update(nodes_of(name))
                    self._keep(flight)
                    walls.append(time.monotonic() - flight.since)
        finally:
            for flight in busy.values():
                flight.cancel()

    def _start(
        self,
        name: str,
        label: str,
        number: int,
        busy: dict[str, _Flight],
        done: queue.SimpleQueue[str],
    ) -> None:
        self.known.last += 1
        launch = Launch(self.known.last, number, label, name, self.screen.seed + number)
        nodes = nodes_of(name)
        for node in nodes:
            if node not in self.fleet.stations:
                why = self.fleet.absent.get(node, "is not among the hosts any more")
                self._append(launch, why, void=why)
                return
        if any(self.stuck[node].is_alive() for node in nodes if node in self.stuck):
            self._append(launch, "its last launch has not ended")
            return
        logs, limit_s, flight = self.store.log_paths(launch), self._limit(label), _Flight(launch)

        def carried() -> None:
            try:
                _fly(self.screen, self.fleet, flight, logs, limit_s)
            except BaseException as error:
                flight.broken = error
            done.put(name)

        busy[name] = flight
        flight.thread = threading.Thread(target=carried, daemon=True)
        flight.thread.start()

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
            if late and not flight.warned_s:
                flight.warned_s = now
                flight.cancel()
            elif flight.warned_s and now - flight.warned_s > ENDING_S:
                del busy[name]
                assert flight.thread is not None
                self.stuck |= dict.fromkeys(nodes_of(name), flight.thread)
                self._append(flight.launch, f"hangs: no end {ENDING_S:.0f} s after it was ended")

    def _keep(self, flight: _Flight) -> None:
        """Store what came of a launch; raises what broke it, if that was no node's fault."""
        launch, error = flight.launch, flight.broken
        if error is None:
            self._append(launch, _outcome(flight))
        elif isinstance(error, AllocationError):
            if not self.fleet.singly:
                raise error
            [node] = nodes_of(launch.arm)
            self.fleet.stations.pop(node, None)
            self.fleet.absent[node] = error.cause
            self._append(launch, error.cause, void=error.cause)
        elif isinstance(error, LaunchError) or (
            isinstance(error, UserError) and flight.station is None  # a pair not reached
        ):
            self._append(launch, str(error))
        else:
            raise error

    def _append(self, launch: Launch, what: Outcome | str, void: str | None = None) -> None:
        """Store what came of a launch, or why there was none.

        With `void` the node could not be had: no failure of it.
        """
        if isinstance(what, str):
            what = Outcome(State.FAULT, time.time(), 0.0, None, (), error=what)
        self.store.append(launch, what, void=void)
        self.known.add(self.screen, launch, what, void)
