"""Sessions: the factor is expensive to switch, so a session of launches is what counts once.

A block is a pair (or more) of sessions, and the median of a session's launches is its value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from paribus.core import Notice, NoticeName
from paribus.designs.standard import Design
from paribus.stats import schedule as orders
from paribus.stats.looks import Looks
from paribus.stats.schedule import Place
from paribus.stats.sessions import (
    LEAST_SWITCHES,
    attributable,
    components,
    launches_per_session,
    switches,
)
from paribus.stats.summary import geometric_mean
from paribus.words.designs.sessions import SessionsWords

if TYPE_CHECKING:
    from paribus.judge.evidence import Entry, Evidence
    from paribus.plan import Plan

FIRST_LOOK = 12
"""The first look at sessions, in blocks. In 12 blocks sessions nearly always switch six times in
each direction (8 blocks do in half of all studies); with fewer switches a verdict could not be
attributed to the factor. The level is that of the full schedule, which is conservative."""

LEAST_S = 1e-3
"""The least seconds of a cost, so that none is 0."""


class Sessions(SessionsWords, Design):
    """One session of every arm in a block, all benchmarks in each; nothing in it is rerun."""

    unit: Literal["launch", "session", "build"] = "session"
    first_look = FIRST_LOOK

    @property
    def session(self) -> int:
        return self.settings.launches

    def places(
        self, stages: Sequence[str], labels: Sequence[str], seed: int, even: int
    ) -> Iterator[Place]:
        blocks, launches = self.settings.blocks, self.session
        return orders.sessions(stages, labels, blocks, launches, seed, even=even)

    def looks(self) -> Looks:
        looks = super().looks()
        later = tuple(look for look in looks.at if look >= self.first_look)
        return replace(looks, at=later or looks.at[-1:])

    def notices(self, plan: Plan, evidence: Evidence) -> Iterable[Notice]:
        """Yield a warning if there were too few switches, and notes on where scatter comes from."""
        yield from _switches(plan, evidence)
        for label in plan.metrics:
            yield from _nested(plan, evidence, label)


def _switches(plan: Plan, evidence: Evidence) -> Iterator[Notice]:
    """Yield a warning if sessions switched too rarely for a verdict on the factor."""
    begun = {
        (entry.launch.block, entry.launch.arm): entry.started
        for label in plan.metrics
        for entry in reversed(evidence.entries(label))
    }
    blocks = sorted({block for block, _ in begun})
    orders = [
        [arm for _, arm in sorted((at, arm) for (b, arm), at in begun.items() if b == block)]
        for block in blocks
    ]
    if not attributable(orders, [arm.name for arm in plan.study.arms]):
        figures = {
            "switches": {f"{one} to {other}": n for (one, other), n in switches(orders).items()},
            "least": LEAST_SWITCHES,
        }
        yield Notice(NoticeName.ONE_INSTALLATION_EACH, "warning", figures=figures)


def _nested(plan: Plan, evidence: Evidence, label: str) -> Iterable[Notice]:
    """Yield a note on the scatter of sessions and of their launches: more of which would help."""
    reference = plan.study.arms[0].name
    logs = logs_of(plan, evidence, label, reference)
    if len(logs) < 2:
        return
    sd_session, sd_launch = components(logs)
    if math.isnan(sd_session) or math.isnan(sd_launch):
        return
    figures: dict[str, Any] = {
        "reference": reference,
        "sd_session": sd_session,
        "sd_launch": sd_launch,
        "per_session": plan.session,
        "launches_help": sd_session <= sd_launch / math.sqrt(plan.session),
    }
    costs = _costs(evidence)
    if costs:
        figures |= {"switch_s": costs[0], "launch_s": costs[1]}
        figures["launches"] = launches_per_session(*costs, sd_launch, sd_session)
    yield Notice(NoticeName.SESSIONS, "note", (label,), figures)


def logs_of(plan: Plan, evidence: Evidence, label: str, arm: str) -> list[list[float]]:
    """Return, for each session of an arm, the logs of its launches' geometric means over cases."""
    merit = plan.metrics[label][0].name
    cells = [cell for cell in evidence.cells(label) if cell[0] == merit]
    values = [
        [
            geometric_mean([entry.medians[cell] for cell in cells])
            for entry in units[arm]
            if entry.launch.place and all(cell in entry.medians for cell in cells)
        ]
        for units in evidence.launches.get(label, {}).values()
        if cells and arm in units
    ]
    return [[math.log(value) for value in several] for several in values if several]


def _costs(evidence: Evidence) -> tuple[float, float] | None:
    """Return the seconds of a switch, warm-up included, and of one launch of every benchmark.

    None if no arm was switched.
    """
    counting = {
        label: [entry for entry in evidence.entries(label) if evidence.counted(entry.launch)]
        for label in evidence.launches
    }
    in_time = sorted((e for several in counting.values() for e in several), key=_started)
    gaps = [
        after.started - before.started - before.wall_s
        for before, after in pairwise(in_time)
        if before.launch.arm != after.launch.arm
    ]
    if not gaps:
        return None
    launch_s = sum(statistics.median(e.wall_s for e in one) for one in counting.values() if one)
    return max(statistics.median(gaps), LEAST_S), max(launch_s, LEAST_S)


def _started(entry: Entry) -> float:
    return entry.started
