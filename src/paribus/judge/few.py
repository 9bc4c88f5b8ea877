"""Studies of few launches (stats/few.py): which they are, and what their looks say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus.core import Comparison, Direction, State, Verdict
from paribus.judge.evidence import Cell, Evidence
from paribus.plan import Plan, looks_of, plan
from paribus.stats import few
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.verdict import judge

EXPENSIVE_S = 120.0
"""Seconds of a warm-up launch beyond which few launches are worth another design."""

Logs = tuple[Mapping[int, float], Mapping[int, float]]
"""Logs of the reference's and of the arm's launches by block."""


def chosen(frozen: Plan, evidence: Evidence) -> Plan:
    """Return the plan that a study follows: of few launches where the plan left that open and a
    warm-up launch took over EXPENSIVE_S.

    The same for the same stored warm-up, so nothing is to be kept; its digest is that of the plan.
    """
    settings = frozen.study.settings
    if settings.design != "auto":
        return frozen
    warm = [
        entry
        for label in frozen.metrics
        for entry in evidence.blocks.get(label, {}).get(0, {}).values()
    ]
    expensive = any(one.state is State.OK and one.wall_s > EXPENSIVE_S for one in warm)
    return as_few(frozen) if expensive else frozen


def as_few(frozen: Plan) -> Plan:
    """Return `frozen` with the looks and the order of the design of few launches."""
    settings = replace(frozen.study.settings, design="few")
    study = replace(frozen.study, settings=settings)
    launches = tuple(plan(study, frozen.even))
    return replace(frozen, study=study, looks=looks_of(study), launches=launches)


def pooled_logs(
    evidence: Evidence, label: str, arms: tuple[str, str], better: Direction, cells: Sequence[Cell]
) -> Logs:
    """Return the mean log over `cells` of the launches of both `arms`, by complete block.

    A launch that the time limit cut off is infinitely slow.
    """
    complete = evidence.complete(label, arms)
    slow = math.inf if better == "lower" else -math.inf
    found = []
    for arm in arms:
        cut = dict.fromkeys(evidence.cut_off(label, arm), slow)
        series = []
        for cell in cells:
            logs = {b: math.log(value) for b, value in evidence.series(label, arm, cell).items()}
            logs |= cut
            series.append({block: logs[block] for block in complete if block in logs})
        found.append(headline_log_ratios(series))
    return found[0], found[1]


def layer_logs(
    frozen: Plan, evidence: Evidence, labels: Sequence[str], arms: tuple[str, str]
) -> Logs:
    """Return the mean log over benchmarks of the launches of both `arms`, as times."""
    each: tuple[list[Mapping[int, float]], list[Mapping[int, float]]] = ([], [])
    for label in labels:
        metric = frozen.metrics[label][0]
        sign = 1 if metric.better == "lower" else -1
        cells = evidence.cells_of(label, metric.name)
        for side, logs in zip(
            each, pooled_logs(evidence, label, arms, metric.better, cells), strict=True
        ):
            side.append({block: sign * log for block, log in logs.items()})
    return headline_log_ratios(each[0]), headline_log_ratios(each[1])


def weigh(frozen: Plan, logs: Logs, blocks: Sequence[int]) -> few.Weighed:
    """Return what a look at `blocks` says."""
    # A start of another length, as in plans frozen before, has no levels: it is judged by pairs.
    start = sum(map(frozen.shuffled, blocks)) if frozen.looks.at[0] == few.START else 0
    ours, theirs = ([of[block] for block in blocks] for of in logs)
    return few.weigh(ours, theirs, start, frozen.looks.at[-1])


def verdict(
    looks: Sequence[few.Weighed],
    *,
    better: Direction,
    margin: float,
    last: bool,
    needed: int | None,
    size_known: bool,
) -> tuple[Verdict, Comparison]:
    """Return what the latest of `looks` says after the others, and its interval."""
    now = looks[-1]
    ends, settled = few.interval(looks, last=last)
    delta, estimate = math.log1p(margin), now.estimate
    beyond = ends[0] > delta or ends[1] < -delta
    if settled and not beyond and -delta < settled[0] and settled[1] < delta:
        ends, estimate = settled, min(max(estimate, settled[0]), settled[1])
    comparison = _comparison(now, estimate, ends)
    judged = judge(
        comparison,
        better=better,
        margin=margin,
        last=last,
        needed=needed,
        size_known=size_known,
        share=few.SIZE_SHARE,
        large_only=now.blocks < few.LARGE_UNTIL and not last,
    )
    if now.uneven:
        judged = replace(judged, figures={**judged.figures, "uneven": now.uneven})
    return judged, comparison


def interval_now(now: few.Weighed) -> Comparison:
    """Return the interval of blocks that are between two looks."""
    return _comparison(now, now.estimate, few.interval([now], last=False)[0])


def _comparison(now: few.Weighed, estimate: float, ends: few.Ends) -> Comparison:
    low, high = (_exp(end) for end in ends)
    return Comparison(now.blocks, _exp(estimate), low, high, now.level)


def _exp(log: float) -> float:
    return math.inf if log > 700 else math.exp(log)
