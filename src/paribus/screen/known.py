"""The stored launches of a screen as tables of log speeds, and the course that follows from them.

The course is never stored: it is computed anew from the launches in launches.db and the seed of
screen.json, so that an interrupted screen goes on where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from paribus.core import Launch, Metric, Outcome, State, StoreError
from paribus.judge.evidence import figures
from paribus.screen.course import BAR, nodes_of
from paribus.screen.plan import Screen
from paribus.stats.ties import coarseness
from paribus.store import Stored


class Known:
    """What is known of a screen from its launches.

    `tables`: log speeds by label, round and unit, NaN for a failure. `course`: where these lead to.
    `why`: the last failure of each unit, and of its nodes. `walls`: wall times of good launches by
    label, in seconds. `absent`: round, label and unit of launches that could not be made, because
    the scheduler did not lend the node. `launches`: how many were made; `last`: the greatest number
    of one.
    """

    def __init__(self, screen: Screen) -> None:
        self.screen, self.course = screen, screen.course()
        self.tables: dict[str, dict[int, dict[str, float]]] = {m: {} for m in screen.margins}
        self.why: dict[str, str] = {}
        self.walls: dict[str, list[float]] = {}
        self.absent: set[tuple[int, str, str]] = set()
        self.launches = self.last = 0

    def add(self, launch: Launch, outcome: Outcome, void: str | None = None) -> None:
        """Take the outcome of a launch; `void` is the reason where none could be made."""
        label, unit, self.last = launch.benchmark, launch.arm, max(self.last, launch.number)
        value, why = math.nan, void or outcome.error.removeprefix(f"{unit}: ")
        if not void and outcome.state is State.OK:
            value, why = log_speed(outcome, self.screen.metric(label)), ""
            self.walls.setdefault(label, []).append(outcome.wall_s)
        if why:
            nodes = nodes_of(unit)
            self.why |= dict.fromkeys((unit, BAR.join(sorted(nodes)), *nodes), why)
        if void:
            self.absent.add((launch.block, label, unit))
        else:
            self.tables[label].setdefault(launch.block, {})[unit] = value
            self.launches += 1

    def missing(self) -> dict[str, list[str]]:
        """Return the units still to be launched in the next round, by label.

        Before that the course takes each round in which no unit is missing.
        """
        course = self.course
        while True:
            number = course.round + 1
            rows = {label: table.get(number, {}) for label, table in self.tables.items()}
            missing = {
                m: [u for u in units if u not in rows[m] and (number, m, u) not in self.absent]
                for m, units in course.wanted.items()
            }
            if course.done or any(missing.values()):
                return missing
            course.take(rows)
            if number == course.first:
                found = {label: self._step(label) for label in self.tables}
                course.coarse = {label: step for label, step in found.items() if step}

    def _step(self, label: str) -> float:
        """Return the step in which figures are printed, as a share; 0 if finer than matters."""
        sign = 1 if self.screen.metric(label).better == "higher" else -1
        first = (self.tables[label].get(n + 1, {}) for n in range(self.course.first))
        speeds = (one for row in first for one in row.values())
        # Of a figure that was made a logarithm and is one again the last digits are not its own.
        values = [float(f"{math.exp(sign * one):.9g}") for one in speeds if not math.isnan(one)]
        return coarseness(values, self.screen.bounds[label])


def log_speed(outcome: Outcome, metric: Metric) -> float:
    """Return the mean log of a metric over its cases; a higher one is better, NaN without a figure.

    Of a metric whose lower values are better, such as a latency, the sign is turned.
    """
    found, _ = figures(outcome.samples, [metric])
    logs = [math.log(value) for value in found.values()]
    sign = 1 if metric.better == "higher" else -1
    return sign * sum(logs) / len(logs) if logs else math.nan


def known_of(screen: Screen, stored: Iterable[Stored], place: str = "launches.db") -> Known:
    """Return what is known from stored launches.

    Raises StoreError, naming `place`, for a launch that is not of the screen.
    """
    known, nodes = Known(screen), {*screen.nodes}
    for one in stored:
        launch, named = one.launch, nodes_of(one.launch.arm)
        here = nodes.issuperset(named) and len(named) == 1 + screen.links
        if launch.benchmark not in known.tables or not here:
            cause = f"launch {launch.number} is of {launch.benchmark!r} on {launch.arm!r}"
            fix = "restore it, or screen anew with another --out"
            raise StoreError(f"{cause}, which is not of this screen", place=place, fix=fix)
        known.add(launch, one.outcome, one.void)
    return known
