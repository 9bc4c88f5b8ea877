"""One question over weeks: the effect of each study, when it changed, and what changed with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from paribus.core import Comparison, Difference, Finding, Metric, UserError, usable
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import pooled_ratios
from paribus.logs.change import Measured
from paribus.logs.logs import arms_of
from paribus.logs.stages import Stage, stages, step
from paribus.logs.studies import are_studies, check_apart, differences, in_both, read

ERROR = 0.05
"""The share of histories without a change in which ever one is dated, over all benchmarks."""


@dataclass(frozen=True, slots=True)
class Day:
    """A study of the history: its name, where it is, when it began, in seconds of the epoch."""

    name: str
    directory: str
    started: float


@dataclass(frozen=True, slots=True)
class Dated:
    """A change: the last study `before` it, the first `since`, and the one that `noticed` it.

    `comparison` is the ratio of the effects since and before, by studies; `facts` changed between
    the two studies, beside it.
    """

    before: Day
    since: Day
    noticed: Day
    comparison: Comparison
    facts: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One arm in one benchmark over time: the effect in each study, its levels, its changes.

    A level is the ratio that holds from a place of `effects` to another. `left` are studies without
    an effect, each with the word of its verdict.
    """

    benchmark: str
    arm: str
    metric: Metric
    margin: float
    effects: tuple[tuple[Day, Comparison], ...]
    levels: tuple[tuple[int, int, float], ...]
    changes: tuple[Dated, ...]
    left: tuple[tuple[Day, str], ...]


@dataclass(frozen=True, slots=True)
class History:
    """Studies of one question, the oldest first, and a line for each benchmark and arm."""

    question: str
    factor: str
    reference: str
    days: tuple[Day, ...]
    lines: tuple[Line, ...]


def history(paths: Sequence[Path]) -> History:
    """Return the history of study directories, in whatever order these are.

    Raises UserError for what is no study, a copy, and a study that asks something else.
    """
    if len(paths) < 2 or not are_studies(paths):
        fix = "give the directories that `paribus run` made, two or more"
        raise UserError("a history is of studies", place=str(paths[0]), fix=fix)
    names = arms_of(paths)
    light = [_light(read(name, path)) for name, path in zip(names, paths, strict=True)]
    several = sorted((one for one, _ in light if _began(one)), key=_began)
    series = {id(one): of for one, of in light}
    if not several:
        raise UserError("no study has a launch", place=str(paths[0]), fix="run them first")
    first = several[0]
    for n, other in enumerate(several[1:], 1):
        for earlier in several[:n]:
            check_apart(earlier, other)
        in_both(first, other)
    days = [Day(one.name, one.judgement.directory, _began(one)) for one in several]
    heads = first.judgement.headlines
    every = [(one, day, series[id(one)]) for one, day in zip(several, days, strict=True)]
    lines = tuple(_line(head, every, ERROR / len(heads)) for head in heads)
    study = first.plan.study
    return History(study.question, study.factor, first.judgement.reference, tuple(days), lines)


Series = dict[tuple[str, str], list[float]]
"""The log ratios of blocks, by benchmark and arm."""


def _began(one: Measured) -> float:
    return one.judgement.started or 0.0


def _light(one: Measured) -> tuple[Measured, Series]:
    """Return a study without its launches, and what these say of each headline."""
    reference, found = one.judgement.reference, {}
    for head in one.judgement.headlines:
        ratios = pooled_ratios(one.evidence, head.benchmark, reference, head.arm, head.metric)
        found[head.benchmark, head.arm] = list(ratios.values())
    judgement = replace(one.judgement, figures=(), points=(), voided=(), cases=())
    return replace(one, evidence=Evidence(one.plan.metrics), judgement=judgement), found


def _line(head: Finding, every: Sequence[tuple[Measured, Day, Series]], error: float) -> Line:
    """Return the line of a headline, whose share of the error of all is `error`."""
    key = (head.benchmark, head.arm)
    known: list[tuple[Measured, Day, Comparison, list[float]]] = []
    left = []
    for study, day, series in every:
        mine = next((f for f in study.judgement.headlines if (f.benchmark, f.arm) == key), None)
        said = usable(mine) if mine else None
        if mine and said and mine.metric == head.metric:
            known.append((study, day, said, series[key]))
        else:
            left.append((day, mine.verdict.word.value if mine else "not measured"))
    logs = [math.log(said.ratio) for _, _, said, _ in known]
    found = stages([of for *_, of in known], logs, error) if known else ()
    return Line(
        head.benchmark,
        head.arm,
        head.metric,
        head.margin,
        tuple((day, said) for _, day, said, _ in known),
        tuple((one.first, one.last, math.exp(one.mean)) for one in found),
        tuple(
            _dated(head.arm, [(one, day) for one, day, *_ in known], logs, pair)
            for pair in pairwise(found)
        ),
        tuple(left),
    )


def _dated(
    arm: str,
    known: Sequence[tuple[Measured, Day]],
    logs: Sequence[float],
    pair: tuple[Stage, Stage],
) -> Dated:
    before, since = pair
    earlier, later = logs[before.first : since.first], logs[since.first : since.last + 1]
    ratio, low, high = (math.exp(one) for one in step(earlier, later, 1 - ERROR))
    (old, then), (new, now) = known[before.last], known[since.first]
    reference = old.judgement.reference
    facts, _ = differences(old, new, [(reference, reference), (arm, arm)])
    comparison = Comparison(min(len(earlier), len(later)), ratio, low, high, 1 - ERROR)
    noticed = known[before.noticed or since.first][1]
    return Dated(then, now, noticed, comparison, tuple(f for f in facts if f.kind != "unknown"))
