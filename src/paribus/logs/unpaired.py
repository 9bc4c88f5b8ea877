"""Judge launches that nothing pairs: ratios of medians, and intervals where there are enough.

In go the figures of two arms' launches (`Arrangement`), say 10 values of each; out comes a
`Judgement` in which each comparison has the interval of shift.py. With fewer than LEAST_LAUNCHES
there is a ratio without a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from paribus.logs.tables.launches import Arrangement, Group
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median, spread
from paribus.stats.ties import fine, ties
from paribus.stats.verdict import case_margin, headline_margin, judge

MOST_RATIOS = 10_000
"""Pairs of launches, about, whose ratios show whether figures are too coarse."""

Both = tuple[Sequence[float], Sequence[float]]
"""Values of the launches of the reference, and of the arm."""

Valued = tuple[Finding, Both]
"""A finding, and the values that it rests on."""

Steps = dict[str, float]
"""By what the values of a case are too coarse for its verdict; empty if they are not.

`quantum` is the relative step between them, and `share` that of the pairs of launches whose log
ratio is within half of it of the median of all (stats/ties.py).
"""


def unpaired(
    found: Arrangement, study: Study, metrics: Mapping[str, tuple[Metric, ...]], error: float
) -> Judgement:
    """Return the judgement of launches without blocks.

    Each comparison of two arms with LEAST_LAUNCHES or more launches has an interval that misses the
    truth in at most a share `error`; the others have the ratio of medians alone, and no verdict.
    """
    heads: list[Finding] = []
    others: list[Finding] = []
    cases: list[Finding] = []
    for group in found.groups:
        for arm in found.arms[1:]:
            arms = (found.arms[0], arm)
            rows = _ratios(group, arms, metrics[group.benchmark], study)
            several = [
                _headline(group, metric, arms, [row for row, _ in rows if row.metric == metric])
                for metric in metrics[group.benchmark]
                if any(row.metric == metric for row, _ in rows)
            ]
            judged = [row for row, _ in rows]
            findings = [head for head, _ in several]
            if min(group.launches(arms)) >= LEAST_LAUNCHES:
                judged, coarse = _cases(rows, error)
                findings = _headlines(several, arms, coarse, error)
            cases += judged
            heads.append(findings[0])
            others += [replace(one, decides=False) for one in findings[1:]]
    return Judgement(
        study=study,
        plan_sha256="",
        directory="",
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
    far: list[tuple[str, str, str, float]] = []  # benchmark, arm, name and times the usual
    number = 0
    for group in found.groups:
        merit = [cell for cell in group.figures if cell[0] == metrics[group.benchmark][0].name]
        of_arms = levels[group.benchmark] = {}
        for arm in found.arms:
            means = _means([group.figures[cell][arm] for cell in merit])
            names, values = list(means), list(means.values())
            of_arms[arm] = dict(enumerate(values, start=number))
            number += len(values)
            for at in outlying(values):
                times = values[at] / launch_median(values)
                far.append((group.benchmark, arm, _name(names[at], arm, at), times))
    yield from two_states(levels, paired=False)
    if far:
        benchmark, arm, _, times = far[0]
        first = {"number": 0, "benchmark": benchmark, "arm": arm, "block": 0}
        first |= {"outlying": times, "disturbed": ()}
        figures = {"numbers": [], "logs": [name for *_, name, _ in far], "first": first}
        labels = tuple(dict.fromkeys(label for label, *_ in far))
        yield Notice(NoticeName.OUTLYING_LAUNCHES, "note", labels, figures)


def _name(launch: Any, arm: str, place: int) -> str:
    """Return the name of a launch, such as "old: run3.log", or else its place in its arm."""
    return launch if isinstance(launch, str) else f"{arm}, value {place + 1}"


# --- ratios ----------------------------------------------------------------------------------


def _ratios(
    group: Group, arms: tuple[str, str], metrics: Sequence[Metric], study: Study
) -> list[Valued]:
    """Return the ratio of medians of each cell, without a verdict, and the values."""
    known = {metric.name: metric for metric in metrics}
    found: list[Valued] = []
    for (name, case), of_arms in group.figures.items():
        both = ([*of_arms[arms[0]].values()], [*of_arms[arms[1]].values()])
        theirs, mine = map(spread, both)
        row = Finding(
            benchmark=group.benchmark,
            arm=arms[1],
            metric=known[name],
            case=case,
            margin=study.settings.margin or case_margin(known[name], theirs.median),
            comparison=_without_interval(mine.median / theirs.median),
            verdict=_too_few(arms, both),
            reference_value=theirs,
            arm_value=mine,
        )
        found.append((row, both))
    return found


def _headline(
    group: Group, metric: Metric, arms: tuple[str, str], rows: Sequence[Finding]
) -> Valued:
    """Return the geometric mean over the cases of a metric, and the means of whole launches."""
    cells = [of_arms for cell, of_arms in group.figures.items() if cell[0] == metric.name]
    theirs, mine = ([*_means([of[arm] for of in cells]).values()] for arm in arms)
    ratio = geometric_mean([row.comparison.ratio for row in rows if row.comparison])
    head = replace(
        rows[0],
        case=None,
        margin=headline_margin([row.margin for row in rows]),
        comparison=_without_interval(ratio),
        reference_value=_mean_spread(row.reference_value for row in rows),
        arm_value=_mean_spread(row.arm_value for row in rows),
    )
    return head, (theirs, mine)


def _mean_spread(of_rows: Iterable[Spread | None]) -> Spread:
    several = [one for one in of_rows if one]
    return Spread(
        min(one.launches for one in several),
        geometric_mean(one.median for one in several),
        geometric_mean(one.low for one in several),
        geometric_mean(one.high for one in several),
    )


def _means(cells: Sequence[Mapping[Any, float]]) -> dict[Any, float]:
    """Return, by launch, the geometric mean over cases, of launches that have all of them."""
    whole = set(cells[0]).intersection(*cells[1:])
    return {one: geometric_mean([cell[one] for cell in cells]) for one in cells[0] if one in whole}


def _without_interval(ratio: float) -> Comparison:
    return Comparison(blocks=0, ratio=ratio, low=0.0, high=float("inf"), level=0.95)


def _too_few(arms: Sequence[str], both: Both) -> Verdict:
    launches = dict(zip(arms, map(len, both), strict=True))
    figures = {"launches": launches, "fewest": LEAST_LAUNCHES}
    return Verdict(Word.WITHHELD, Reason.TOO_FEW_LAUNCHES, final=True, figures=figures)


# --- intervals -------------------------------------------------------------------------------


def _cases(rows: Sequence[Valued], error: float) -> tuple[list[Finding], dict[str, list[Steps]]]:
    """Return the cases of one arm with intervals and verdicts, and by metric the steps of each."""
    p = [word_p(*both, margin=row.margin) for row, both in rows]
    found: list[Finding] = []
    coarse: dict[str, list[Steps]] = {}
    for (row, both), level in zip(rows, levels(p, error), strict=True):
        case = _supported(row, both, level, error, {"cases": len(rows)})
        if steps := _steps(case, both):
            case = replace(case, verdict=_withheld(steps))
        found.append(case)
        coarse.setdefault(case.metric.name, []).append(steps)
    return found, coarse


def _headlines(
    heads: Sequence[Valued],
    arms: Sequence[str],
    coarse: Mapping[str, Sequence[Steps]],
    error: float,
) -> list[Finding]:
    """Return the headlines of the metrics of one arm with their intervals and verdicts.

    The first decides; the verdicts of the others are corrected for the number of all of them. If
    half of the cases of a metric are too coarse, so is its headline.
    """
    # Of a table some launches may lack some cells.
    judged = [(head, both) for head, both in heads if min(map(len, both)) >= LEAST_LAUNCHES]
    first, whole = heads[0]
    if not judged or judged[0][0] is not first:
        too_few = _too_few(arms, whole)
        return [replace(head, verdict=too_few) for head, _ in heads]
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
    comparison = shift(*both, level=level or 1 - error)
    better, margin = finding.metric.better, finding.margin
    verdict = judge(comparison, better=better, margin=margin, last=True, needed=None)
    if level is None and verdict.word is not Word.UNDECIDED:
        figures = {**verdict.figures, "otherwise": verdict.code, **family}
        code = Reason.NOT_SUPPORTED_AMONG_CASES
        verdict = Verdict(Word.UNDECIDED, code, final=True, figures=figures)
    return replace(finding, comparison=comparison, verdict=verdict)


def _steps(case: Finding, both: Both) -> Steps:
    """Return by what the values of a case are too coarse for its verdict."""
    values = [value for side in both for value in side]
    if fine(values, case.margin):
        return {}
    theirs, mine = ([*map(math.log, side)] for side in both)
    most = MOST_RATIOS // len(theirs) + 1
    ratios = [one - other for one in mine[:most] for other in theirs]
    tied = ties(ratios, case.margin, values)
    if not tied.too_coarse or stands(case, tied.quantum):
        return {}
    return {"share": tied.share, "quantum": tied.quantum}


def _withheld(figures: Mapping[str, float]) -> Verdict:
    return Verdict(Word.WITHHELD, Reason.TOO_COARSE, final=True, figures=figures)
