"""Allocations of a scheduler: their nodes, whether their time is enough, and names of jobs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from paribus.core import AllocationError, Arm, Facts, Launch, Outcome, ShareError, expand, fold
from paribus.judge.allocations import JOB, NODES
from paribus.judge.evidence import Evidence
from paribus.launch.station import Station
from paribus.plan import Plan
from paribus.store import Store

ROOM = 1.5
"""A block is expected to take at most this multiple of its slowest launches so far."""

WINDOW_S = 30.0
"""Seconds that a block may be held up: between the end of a launch and the start of the next, or
by a suspension of the allocation."""


def held_up(stations: Iterable[Station], outcomes: Sequence[Outcome]) -> bool:
    """Return whether a block on nodes of a scheduler was held up for longer than WINDOW_S.

    This is seen from a gap between two launches, or from a suspension within one: its allocation
    then ends later than planned. The figures of the launches have no part in it.
    """
    leases = {one.lease for one in stations if one.lease}
    if not leases:
        return False
    ends = [one.started + one.wall_s for one in outcomes]
    gaps = [after.started - end for after, end in zip(outcomes[1:], ends, strict=False)]
    if max(gaps, default=0.0) > WINDOW_S:
        return True
    took_long = max(ends) - outcomes[0].started > WINDOW_S
    return took_long and any(one.prolonged_s() > WINDOW_S for one in leases)


def check_time(stations: Iterable[Station], evidence: Evidence, block: Sequence[Launch]) -> None:
    """Raise AllocationError if an allocation may end before `block` does.

    A launch is expected to take as long as the slowest of its benchmark so far, void ones
    included; a benchmark that never ran is started in any case.
    """
    leases = {one.lease for one in stations if one.lease}
    if not leases:
        return
    needed_s = ROOM * sum(
        max((one.wall_s for one in evidence.entries(launch.benchmark)), default=0.0)
        for launch in block
    )
    left_s = min(one.ends_at for one in leases) - time.time()
    if left_s < needed_s:
        raise AllocationError(
            f"the allocation ends in {max(0.0, left_s):.0f} s, and the next block may take"
            f" {needed_s:.0f} s",
            place="scheduler",
            fix="continue with --resume in another allocation: every stored launch is kept",
        )


def check_share(plan: Plan, block: int, before: int | None) -> int:
    """Return the index of the plan's allocation that `block` belongs to.

    Raises ShareError if that is not `before`, the one of this sitting so far (None: no block yet).
    """
    share = plan.design.allocation(block)
    if before not in (None, share):
        raise ShareError(
            f"block {block} is the first of share {share + 1} of {plan.design.allocations}",
            place="plan.allocations",
            fix="continue with --resume in another allocation: every stored launch is kept",
        )
    return share


def allocation_facts(arm: Arm, station: Station) -> Facts:
    """Return the facts JOB and NODES of launches of `arm`; none without an allocation."""
    asked = arm.hosts.scheduler if arm.hosts else None
    if arm.hosts is None or asked is None or station.lease is None:
        return {}
    return {JOB: station.lease.job(asked), NODES: fold(station.lease.nodes_of(asked))}


def nodes_before(directory: Path) -> tuple[str, ...]:
    """Return the nodes of the first launch in `directory` that has the fact NODES, else ()."""
    with Store(directory) as store:
        for one in store.launches(samples=False, void=True):
            if NODES in one.outcome.facts:
                return expand(one.outcome.facts[NODES])
    return ()


def nodes_had(directory: Path) -> dict[str, tuple[str, ...]]:
    """Return the nodesets that each arm of the study in `directory` had, the latest at the end."""
    had: dict[str, dict[str, None]] = {}  # dicts as ordered sets
    with Store(directory) as store:
        for one in store.launches(samples=False, void=True):
            if nodes := one.outcome.facts.get(NODES):
                of_arm = had.setdefault(one.launch.arm, {})
                of_arm.pop(nodes, None)
                of_arm[nodes] = None
    return {arm: tuple(nodes) for arm, nodes in had.items()}


def key_for(directory: Path) -> str:
    """Return a part of the names of this study's jobs, the same on every login node."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:10]
