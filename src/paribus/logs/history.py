"""One question over weeks: the effect in each study, when it changed, and what changed with it.

In go study directories; out comes a `History` with a `Line` for each benchmark and arm, whose
changes stages.py finds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from paribus.core import Comparison, Difference, Finding, Metric, UserError, usable
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import pooled_ratios
from paribus.logs.change import Measured
from paribus.logs.logs import arms_of
from paribus.logs.stages import Stage, stages, step
from paribus.logs.studies import are_studies, check_apart, differences, in_both, read

ERROR = 0.05
"""The share of histories without a change in which one is ever dated, over all benchmarks."""


@dataclass(frozen=True, slots=True)
class Day:
    """A study of the history: its name, where it is, when it began, in seconds since the epoch."""

    name: str
    directory: str
    started: float


@dataclass(frozen=True, slots=True)
class Dated:
    """A change: the last study `before` it, the first `since`, and the one that `noticed` it.

    `comparison` is the ratio of the effect since to that before, by studies; `facts` are those that
    changed between the two studies.
    """

    before: Day
    since: Day
    noticed: Day
    comparison: Comparison
    facts: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One arm in one benchmark over time.

    `effects`: the comparison in each study. `changes`: those of the effect.
    `levels`: from which place of `effects` to which the effect has which ratio.
    `left`: studies without an effect, each with the word of its verdict.
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
    every = sorted(
        (one for one in light if one.day.started),
        key=lambda one: one.day.started,
    )
    if not every:
        raise UserError("no study has a launch", place=str(paths[0]), fix="run them first")
    first = every[0].study
    for n, other in enumerate(every[1:], 1):
        for earlier in every[:n]:
            check_apart(earlier.study, other.study)
        in_both(first, other.study)
    heads = first.judgement.headlines
    return History(
        first.plan.study.question,
        first.plan.study.factor,
        first.judgement.reference,
        tuple(one.day for one in every),
        tuple(_line(head, every, ERROR / len(heads)) for head in heads),
    )


class _Light(NamedTuple):
    """A study without its launches, and the log ratios of its blocks by benchmark and arm."""

    study: Measured
    day: Day
    ratios: Mapping[tuple[str, str], list[float]]


def _light(one: Measured) -> _Light:
    """Return a study without its launches: many together would take much memory."""
    judgement = one.judgement
    reference, ratios = judgement.reference, {}
    for head in judgement.headlines:
        of = pooled_ratios(one.evidence, head.benchmark, reference, head.arm, head.metric)
        ratios[head.benchmark, head.arm] = list(of.values())
    light = replace(judgement, figures=(), points=(), voided=(), cases=())
    study = replace(one, evidence=Evidence(one.plan.metrics), judgement=light)
    return _Light(study, Day(one.name, judgement.directory, judgement.started or 0.0), ratios)


def _line(head: Finding, every: Sequence[_Light], error: float) -> Line:
    """Return the line of a headline over all studies; `error` is its share of that of all."""
    key = (head.benchmark, head.arm)
    known: list[tuple[_Light, Comparison]] = []
    left = []
    for one in every:
        mine = next((f for f in one.study.judgement.headlines if (f.benchmark, f.arm) == key), None)
        comparison = usable(mine) if mine else None
        if mine and comparison and mine.metric == head.metric:
            known.append((one, comparison))
        else:
            left.append((one.day, mine.verdict.word.value if mine else "not measured"))
    studies = [one for one, _ in known]
    logs = [math.log(comparison.ratio) for _, comparison in known]
    found = stages([one.ratios[key] for one in studies], logs, error) if known else ()
    return Line(
        head.benchmark,
        head.arm,
        head.metric,
        head.margin,
        tuple((one.day, comparison) for one, comparison in known),
        tuple((stage.first, stage.last, math.exp(stage.mean)) for stage in found),
        tuple(_dated(head.arm, studies, logs, *pair) for pair in pairwise(found)),
        tuple(left),
    )


def _dated(
    arm: str, studies: Sequence[_Light], logs: Sequence[float], before: Stage, since: Stage
) -> Dated:
    """Return the change of an arm between two stages; `logs` are the log ratios of the studies."""
    earlier, later = logs[before.first : since.first], logs[since.first : since.last + 1]
    ratio, low, high = (math.exp(one) for one in step(earlier, later, 1 - ERROR))
    old, new = studies[before.last], studies[since.first]
    reference = old.study.judgement.reference
    facts, _ = differences(old.study, new.study, [(reference, reference), (arm, arm)])
    comparison = Comparison(min(len(earlier), len(later)), ratio, low, high, 1 - ERROR)
    noticed = studies[before.noticed or since.first].day
    known = tuple(f for f in facts if f.kind != "unknown")
    return Dated(old.day, new.day, noticed, comparison, known)
