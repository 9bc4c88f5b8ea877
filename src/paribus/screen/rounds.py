"""The rounds of a screen: launches on all units that its course wants, each stored as it ends.

Each launch runs in a thread of its own. A launch that takes far longer than most others of its
round is ended, and fails; where even that does not end it, its node is left to itself, so that one
hanging node delays a round by a few times the length of a launch, and never stops it.
"""

from __future__ import annotations

import math
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from paribus.benchmarks import benchmark_of
from paribus.core import (
    AllocationError,
    Launch,
    LaunchError,
    Outcome,
    Selection,
    State,
    UserError,
    count,
    format_seconds,
)
from paribus.launch.launching import Ended, Prepared, outcome_of, prepare, start
from paribus.launch.local import LocalStation
from paribus.launch.station import Station
from paribus.screen.course import BAR, PARTNERS, looks, nodes_of
from paribus.screen.fleet import Fleet
from paribus.screen.known import Known
from paribus.screen.plan import Screen
from paribus.store import Store

OFTEN = 0.05
"""`--dry-run` forecasts the proofs of one nominated unit, and of this share of all."""

FIRST_S = 600.0
"""Seconds that a launch may take while nothing is known of its length."""

LATE = 5.0
"""How many times as long as the median a launch may take: a node at a fifth of its clock is still
measured."""

LEAST_S = 10.0
"""Seconds that a launch may take in any case."""

ENDING_S = 10.0
"""Seconds that a launch may take to end once it was asked to, before its node is given up."""

POLL_S = 0.2
"""Seconds between looks for launches that are late."""


def show(screen: Screen, fleet: Fleet, local: LocalStation) -> None:
    """Print how many rounds and minutes the screen will take: with none, one, OFTEN nominated.

    To know the time of a launch, one of each benchmark is made on the first unit; raises
    LaunchError where it fails.
    """
    walls = {one.label: _wall_s(screen, one, fleet, local) for one in screen.selections}
    number = max(len(screen.units(label)) for label in walls) // (1 + screen.links)
    each = sum(wall_s * (1 + screen.both_ways(label)) for label, wall_s in walls.items())
    course, most = screen.course(), _most(screen, number)
    print(f"{count(number, screen.noun(walls))}, {count(most, screen.noun(walls))} at once")
    for label, wall_s in walls.items():
        print(f"  {label}: {format_seconds(wall_s)} a launch")
    for name, why in screen.absent.items():
        print(f"  not screened: {name}: {why}")
    all_s = course.first * each * math.ceil(number / most)
    print(f"none is nominated: {count(course.first, 'round')}, {format_seconds(all_s)}")
    for some in sorted({1, max(1, round(OFTEN * number))}):
        at = looks(course.families * some * len(walls), course.later)
        each_s = each * math.ceil(min(number, some + max(PARTNERS, some)) / most)
        soonest, latest = (
            f"{count(course.first + n, 'round')} and {format_seconds(all_s + n * each_s)}"
            for n in (at[0], at[-1])
        )
        print(f"{some} nominated: {soonest}, to {latest}")


def _most(screen: Screen, units: int) -> int:
    """Return on how many of so many `units` launches run at once; a pair takes two nodes."""
    return max(1, screen.at_once // (1 + screen.links)) if screen.at_once else units


def _wall_s(screen: Screen, selection: Selection, fleet: Fleet, local: LocalStation) -> float:
    """Return the wall time in seconds of a launch on the first unit; raises LaunchError."""
    name = BAR.join(screen.nodes[:2]) if screen.links else screen.units(selection.label)[0]
    flight = _Flight(Launch(1, 1, selection.label, name, 1))
    with tempfile.TemporaryDirectory(dir=local.here) as folder:
        flight.fly(screen, fleet, (Path(folder, "out"), Path(folder, "err")), FIRST_S)
        outcome = flight.outcome()
    if outcome.state is not State.OK:
        raise LaunchError(
            f"a launch of {selection.label} failed: {outcome.error}",
            place=name,
            fix="see that the benchmark works there, or choose another --with",
        )
    return outcome.wall_s


def execute(
    known: Known,
    store: Store,
    fleet: Fleet,
    notify: Callable[[str], None],
    budget_s: float = math.inf,
) -> None:
    """Run rounds until the course wants no more, or the next one would exceed `budget_s` seconds.

    `known` holds what is stored already, and takes what is added. `notify` shows a line before
    each round, and says why rounds end early. Raises StoreError, and AllocationError where a job
    that lends all the nodes ended.
    """
    begin, longest = time.monotonic(), 0.0
    screen, course, sitting = known.screen, known.course, _Sitting(known, store, fleet)
    while any((missing := known.missing()).values()):
        began, number = time.monotonic(), course.round + 1
        if began - begin + longest > budget_s:
            notify(f"round {number} would end after the budget, or the time of a job")
            return
        several = (screen.units(label) for label in screen.margins)
        left = min(sum(nodes_of(one)[0] in fleet.stations for one in units) for units in several)
        if left < screen.least:
            notify(f"{count(left, 'unit')} can be had for round {number}, too few to compare")
            return
        for label, units in missing.items():
            if units:
                notify(_reported(known, label, units))
                sitting.launch(label, number, units)
        longest = max(longest, time.monotonic() - began)


def _reported(known: Known, label: str, units: Sequence[str]) -> str:
    """Return the line that is shown before the launches of a benchmark in a round."""
    open_ = sum(one.word == "open" for one in known.course.questions)
    what = f"; {open_} to be proved" if open_ else ""
    walls = known.walls.get(label)
    takes = f", {format_seconds(median(walls))} a launch" if walls else ""
    several = f"on {count(len(units), known.screen.noun([label]))}"
    if known.screen.links:
        several = f"in {count(len(units), 'launch')}"
    return f"round {known.course.round + 1}: {label} {several}{takes}{what}"


@dataclass(slots=True)
class _Flight:
    """A launch in its thread, begun at `since` (seconds of the monotonic clock).

    `station` is set once its unit has been reached, then `prepared`, and `ended` as it ends.
    `warned_s`: when it was asked to end because it was late, 0 if it was not. `broken`: the
    exception that ended the thread.
    """

    launch: Launch
    since: float = field(default_factory=time.monotonic)
    station: Station | None = None
    prepared: Prepared | None = None
    ended: Ended = field(default_factory=Ended)
    thread: threading.Thread | None = None
    warned_s: float = 0.0
    broken: BaseException | None = None

    def fly(self, screen: Screen, fleet: Fleet, logs: tuple[Path, Path], limit_s: float) -> None:
        """Reach the unit and make the launch, `limit_s` seconds at most; returns when it ended.

        `logs`: the files for what it prints and for its errors.
        """
        launch = self.launch
        selection = screen.selection(launch.benchmark)
        network = screen.networks.get(launch.benchmark, "")
        with fleet.reached(launch.arm, network) as (station, ready):
            self.station = station
            scratch, what = (
                f"{station.scratch}/{launch.number}",
                (selection, benchmark_of(selection)),
            )
            self.prepared = prepare(ready, what, launch.seed, scratch, logs, limit_s)
            start(station, self.prepared, self.ended)

    def cancel(self) -> None:
        """End the launch from another thread, if it has begun."""
        if self.station is not None:
            self.station.cancel()

    def outcome(self) -> Outcome:
        """Return the outcome of a launch that ended.

        Call it in the main thread: a user's regular expression is bounded there alone.
        """
        assert self.prepared is not None
        if self.warned_s and self.ended.done is not None:
            self.ended.done = replace(self.ended.done, timed_out=True)
        outcome = outcome_of(self.prepared, self.ended)
        if self.warned_s and outcome.state is State.TIMEOUT:
            half = f"over {LATE:g} times as long as half of the nodes"
            return replace(outcome, error=f"late: ended after {outcome.wall_s:.0f} s, {half}")
        return outcome


class _Sitting:
    """The launches that are running: `busy`, by unit, whose nodes are `engaged`.

    `stuck`: nodes whose last launch was given up, each with the thread in which it still runs.
    """

    def __init__(self, known: Known, store: Store, fleet: Fleet) -> None:
        self.screen, self.known, self.store, self.fleet = known.screen, known, store, fleet
        self.stuck: dict[str, threading.Thread] = {}
        self.busy: dict[str, _Flight] = {}
        self.engaged: set[str] = set()

    def launch(self, label: str, number: int, units: Sequence[str]) -> None:
        """Make a launch of `label` on each of `units` in round `number`, and store each."""
        waiting, walls, done = [*reversed(units)], list[float](), queue.SimpleQueue[str]()
        most = _most(self.screen, len(units))
        begin, step = time.monotonic(), self.screen.step or len(units)
        self.store.check_in_place()
        try:
            while waiting or self.busy:
                due = step * (1 + int(time.monotonic() - begin))
                while (
                    len(self.busy) < most
                    and len(units) - len(waiting) < due
                    and (unit := self._next(waiting))
                ):
                    self._start(unit, label, number, done)
                try:
                    unit = done.get(timeout=POLL_S)
                except queue.Empty:
                    late = LATE * median(walls) if len(walls) >= len(units) / 2 else math.inf
                    self._end_late(min(self._limit(label), max(LEAST_S, late)))
                    continue
                if unit in self.busy:  # else it was given up, and ends now
                    flight = self._landed(unit)
                    self._keep(flight)
                    walls.append(time.monotonic() - flight.since)
        finally:
            for flight in self.busy.values():
                flight.cancel()

    def _next(self, waiting: list[str]) -> str | None:
        """Take the last unit of `waiting` whose nodes are all idle; None where there is none."""
        for i in range(len(waiting) - 1, -1, -1):
            if self.engaged.isdisjoint(nodes_of(waiting[i])):
                return waiting.pop(i)
        return None

    def _landed(self, unit: str) -> _Flight:
        """Return the launch on a unit, whose nodes are free for others from now on."""
        self.engaged.difference_update(nodes_of(unit))
        return self.busy.pop(unit)

    def _start(self, unit: str, label: str, number: int, done: queue.SimpleQueue[str]) -> None:
        """Start a launch, which puts its unit into `done` as it ends, or store why it cannot be."""
        launch = Launch(self.known.last + 1, number, label, unit, self.screen.seed + number)
        self.known.last += 1
        nodes, there = nodes_of(unit), self.fleet.stations
        if lacking := next((node for node in nodes if node not in there), None):
            self._void(launch, self.fleet.absent.get(lacking, "is not among the hosts any more"))
            return
        if any(self.stuck[node].is_alive() for node in nodes if node in self.stuck):
            self._append(launch, "its last launch has not ended")
            return
        logs, limit_s, flight = self.store.log_paths(launch), self._limit(label), _Flight(launch)

        def flown() -> None:
            try:
                flight.fly(self.screen, self.fleet, logs, limit_s)
            except BaseException as error:
                flight.broken = error
            done.put(unit)

        self.busy[unit] = flight
        self.engaged.update(nodes)
        flight.thread = threading.Thread(target=flown, daemon=True)
        flight.thread.start()

    def _limit(self, label: str) -> float:
        """Return how many seconds a launch may take, by those of the rounds before."""
        walls = self.known.walls.get(label)
        return max(LEAST_S, LATE * median(walls)) if walls else FIRST_S

    def _end_late(self, limit_s: float) -> None:
        """End launches that run for over `limit_s` seconds; give up those that do not end."""
        now = time.monotonic()
        for name, flight in [*self.busy.items()]:
            if now - flight.since > limit_s and not flight.warned_s:
                flight.warned_s = now
                flight.cancel()
            elif flight.warned_s and now - flight.warned_s > ENDING_S:
                assert flight.thread is not None
                self.stuck |= dict.fromkeys(nodes_of(name), flight.thread)
                self._landed(name)
                self._append(flight.launch, f"hangs: no end {ENDING_S:.0f} s after it was ended")

    def _keep(self, flight: _Flight) -> None:
        """Store the outcome of a launch; raises what broke it, if that was not the node's fault."""
        launch, error = flight.launch, flight.broken
        if error is None:
            self._append(launch, flight.outcome())
        elif isinstance(error, AllocationError):
            if not self.fleet.singly:
                raise error
            [node] = nodes_of(launch.arm)
            self.fleet.stations.pop(node, None)
            self.fleet.absent[node] = error.cause
            self._void(launch, error.cause)
        elif isinstance(error, LaunchError) or (
            isinstance(error, UserError) and flight.station is None  # a pair not reached
        ):
            self._append(launch, str(error))
        else:
            raise error

    def _void(self, launch: Launch, why: str) -> None:
        """Store that a launch was not made, because its node was not lent: it is no failure."""
        self._append(launch, why, void=why)

    def _append(self, launch: Launch, what: Outcome | str, void: str | None = None) -> None:
        """Store the outcome of a launch, or the reason why there is none, as a fault."""
        if isinstance(what, str):
            what = Outcome(State.FAULT, time.time(), 0.0, None, (), error=what)
        self.store.append(launch, what, void=void)
        self.known.add(launch, what, void)
