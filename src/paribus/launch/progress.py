"""How far a study has come and how long it will take, shown before each launch; a steady clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus.audit.gate import GATE
from paribus.core import Finding, Launch, Outcome, Progress, State
from paribus.judge.evidence import Entry, Evidence
from paribus.judge.notices import STEP
from paribus.plan import Plan
from paribus.stats.forecast import Standing, forecast

LEAST_S = 1.0
"""A step of the clock by so many seconds was a setting: time daemons slew by less."""


class Clock:
    """Seconds since the epoch, read once and counted on by a clock that nobody can set.

    That is CLOCK_BOOTTIME, which goes on while the machine is suspended.
    """

    def __init__(self) -> None:
        self._wall, self._boot = time.time(), _boot_s()
        self._ahead = 0.0  # seconds by which the time of day was ahead of `now` at the last step()

    def now(self) -> float:
        """Return the time of day, as if nobody had set the clock since this was made."""
        return self._wall + _boot_s() - self._boot

    def step(self) -> float:
        """Return by how many seconds the time of day was set since the last call, 0 if it was not.

        Less than LEAST_S, as time daemons slew it, is no step.
        """
        ahead = time.time() - self.now()
        step, self._ahead = ahead - self._ahead, ahead
        return step if abs(step) >= LEAST_S else 0.0


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def with_step(outcome: Outcome, before_s: float, meanwhile_s: float) -> Outcome:
    """Return `outcome` with the seconds by which the clock was set before and during the launch.

    A program may take its times from that clock, so a launch during which it was set is disturbed.
    """
    if not before_s and not meanwhile_s:
        return outcome
    facts = {**outcome.facts, STEP: before_s + meanwhile_s}
    if meanwhile_s:
        reasons = [*facts.get(GATE, ()), f"the clock was set by {meanwhile_s:+.0f} s"]
        facts = {**facts, GATE: reasons}
    return replace(outcome, facts=facts)


def progress(
    plan: Plan,
    evidence: Evidence,
    launch: Launch | None,
    *,
    undecided: Sequence[str],
    findings: Mapping[str, tuple[Finding, ...]],
    elapsed_s: float,
    launches_s: float,
) -> Progress:
    """Return the progress of a study before `launch` (None: at its end).

    `undecided` are the benchmarks that will be launched further, `launches_s` the seconds that
    launches have taken so far.
    """
    settings = plan.study.settings
    arms = [arm.name for arm in plan.study.arms]
    entries = {label: evidence.entries(label) for label in plan.metrics}
    done = sum(map(len, entries.values()))
    attempts = [*evidence.voided, *(one for several in entries.values() for one in several)]
    blocks = settings.blocks if plan.session else settings.blocks + 1
    most = {label: blocks * _launches_per_block(plan, label) for label in plan.metrics}
    blocks_done = {label: len(evidence.complete(label, arms)) for label in plan.metrics}
    left_s = look_s = None
    look = _next_look(plan, [blocks_done[label] for label in undecided])
    if done and plan.design.has_end:
        standings = _standings(plan, undecided, findings, entries, blocks_done)
        left_s = forecast(standings, plan.looks.at)
        look_s = forecast(standings, (look,)) if look else None
    if left_s is not None and settings.budget_s is not None:
        left_s = min(left_s, max(0.0, settings.budget_s - launches_s))
    return Progress(
        launch=launch,
        blocks_done=blocks_done,
        blocks_most=settings.blocks,
        launches_done=done,
        launches_most=done + sum(max(0, most[label] - len(entries[label])) for label in undecided),
        elapsed_s=elapsed_s,
        left_s=left_s,
        headlines=tuple(finding for label in plan.metrics for finding in findings[label]),
        failures=sum(one.state is not State.OK for one in attempts),
        look=look,
        look_s=look_s,
    )


def _next_look(plan: Plan, done: Sequence[int]) -> int:
    """Return the block of the next look, `done` being blocks of each benchmark; 0 without one."""
    return next((at for at in plan.looks.at if at > min(done)), 0) if done else 0


def _launches_per_block(plan: Plan, label: str) -> int:
    """Return the launches of block 1; in a study that explains, other blocks differ a little."""
    each = plan.session + 1 if plan.session else 1
    return each * len(plan.design.holds(label, 1))


def _standings(
    plan: Plan,
    undecided: Sequence[str],
    findings: Mapping[str, tuple[Finding, ...]],
    entries: Mapping[str, Sequence[Entry]],
    blocks_done: Mapping[str, int],
) -> dict[str, Standing]:
    """Return the state of each benchmark for a forecast: blocks done, needed, and their length."""
    all_walls = [entry.wall_s for several in entries.values() for entry in several]
    at_once = len(plan.study.arms) if plan.design.at_once else 1
    standings = {}
    for label in plan.metrics:
        walls = [entry.wall_s for entry in entries[label]] or all_walls
        needed = [f.verdict.blocks_needed for f in findings[label] if not f.verdict.final]
        known = [blocks for blocks in needed if blocks is not None]
        standings[label] = Standing(
            done=blocks_done[label],
            block_s=sum(walls) / len(walls) * _launches_per_block(plan, label) / at_once,
            needed=max(known) if known and len(known) == len(needed) else None,
            decided=label not in undecided,
        )
    return standings
