"""What a scheduler lends: which nodes, whether its time is enough, and under what names."""

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
"""How much longer than its slowest launches so far a block may take."""

WINDOW_S = 30.0
"""Seconds within which a launch of a block starts after the one before; and for so long an
allocation may be suspended in the middle of a block."""


def held_up(stations: Iterable[Station], outcomes: Sequence[Outcome]) -> bool:
    """Return whether a block on lent hosts was held up for longer than WINDOW_S.

    Between two launches, or in one: then it took as long, and its allocation ends later. The
    figures of the launches have no part in it, and whichever arm it met, both are launched again.
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
    """Raise AllocationError where an allocation ends before `block` would.

    A launch takes as long as the slowest of its benchmark so far, those that were not counted
    included; one that never ran is started.
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
    """Return which allocation of the plan `block` belongs to.

    Raises ShareError where that is another one than `before`, that of this sitting so far.
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
    """Return in which allocation and on which nodes launches of `arm` are; {} without a lease."""
    asked = arm.hosts.scheduler if arm.hosts else None
    if arm.hosts is None or asked is None or station.lease is None:
        return {}
    return {JOB: station.lease.job(asked), NODES: fold(station.lease.nodes_of(asked))}


def nodes_before(directory: Path) -> tuple[str, ...]:
    """Return the nodes on which the study in `directory` began, () where no launch says it."""
    with Store(directory) as store:
        for one in store.launches(samples=False, void=True):
            if NODES in one.outcome.facts:
                return expand(one.outcome.facts[NODES])
    return ()


def nodes_had(directory: Path) -> dict[str, tuple[str, ...]]:
    """Return the nodesets that each arm of the study in `directory` had, the last at the end."""
    had: dict[str, dict[str, None]] = {}
    with Store(directory) as store:
        for one in store.launches(samples=False, void=True):
            if nodes := one.outcome.facts.get(NODES):
                mine = had.setdefault(one.launch.arm, {})
                mine.pop(nodes, None)
                mine[nodes] = None
    return {arm: tuple(nodes) for arm, nodes in had.items()}


def key_for(directory: Path) -> str:
    """Return what names the jobs of the study in `directory`, from whichever login node."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:10]
