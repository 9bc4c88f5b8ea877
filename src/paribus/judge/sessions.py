"""What a study of sessions allows to say: switches enough, and where its scatter comes from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from paribus.core import Notice, NoticeName
from paribus.judge.evidence import Entry, Evidence
from paribus.plan import Plan
from paribus.stats.sessions import (
    LEAST_SWITCHES,
    attributable,
    components,
    launches_per_session,
    switches,
)
from paribus.stats.summary import geometric_mean

LEAST_S = 1e-3
"""Seconds below which a cost counts as none."""


def sessions(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    """Return the notices of a study of sessions; none for any other."""
    if not plan.session:
        return
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
    for label in plan.metrics:
        yield from _nested(plan, evidence, label)


def _nested(plan: Plan, evidence: Evidence, label: str) -> Iterable[Notice]:
    """Say how sessions and their launches scatter: which of them more would help."""
    merit = plan.metrics[label][0].name
    reference = plan.study.arms[0].name
    cells = [cell for cell in evidence.cells(label) if cell[0] == merit]
    if not cells:
        return
    values = [
        [
            geometric_mean([entry.medians[cell] for cell in cells])
            for entry in units[reference]
            if entry.launch.place and all(cell in entry.medians for cell in cells)
        ]
        for units in evidence.launches.get(label, {}).values()
        if reference in units
    ]
    logs = [[math.log(value) for value in several] for several in values if several]
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


def _costs(evidence: Evidence) -> tuple[float, float] | None:
    """Return the seconds of a switch, warm-up included, and of one launch of every benchmark.

    None where no arm was switched.
    """
    counting = {
        label: [entry for entry in evidence.entries(label) if evidence.counted(entry.launch)]
        for label in evidence.launches
    }
    in_time = sorted((entry for own in counting.values() for entry in own), key=_started)
    gaps = [
        after.started - before.started - before.wall_s
        for before, after in pairwise(in_time)
        if before.launch.arm != after.launch.arm
    ]
    if not gaps:
        return None
    launch_s = sum(statistics.median(e.wall_s for e in own) for own in counting.values() if own)
    return max(statistics.median(gaps), LEAST_S), max(launch_s, LEAST_S)


def _started(entry: Entry) -> float:
    return entry.started
