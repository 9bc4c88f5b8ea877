"""Judge launches that nothing pairs: ratios of medians, and intervals where there are enough.

In go the figures of two arms' launches (`Arrangement`), say 10 values of each; out comes a
`Judgement` in which each comparison has the interval of shift.py. With fewer than LEAST_LAUNCHES
there is a ratio without a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Metric,
    Notice,
    NoticeName,
    Reason,
    Spread,
    Study,
    Verdict,
    Word,
)
from paribus.judge.notices import stands, two_states
from paribus.logs.shift import LEAST_LAUNCHES, levels, shift, word_p
from paribus.logs.tables.launches import Arrangement, Cell, Group
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median, spread
from paribus.stats.ties import fine, ties
from paribus.stats.verdict import case_margin, headline_margin, judge

MOST_RATIOS = 10_000
"""Pairs of launches, about, whose ratios show whether figures are too coarse."""

Both = tuple[Sequence[float], Sequence[float]]
"""Values of the launches of the reference, and of the arm."""

Steps = dict[str, float]
"""By what the values of a case are too coarse for its verdict; empty if they are not.

`quantum` is the relative step between them, and `share` that of the pairs of launches whose log
ratio is within half of it of the median of all (stats/ties.py).
"""


def unpaired(
    found: Arrangement,
    study: Study,
    metrics: Mapping[str, tuple[Metric, ...]],
    directory: str,
    error: float,
) -> Judgement:
    """Return the judgement of launches without blocks.

    Each comparison of two arms with LEAST_LAUNCHES or more launches has an interval that misses the
    truth in at most a share `error`; the others have the ratio of medians alone, and no verdict.
    """
    heads, others, cases = [], [], []
    for group in found.groups:
        of = metrics[group.benchmark]
        for arm in found.arms[1:]:
            rows = [_ratio(group, cell, found.arms[0], arm, of, study) for cell in group.figures]
            head, *rest = (
                _headline(mine)
                for metric in of
                if (mine := [row for row in rows if row.metric.name == metric.name])
            )
            counts = [
                max(len(of_arms[name]) for of_arms in group.figures.values())
                for name in (found.arms[0], arm)
            ]
            if min(counts) >= LEAST_LAUNCHES:
                rows, coarse = _cases(group, rows, (found.arms[0], arm), error)
                head, *rest = _headlines(group, [head, *rest], coarse, found.arms[0], error)
            cases += rows
            heads.append(head)
            others += [replace(one, decides=False) for one in rest]
    return Judgement(
        study=study,
        plan_sha256="",
        directory=directory,
        sentence="",
        complete=True,
        headlines=tuple(heads),
        others=tuple(others),
        cases=tuple(cases),
        tallies=(),
        points=(),
        differences=(),
        facts={},
        equal_facts=0,
        notices=tuple(_notices(found, metrics)),
        level=1 - error,
    )


def _notices(found: Arrangement, metrics: Mapping[str, Sequence[Metric]]) -> Iterator[Notice]:
    """Yield notices on launches in two states, and on those far from all others."""
    levels: dict[str, dict[str, dict[int, float]]] = {}
    far: list[_Far] = []
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
                _Far(group.benchmark, arm, _name(names[i], arm, i), values[i])
                for i in outlying(values)
            ]
    yield from two_states(levels, paired=False)
    if far:
        labels = tuple(dict.fromkeys(one.benchmark for one in far))
        one = far[0]
        times = one.value / launch_median([*levels[one.benchmark][one.arm].values()])
        first = {"number": 0, "benchmark": one.benchmark, "arm": one.arm, "block": 0}
        first |= {"outlying": times, "disturbed": ()}
        figures = {"numbers": [], "logs": [one.name for one in far], "first": first}
        yield Notice(NoticeName.OUTLYING_LAUNCHES, "note", labels, figures)


class _Far(NamedTuple):
    """A launch whose figure of merit, `value`, is far from those of all others of its arm."""

    benchmark: str
    arm: str
    name: str
    value: float


def _name(launch: Any, arm: str, place: int) -> str:
    """Return the name of a launch, such as "old: run3.log", or else its place in its arm."""
    named = isinstance(launch, tuple) and isinstance(launch[-1], str)
    return launch[-1] if named else f"{arm}, value {place + 1}"


# --- intervals -------------------------------------------------------------------------------


def _cases(
    group: Group, rows: Sequence[Finding], arms: tuple[str, str], error: float
) -> tuple[list[Finding], dict[str, list[Steps]]]:
    """Return the cases of one arm with intervals and verdicts, and by metric the steps of each."""
    values: list[Both] = [
        ([*of_arms[arms[0]].values()], [*of_arms[arms[1]].values()])
        for of_arms in group.figures.values()
    ]
    p = [word_p(*both, margin=row.margin) for row, both in zip(rows, values, strict=True)]
    found: list[Finding] = []
    coarse: dict[str, list[Steps]] = {}
    for row, both, level in zip(rows, values, levels(p, error), strict=True):
        case, steps = _case(row, both, level, error, len(rows))
        found.append(case)
        coarse.setdefault(case.metric.name, []).append(steps)
    return found, coarse


def _headlines(
    group: Group,
    heads: Sequence[Finding],
    coarse: Mapping[str, Sequence[Steps]],
    reference: str,
    error: float,
) -> list[Finding]:
    """Return the headlines of the metrics of one arm with their intervals and verdicts.

    The first decides; the verdicts of the others are corrected for the number of all of them. If
    half of the cases of a metric are too coarse, so is its headline.
    """
    judged: list[tuple[Finding, Both]] = []
    for head in heads:
        cells = [cell for cell in group.figures if cell[0] == head.metric.name]
        theirs, mine = (
            list(_means([group.figures[cell][arm] for cell in cells]).values())
            for arm in (reference, head.arm)
        )
        # Of a table some launches may lack some cells.
        if min(len(theirs), len(mine)) >= LEAST_LAUNCHES:
            judged.append((head, (theirs, mine)))
        elif head is heads[0]:
            whole = {reference: len(theirs), head.arm: len(mine)}
            return [replace(one, verdict=_too_few(whole)) for one in heads]
    p = [word_p(*both, margin=head.margin) for head, both in judged]
    found = []
    for (head, both), level in zip(judged, [1 - error, *levels(p, error)[1:]], strict=True):
        one = _supported(head, both, level, error, {"figures": len(judged)})
        of_cases = coarse[head.metric.name]
        too = [steps for steps in of_cases if steps]
        if 2 * len(too) >= len(of_cases):
            figures = {**too[0], "coarse": len(too), "cases": len(of_cases)}
            one = replace(one, verdict=_withheld(figures))
        found.append(one)
    return found


def _supported(
    finding: Finding, both: Both, level: float | None, error: float, family: Mapping[str, int]
) -> Finding:
    """Return a finding with its interval at `level`, and the verdict that follows.

    None is the level where its family of cases supports no verdict: then it is undecided.
    """
    found = _with(finding, shift(*both, level=level or 1 - error))
    verdict = found.verdict
    if level is not None or verdict.word is Word.UNDECIDED:
        return found
    figures = {**verdict.figures, "otherwise": verdict.code, **family}
    code = Reason.NOT_SUPPORTED_AMONG_CASES
    return replace(found, verdict=Verdict(Word.UNDECIDED, code, final=True, figures=figures))


def _case(
    row: Finding, both: Both, level: float | None, error: float, cases: int
) -> tuple[Finding, Steps]:
    """Return a case with its verdict, and by what its values are too coarse for it."""
    found = _supported(row, both, level, error, {"cases": cases})
    values = [value for side in both for value in side]
    if fine(values, row.margin):
        return found, {}
    theirs, mine = ([*map(math.log, side)] for side in both)
    most = MOST_RATIOS // len(theirs) + 1
    ratios = [one - other for one in mine[:most] for other in theirs]
    tied = ties(ratios, row.margin, values)
    if not tied.too_coarse or stands(found, tied.quantum):
        return found, {}
    steps = {"share": tied.share, "quantum": tied.quantum}
    return replace(found, verdict=_withheld(steps)), steps


def _with(finding: Finding, comparison: Comparison) -> Finding:
    """Return a finding with a comparison, and the verdict that follows from it."""
    verdict = judge(
        comparison, better=finding.metric.better, margin=finding.margin, last=True, needed=None
    )
    return replace(finding, comparison=comparison, verdict=verdict)


def _too_few(launches: Mapping[str, int]) -> Verdict:
    figures = {"launches": launches, "fewest": LEAST_LAUNCHES, "source": "table"}
    figures |= {"zones_unknown": False}
    return Verdict(Word.WITHHELD, Reason.TOO_FEW_LAUNCHES, final=True, figures=figures)


def _withheld(figures: Mapping[str, float]) -> Verdict:
    return Verdict(Word.WITHHELD, Reason.TOO_COARSE, final=True, figures=figures)


def _means(cells: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """Return, by launch, the geometric mean over cases, of launches that have all of them."""
    whole = set(cells[0]).intersection(*cells[1:])
    return {one: geometric_mean([cell[one] for cell in cells]) for one in cells[0] if one in whole}


# --- ratios ----------------------------------------------------------------------------------


def _ratio(
    group: Group, cell: Cell, reference: str, arm: str, metrics: Sequence[Metric], study: Study
) -> Finding:
    """Return the ratio of medians of one cell, without a verdict."""
    metric = next(m for m in metrics if m.name == cell[0])
    theirs, mine = (spread([*group.figures[cell][name].values()]) for name in (reference, arm))
    launches = {reference: theirs.launches, arm: mine.launches}
    return Finding(
        benchmark=group.benchmark,
        arm=arm,
        metric=metric,
        case=cell[1],
        margin=study.settings.margin or case_margin(metric, theirs.median),
        comparison=_without_interval(mine.median / theirs.median),
        verdict=_too_few(launches),
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
