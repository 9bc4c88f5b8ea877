"""The judgement of launches that nothing pairs: ratios, and intervals where there are enough."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paribus.design import Study
from paribus.errors import UserError
from paribus.judge.coarse import stands
from paribus.judge.modes import two_states
from paribus.judgement import Comparison, Finding, Judgement, Notice, Spread, Verdict, Word
from paribus.model import Metric
from paribus.reasons import NoticeName, Reason
from paribus.stats.margin import case_margin, headline_margin
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median, spread
from paribus.stats.ties import ties
from paribus.stats.unpaired import LEAST_LAUNCHES, MOST_DIFFERENCES, levels, shift, word_p
from paribus.stats.verdict import judge
from paribus.tables.launches import Arrangement, Cell, Group

MOST_RATIOS = 10_000
"""Pairs of launches by which figures are found too coarse."""

Both = tuple[Sequence[float], Sequence[float]]
"""Values of the launches of the reference, and of the arm."""


def unpaired(
    found: Arrangement,
    study: Study,
    metrics: Mapping[str, tuple[Metric, ...]],
    directory: str,
    error: float | None,
) -> Judgement:
    """Return the judgement of launches without blocks, each by itself.

    Of two arms with LEAST_LAUNCHES or more each comparison has an interval that misses the truth
    in at most a share `error`; the others, and all if `error` is None, have the ratio of medians
    alone, as undecided. Raises UserError for too many launches.
    """
    heads, cases = [], []
    for group in found.groups:
        merit, *_ = of = metrics[group.benchmark]
        for arm in found.arms[1:]:
            rows = [_ratio(group, cell, found.arms[0], arm, of, study) for cell in group.figures]
            head = _headline([row for row in rows if row.metric.name == merit.name])
            counts = [
                max(len(of_arms[name]) for of_arms in group.figures.values())
                for name in (found.arms[0], arm)
            ]
            if math.prod(counts) > MOST_DIFFERENCES:
                raise UserError(
                    f"has more than {MOST_DIFFERENCES:,} pairs of launches of one benchmark",
                    place=f"{found.arms[0]} and {arm}",
                    fix="give at most 3,000 launches of each arm",
                )
            if error is not None and min(counts) >= LEAST_LAUNCHES:
                rows, head = _judged(group, rows, head, found.arms[0], error)
            cases += rows
            heads.append(head)
    return Judgement(
        study=study,
        plan_sha256="",
        directory=directory,
        sentence="",
        complete=True,
        headlines=tuple(heads),
        cases=tuple(cases),
        tallies=(),
        points=(),
        differences=(),
        facts={},
        equal_facts=0,
        notices=tuple(_notices(found, metrics)),
        level=1 - (error or 1 - study.settings.confidence),
    )


def _notices(found: Arrangement, metrics: Mapping[str, Sequence[Metric]]) -> Iterator[Notice]:
    """Yield what is unusual about launches: two states, and those far from all others."""
    levels: dict[str, dict[str, dict[int, float]]] = {}
    far: list[tuple[str, str, str, float]] = []
    number = 0
    for group in found.groups:
        merit = [cell for cell in group.figures if cell[0] == metrics[group.benchmark][0].name]
        of_arms = levels[group.benchmark] = {}
        for arm in found.arms:
            means = _means([group.figures[cell][arm] for cell in merit])
            names, values = list(means), list(means.values())
            of_arms[arm] = dict(enumerate(values, start=number))
            number += len(values)
            far += [
                (group.benchmark, arm, _name(names[i], arm, i), values[i] / launch_median(values))
                for i in outlying(values)
            ]
    yield from two_states(levels, paired=False)
    if far:
        benchmark, arm, _, times = far[0]
        labels = tuple(dict.fromkeys(label for label, *_ in far))
        first = {"number": 0, "benchmark": benchmark, "arm": arm, "block": 0}
        first |= {"outlying": times, "disturbed": ()}
        figures = {"numbers": [], "logs": [name for _, _, name, _ in far], "first": first}
        yield Notice(NoticeName.OUTLYING_LAUNCHES, "note", labels, figures)


def _name(launch: Any, arm: str, place: int) -> str:
    """Return the name of a launch, such as "old: run3.log"; without one its place in its arm."""
    named = isinstance(launch, tuple) and isinstance(launch[-1], str)
    return launch[-1] if named else f"{arm}, value {place + 1}"


# --- intervals -------------------------------------------------------------------------------


def _judged(
    group: Group, rows: Sequence[Finding], head: Finding, reference: str, error: float
) -> tuple[list[Finding], Finding]:
    """Return cases and headline of one arm with their intervals and words."""
    cells = list(group.figures)
    values: list[Both] = [
        ([*of_arms[reference].values()], [*of_arms[head.arm].values()])
        for of_arms in group.figures.values()
    ]
    p = [word_p(*both, margin=row.margin) for row, both in zip(rows, values, strict=True)]
    found, coarse = [], []
    for row, both, level in zip(rows, values, levels(p, error), strict=True):
        case, steps = _case(row, both, level, error, len(rows))
        found.append(case)
        coarse += [steps] if case.metric.name == head.metric.name else []
    merit = [cell for cell in cells if cell[0] == head.metric.name]
    theirs, mine = (
        list(_means([group.figures[cell][arm] for cell in merit]).values())
        for arm in (reference, head.arm)
    )
    head = _with(head, shift(theirs, mine, 1 - error))
    too = [steps for steps in coarse if steps]
    if 2 * len(too) >= len(coarse):
        figures = {**too[0], "coarse": len(too), "cases": len(coarse)}
        head = replace(head, verdict=_withheld(figures))
    return found, head


def _case(
    row: Finding, both: Both, level: float | None, error: float, cases: int
) -> tuple[Finding, dict[str, float]]:
    """Return a case with its word, and by what its values are too coarse for it, if they are."""
    found = _with(row, shift(*both, level=level or 1 - error))
    verdict = found.verdict
    if level is None and verdict.word is not Word.UNDECIDED:
        figures = {**verdict.figures, "otherwise": verdict.code, "cases": cases}
        code = Reason.NOT_SUPPORTED_AMONG_CASES
        found = replace(found, verdict=Verdict(Word.UNDECIDED, code, final=True, figures=figures))
    theirs, mine = ([*map(math.log, side)] for side in both)
    most = MOST_RATIOS // len(theirs) + 1
    ratios = [one - other for one in mine[:most] for other in theirs]
    step = ties(ratios, row.margin, [value for side in both for value in side])
    if not step.too_coarse or stands(found, step.quantum):
        return found, {}
    steps = {"share": step.share, "quantum": step.quantum}
    return replace(found, verdict=_withheld(steps)), steps


def _with(finding: Finding, comparison: Comparison) -> Finding:
    verdict = judge(
        comparison, better=finding.metric.better, margin=finding.margin, last=True, needed=None
    )
    return replace(finding, comparison=comparison, verdict=verdict)


def _withheld(figures: Mapping[str, float]) -> Verdict:
    return Verdict(Word.WITHHELD, Reason.TOO_COARSE, final=True, figures=figures)


def _means(cells: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """Return the geometric mean over cases of each launch that has all of them."""
    whole = set(cells[0]).intersection(*cells[1:])
    return {one: geometric_mean([cell[one] for cell in cells]) for one in cells[0] if one in whole}


# --- ratios ----------------------------------------------------------------------------------


def _ratio(
    group: Group, cell: Cell, reference: str, arm: str, metrics: Sequence[Metric], study: Study
) -> Finding:
    """Return the ratio of medians of one cell; `judge_table` says why there is no verdict."""
    metric = next(m for m in metrics if m.name == cell[0])
    theirs, mine = (spread([*group.figures[cell][name].values()]) for name in (reference, arm))
    return Finding(
        benchmark=group.benchmark,
        arm=arm,
        metric=metric,
        case=cell[1],
        margin=study.settings.margin or case_margin(metric, theirs.median),
        comparison=_without_interval(mine.median / theirs.median),
        verdict=Verdict(Word.UNDECIDED, Reason.ORDER_UNKNOWN, final=True),
        reference_value=theirs,
        arm_value=mine,
    )


def _headline(rows: Sequence[Finding]) -> Finding:
    """Return the geometric mean over the cases of a figure of merit."""
    references = [row.reference_value for row in rows if row.reference_value]
    arms = [row.arm_value for row in rows if row.arm_value]
    ratio = geometric_mean([row.comparison.ratio for row in rows if row.comparison])
    return replace(
        rows[0],
        case=None,
        margin=headline_margin([row.margin for row in rows]),
        comparison=_without_interval(ratio),
        reference_value=_mean_spread(references),
        arm_value=_mean_spread(arms),
    )


def _mean_spread(spreads: Sequence[Spread]) -> Spread:
    return Spread(
        min(one.launches for one in spreads),
        geometric_mean(one.median for one in spreads),
        geometric_mean(one.low for one in spreads),
        geometric_mean(one.high for one in spreads),
    )


def _without_interval(ratio: float) -> Comparison:
    return Comparison(blocks=0, ratio=ratio, low=0.0, high=float("inf"), level=0.95)
