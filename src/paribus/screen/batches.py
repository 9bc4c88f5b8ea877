"""A screen beside users (`--wait`): a job for each node, and batches of nodes whose jobs run.

A batch is a screen by itself, in a directory of its own: all its nodes are measured in the same
minutes. A batch with a tenth of the fleet has a tenth of the error, so that over all batches the
chance that any healthy node is called slow stays what it is. Where too few new nodes are left for a
batch, nodes that showed no sign of slowness are measured beside them; their answer stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from paribus.core import Scheduler, UserError, count, fold
from paribus.schedulers.allocations import Allocations, pause_s
from paribus.schedulers.dialect import Job, Phase
from paribus.schedulers.singly import Singly
from paribus.screen import plan
from paribus.screen.answer import stored
from paribus.screen.course import nodes_of
from paribus.screen.fleet import Reached
from paribus.screen.nodes import LOWER
from paribus.screen.plan import Screen
from paribus.screen.slurm import PLACE, is_out, lent_by, states

QUIET_S = 20.0
"""A batch does not wait for jobs in the queue once none has started for so many seconds."""

Measure = Callable[[Path, Screen | None, Reached], None]
"""A function that screens a batch in its directory, or completes the one that is frozen there."""


@dataclass(frozen=True, slots=True)
class Night:
    """What is asked for: the screen of a partition in `directory`, in batches.

    `each`: the job of one node; `key`: its name in the queue, as in Allocations. `least`: the
    fewest nodes of a batch. No batch begins after `deadline`, and no launch after `end`; both are
    seconds since the epoch.
    """

    directory: Path
    each: Scheduler
    key: str
    least: int
    deadline: float
    end: float
    network: str
    notify: Callable[[str], None]


def in_batches(night: Night, resumed: bool, measure: Measure) -> None:
    """Screen the nodes of a partition as they come free, until none is left, or the deadline.

    `measure` makes the launches of a batch. All jobs are ended at the end. Raises UserError where
    no batch came together.
    """
    directory, seen = night.directory, states(night.each.partition)
    known = {node for one in plan.batches(directory) for node in plan.read(one).nodes}
    fleet = sorted({*known, *plan.read(directory).absent}) if resumed else [*seen]
    why = {node: f"{seen.get(node, 'gone')} in Slurm" for node in fleet}
    fit = {node for node in fleet if not is_out(seen.get(node, "down"))}
    rest, open_ = fit - known, _unfinished(directory, fit) if resumed else {}
    with Singly(night.each, fleet, night.key, PLACE, night.notify) as held:
        held.ask(sorted(rest.union(*(one.nodes for one in open_.values()))))
        while found := _next(night, held, open_, rest):
            path, running = found
            frozen = plan.read(path) if path in open_ else None
            shares = frozen.families if frozen else len(fleet) / len(rest & running.keys())
            path = path if frozen else directory / f"batch-{len(plan.batches(directory)) + 1}"
            rest -= running.keys()
            open_.pop(path, None)
            others = rest.union(*(one.nodes for one in open_.values()))
            held.give_back({*fleet} - others - running.keys())
            night.notify(f"{path.name}: {fold(sorted(running))}")
            absent = {node: reason for node, reason in why.items() if node not in running}
            there = [held.host(node, job) for node, job in sorted(running.items())]
            until = min(night.end, *(job.ends_at for job in running.values()))
            lender = partial(_lender, held, running)
            lent = lent_by(lender, there, night.network, singly=True)
            measure(path, frozen, replace(lent, absent=absent, until=until, families=shares))
            why |= plan.read(path).absent if not frozen else {}
            held.give_back(running)
        left = held.queued() if rest else {}
    if not plan.batches(directory):
        raise UserError(
            f"no {count(night.least, 'node')} came free together",
            place=f"--scheduler slurm:{night.each.partition} --wait",
            fix="wait longer, ask for fewer --partners, or for a reservation",
        )
    seen = states(night.each.partition) if rest else {}
    for node in rest:
        alone = node in left and left[node].phase is Phase.RUNS
        busy = f"not free in time: {seen.get(node, 'gone')} in Slurm"
        why[node] = "too few others were free at the same time" if alone else busy
    plan.write(replace(plan.read(directory), absent=why), directory, anew=True)


def _lender(held: Singly, running: Mapping[str, Job], node: str) -> Allocations:
    return held.alone(node, running[node])


@dataclass(frozen=True, slots=True)
class Open:
    """A batch with launches left to make: its `nodes`, and those that these launches `needed`."""

    nodes: set[str]
    needed: set[str]


def _unfinished(directory: Path, fit: set[str]) -> dict[Path, Open]:
    """Return the batches below `directory` with launches left to make, of nodes that are `fit`."""
    found = {}
    for path in plan.batches(directory):
        answer = stored(path)
        nodes = fit.intersection(answer.screen.nodes)
        proved = (one for one in answer.course.questions if one.word == "open")
        needed = {nodes_of(one.unit)[0] for one in proved} - {LOWER.name} or nodes
        if not answer.whole and needed & nodes:
            found[path] = Open(nodes, needed & nodes)
    return found


def _next(
    night: Night, held: Singly, open_: Mapping[Path, Open], rest: set[str]
) -> tuple[Path, dict[str, Job]] | None:
    """Wait until a batch can be measured; return its directory, and the running job of each node.

    It is a batch of `open_`, or a new one with nodes of `rest`, whose directory here is that of the
    whole screen. None after the deadline, or where there will be too few nodes.
    """
    helpers = _helpers(night) if 0 < len(rest) < night.least else []
    groups = {**open_}
    if rest and len(rest) + len(helpers) >= night.least:
        groups[night.directory] = Open(rest, set())
    started, quiet, helping = set[str](), time.monotonic(), set[str]()
    late = time.time() > night.deadline or not groups
    while not late:
        asked = time.monotonic()
        queued = held.queued()
        took = time.monotonic() - asked
        running = {node: job for node, job in queued.items() if job.phase is Phase.RUNS}
        if not started >= running.keys():
            started, quiet = started.union(running), time.monotonic()
        late = time.time() > night.deadline
        settled = late or time.monotonic() - quiet > QUIET_S
        for path, one in groups.items():
            beside = one.nodes | (helping if path == night.directory else set())
            there = {node: job for node, job in running.items() if node in beside}
            waits = one.nodes & queued.keys() - running.keys()
            enough = len(there) >= night.least and (one.needed or one.nodes) & there.keys()
            if enough and (late or (one.needed <= there.keys() and (settled or not waits))):
                return path, there
        if helpers and not helping and rest & running.keys():
            helping = {*[node for node in helpers if node not in queued][: 2 * night.least]}
            held.ask(helping)
        # A job that waited for half of its time is ended, and the node asked for anew.
        soon = time.time() + night.each.time_s / 2
        stale = [node for node, job in running.items() if job.ends_at < soon]
        held.give_back(stale)
        held.ask(stale)
        pause = pause_s(time.monotonic() - quiet, took)
        time.sleep(max(0.0, min(pause, night.deadline - time.time())))
    return None


def _helpers(night: Night) -> list[str]:
    """Return the nodes without a sign of slowness that are not out of use, idle ones first."""
    if not plan.batches(night.directory):
        return []
    seen = states(night.each.partition)
    fit = {nodes_of(one.node)[0] for one in stored(night.directory).having("no sign")}
    several = [node for node in fit if not is_out(seen.get(node, "down"))]
    return sorted(several, key=lambda node: (seen[node] != "idle", node))
