"""One question over weeks: the effect in each study, when it changed, and what changed with it.

In go study directories; out comes a `History` with a `Line` for each benchmark and arm, whose
changes stages.py finds. It is shown on a terminal, as a page, and as JSON of schema
paribus.history/1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core import (
    Comparison,
    Difference,
    Finding,
    Metric,
    UserError,
    format_interval,
    units,
    usable,
)
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import pooled_ratios
from paribus.logs import change_printed as printed
from paribus.logs.change import Measured
from paribus.logs.logs import arms_of
from paribus.logs.stages import LEAST_SIDE, Stage, fewest, stages, step
from paribus.logs.studies import are_studies, check_apart, differences, in_both, read
from paribus.plan import read_plan
from paribus.report import export, over_time, tables, wording
from paribus.report.markup import Html, element, escape, join, pairs, table
from paribus.report.printing import Row, heading, item, line, print_rows
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "paribus.history/1"
SHORT_S = 10 * 86_400.0
"""Seconds up to which days alone do not distinguish studies."""

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
    if not are_studies(paths):
        read_plan(paths[0])  # raises what it lacks
    if len(paths) < 2:
        fix = "give the directories that `paribus run` made, two or more"
        raise UserError("a history is of several studies", place=str(paths[0]), fix=fix)
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


# --- a terminal ------------------------------------------------------------------------------


def sentence(history: History) -> str:
    """Return the changes in one sentence."""
    first, last = history.days[0].started, history.days[-1].started

    def day(one: Day) -> str:
        return _day(one)[: 10 if last - first > SHORT_S else 16]

    found = [
        f"{one.arm} in {one.benchmark} by {_size(change)} between {day(change.before)} and"
        f" {day(change.since)}"
        for one in history.lines
        for change in one.changes
    ]
    said = f"{units.count(len(history.days), 'study')} from {day(history.days[0])} to"
    changed = f"the effect changed of {'; '.join(found)}" if found else "no change is shown"
    least = fewest(ERROR / len(history.lines))
    if max(len(one.effects) for one in history.lines) < least:
        changed = f"too few to show a change, which takes {least}"
    return f"{said} {day(history.days[-1])}: {changed}."


def basis(history: History) -> str:
    """Return the note on changes: how many studies one takes, and how rarely one is false."""
    over = "" if len(history.lines) == 1 else f" over all {len(history.lines)} effects"
    return (
        f"A change takes {fewest(ERROR / len(history.lines))} studies or more, {LEAST_SIDE} or more"
        f" of them since it, more where they scatter. At most {units.percent(ERROR)} of histories"
        f" without one ever show one{over}. Nothing controls what happens between studies: all that"
        " changed may be the cause."
    )


def _day(day: Day) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(day.started))


def _size(change: Dated) -> str:
    found = change.comparison
    return format_interval(found.ratio, found.low, found.high)


def print_history(history: History, console: Console) -> None:
    """Print a sentence, a row for each arm and benchmark, and each change with its facts."""
    line(console, sentence(history), style="bold")
    line(console, f"Factor: {history.factor}. Reference: {history.reference}.", style="dim")
    console.print()
    rows = [
        Row([one.benchmark, one.arm, str(len(one.effects)), *_ends(one), str(len(one.changes))])
        for one in history.lines
    ]
    head = ["benchmark", "arm", "studies", "first", "last", "changes"]
    print_rows(console, head, rows, right=(2, 5), coloured=())
    for one in history.lines:
        for change in one.changes:
            heading(console, f"{one.arm} in {one.benchmark}: {_size(change)}")
            item(console, _when(change))
            for text in _facts(change):
                item(console, text)
        if one.left:
            item(console, _left(one), style="dim")
    console.print()
    line(console, basis(history), style="dim")


def _ends(one: Line) -> tuple[str, str]:
    """Return the first and the last effect, as times as slow."""
    if not one.effects:
        return "none", "none"
    ends = (one.effects[0][1], one.effects[-1][1])
    first, last = (wording.estimate(end.times(one.metric.better)) for end in ends)
    return first, last


def _when(change: Dated) -> str:
    return (
        f"after {change.before.name} ({_day(change.before)}) and before {change.since.name}"
        f" ({_day(change.since)}); noticed with {change.noticed.name}"
    )


def _facts(change: Dated) -> Iterator[str]:
    found = printed.changed(change.facts)
    for difference, arms in found[: printed.MOST_SHOWN]:
        yield printed.difference_text(difference, arms)
    if len(found) > printed.MOST_SHOWN:
        yield f"{len(found) - printed.MOST_SHOWN} more facts changed (history.json)"
    if not found:
        yield "no recorded fact changed between these two studies"


def _left(one: Line) -> str:
    names = listed([f"{day.name} ({word})" for day, word in one.left], 5)
    return f"{one.arm} in {one.benchmark}: without an effect: {names}"


# --- the page --------------------------------------------------------------------------------


def body(history: History) -> Html:
    """Return the body of the page: for each arm and benchmark a picture, and each change."""
    head = element(
        "header",
        element("p", escape(history.question), kind="question"),
        element("h1", escape(sentence(history))),
        pairs([("Factor", history.factor), ("Reference", history.reference)]),
    )
    note = element("p", escape(basis(history)), kind="small")
    return join(head, *(_section(history, one) for one in history.lines), note)


def _section(history: History, one: Line) -> Html:
    title = f"{one.benchmark}, {one.arm}"
    said = f"{one.arm}: times as slow as {history.reference}; the line is the level of its time"
    rows = [
        [escape(_day(day)), escape(day.name), tables.ratio_of(known.times(one.metric.better))]
        for day, known in one.effects
    ]
    values = table(["Began (UTC)", "Study", tables.TIMES], rows, title, left=(0, 1))
    summary = element("summary", escape(units.count(len(rows), "study")))
    return element(
        "section",
        element("h2", escape(title)),
        element("figure", _picture(history, one), element("figcaption", escape(said))),
        *(_change(change) for change in one.changes),
        element("p", escape(_left(one)), kind="small") if one.left else "",
        element("details", summary, values),
        aria_label=title,
    )


def _change(change: Dated) -> Html:
    facts = element("ul", *(element("li", escape(text)) for text in _facts(change)))
    size = element("b", escape(_size(change)))
    return element("div", size, escape(f" {_when(change)}"), facts, kind="line warning")


def _picture(history: History, one: Line) -> Html:
    slow = one.metric.better == "lower"
    marks = [
        over_time.Mark(
            day.started,
            known.times(one.metric.better),
            "open",
            f"{day.name}, {_day(day)}: {wording.estimate(known.times(one.metric.better))}",
        )
        for day, known in one.effects
    ]
    levels = [
        (marks[first].at, marks[last].at, ratio if slow else 1 / ratio)
        for first, last, ratio in one.levels
    ]
    changes = [
        ((change.before.started + change.since.started) / 2, f"{_size(change)}, {_when(change)}")
        for change in one.changes
    ]
    ends = (history.days[0].started, history.days[-1].started)
    label = f"{one.benchmark}, {one.arm}: {units.count(len(marks), 'study')}"
    return over_time.picture(label, marks, ends, levels, changes)


# --- JSON ------------------------------------------------------------------------------------


def to_json(history: History) -> dict[str, Any]:
    """Return a history as JSON values (docs/history-schema.json)."""
    return {
        "schema": SCHEMA,
        "sentence": sentence(history),
        "question": history.question,
        "factor": history.factor,
        "reference": history.reference,
        "error": ERROR,
        "studies": [asdict(day) for day in history.days],
        "lines": [_line_json(one) for one in history.lines],
    }


def _line_json(one: Line) -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "arm": one.arm,
        "metric": one.metric.name,
        "better": one.metric.better,
        "effects": [
            {"study": day.name, "comparison": export.comparison_json(known)}
            for day, known in one.effects
        ],
        "levels": [
            {"first": one.effects[a][0].name, "last": one.effects[b][0].name, "ratio": ratio}
            for a, b, ratio in one.levels
        ],
        "changes": [_change_json(change) for change in one.changes],
        "left_out": [{"study": day.name, "word": word} for day, word in one.left],
    }


def _change_json(change: Dated) -> dict[str, Any]:
    comparison = change.comparison
    return {
        "before": change.before.name,
        "since": change.since.name,
        "noticed": change.noticed.name,
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high if comparison.high < math.inf else None,
        "facts": [
            {"key": one.key, "arm": one.arm, "before": one.reference_value, "after": one.arm_value}
            for one in change.facts
        ],
    }
