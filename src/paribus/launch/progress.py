"""How far a study has come, and how long it will take: told before each launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import Finding, Launch, Progress, State
from paribus.judge.evidence import Entry, Evidence
from paribus.plan import Plan
from paribus.stats.forecast import Standing, forecast


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
    every = [one for several in (evidence.voided, *entries.values()) for one in several]
    blocks = settings.blocks if plan.session else settings.blocks + 1
    most = {label: blocks * _launches_per_block(plan, label) for label in plan.metrics}
    left_s = _left_s(plan, evidence, undecided, findings, entries) if done else None
    if left_s is not None and settings.budget_s is not None:
        left_s = min(left_s, max(0.0, settings.budget_s - launches_s))
    return Progress(
        launch=launch,
        blocks_done={label: len(evidence.complete(label, arms)) for label in plan.metrics},
        blocks_most=settings.blocks,
        launches_done=done,
        launches_most=done + sum(max(0, most[label] - len(entries[label])) for label in undecided),
        elapsed_s=elapsed_s,
        left_s=left_s,
        headlines=tuple(finding for label in plan.metrics for finding in findings[label]),
        failures=sum(one.state is not State.OK for one in every),
    )


def _launches_per_block(plan: Plan, label: str) -> int:
    """Return the launches of a block; those of a study that explains may differ a little."""
    each = plan.session + 1 if plan.session else 1
    return each * len(plan.design.holds(label, 1))


def _left_s(
    plan: Plan,
    evidence: Evidence,
    undecided: Sequence[str],
    findings: Mapping[str, tuple[Finding, ...]],
    entries: Mapping[str, Sequence[Entry]],
) -> float | None:
    """Return the seconds left as the headlines plan it; None for a study without end."""
    design = plan.design
    if not design.has_end:
        return None
    every = [entry.wall_s for several in entries.values() for entry in several]
    arms = [arm.name for arm in plan.study.arms]
    at_once = len(arms) if design.at_once else 1
    standings = {}
    for label in plan.metrics:
        walls = [entry.wall_s for entry in entries[label]] or every
        needed = [f.verdict.blocks_needed for f in findings[label] if not f.verdict.final]
        known = [blocks for blocks in needed if blocks is not None]
        standings[label] = Standing(
            done=len(evidence.complete(label, arms)),
            block_s=sum(walls) / len(walls) * _launches_per_block(plan, label) / at_once,
            needed=max(known) if known and len(known) == len(needed) else None,
            decided=label not in undecided,
        )
    return forecast(standings, plan.looks.at)
