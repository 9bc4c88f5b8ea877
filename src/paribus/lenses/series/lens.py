"""Where in an order of arms, such as releases, a figure changes: from one to the next, and overall.

Arms v1, v2, v3 give the steps v1 -> v2 and v2 -> v3 of each benchmark, and v1 -> v3 as the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Lens,
    Open,
    Scalar,
    Seen,
    Word,
    format_interval,
    percent,
    usable,
)
from paribus.designs.series import step
from paribus.judge.cases import counted
from paribus.judge.headlines import pooled_ratios
from paribus.report import over_time
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, table
from paribus.report.printing import Row, heading, line, print_rows
from paribus.report.rows import kept
from paribus.report.stored import check_interval
from paribus.report.wording import SIZE_WITHHELD
from paribus.stats.verdict import judge
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

HELD = frozenset({Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA})
STEPS = frozenset({Word.SLOWER, Word.FASTER})

TITLE = "Steps in the series"
NUMBERS = ("no step", "one step", "two steps", "three steps")


@dataclass(frozen=True, slots=True)
class Step:
    """From one arm of the order to another: the ratio of their values, its interval and verdict.

    The ratio is None, in 0 to infinity, where it is not known: without a block of both, and where
    the size of one of both is withheld.
    """

    before: str
    arm: str
    ratio: float | None
    low: float
    high: Open
    word: Word


@dataclass(frozen=True, slots=True)
class Stairs:
    """The steps of a benchmark between neighbours, and from the first arm to the last."""

    benchmark: str
    margin: float
    steps: tuple[Step, ...]
    whole: Step


Rows = tuple[Stairs, ...]


def series(seen: Seen) -> Rows | None:
    """Return the steps of each benchmark; None in a study of another design."""
    if seen.plan.design.ranks:
        return None
    return tuple(_stairs(seen, label) for label in seen.plan.metrics)


def _stairs(seen: Seen, label: str) -> Stairs:
    names = [arm.name for arm in seen.plan.study.arms]
    heads = {h.arm: h for h in seen.judgement.headlines if h.benchmark == label}
    steps = [_step(seen, heads, before, arm) for before, arm in pairwise(names)]
    whole = _step(seen, heads, names[0], names[-1])
    return Stairs(label, heads[names[-1]].margin, tuple(steps), whole)


def _step(seen: Seen, heads: Mapping[str, Finding], before: str, arm: str) -> Step:
    """Return the step from arm `before` to `arm`, of the blocks of that one's headline."""
    head = heads[arm]
    ratios = pooled_ratios(seen.evidence, head.benchmark, before, arm, head.metric)
    blocks = sorted(counted(seen.plan, seen.evidence, head))
    found = step(ratios, blocks, seen.plan.looks.confidence)
    if found is None:
        return Step(before, arm, None, 0.0, math.inf, Word.NO_DATA)
    verdict = judge(found, better=head.metric.better, margin=head.margin, last=True)
    both = [heads[one].verdict for one in (before, arm) if one in heads]
    size_known = all(one.size_known for one in both)
    held = not size_known or any(one.word in HELD for one in both)
    word = Word.WITHHELD if held else verdict.word
    if not size_known or not 0 < found.ratio < math.inf:
        return Step(before, arm, None, 0.0, math.inf, word)
    return Step(before, arm, found.ratio, found.low, found.high, word)


# --- words -----------------------------------------------------------------------------------


def said(of: Stairs) -> str:
    """Return the answer in one line: how many steps, where, and the change from end to end.

    "one step: 2.22 -> 2.23, -18.0 % [-18.6, -17.3]; none elsewhere beyond 2 %; ..."
    """
    found = [one for one in of.steps if one.word in STEPS]
    several = NUMBERS[len(found)] if len(found) < len(NUMBERS) else f"{len(found)} steps"
    where = listed([f"{one.before} -> {one.arm}, {_share(one)}" for one in found], last=" and ")
    parts = [f"{several}: {where}" if found else several]
    margin = percent(of.margin)
    open_ = [one for one in of.steps if one.word not in (*STEPS, Word.EQUIVALENT)]
    if open_:
        named = f"not decided: {listed([f'{one.before} -> {one.arm}' for one in open_], 3)}"
        parts = [*parts, named] if len(open_) < len(of.steps) else [named]
    elif found:
        parts.append(f"none elsewhere beyond {margin}")
    else:
        parts[0] = f"no step beyond {margin}"
    if of.whole.ratio is not None:
        parts.append(f"{_share(of.whole)} from end to end")
    return "; ".join(parts)


def _left(judgement: Judgement, rows: Rows) -> Iterator[str]:
    """Yield which steps are undecided; of those from the first arm a headline says it."""
    for one in rows:
        names = [s.arm for s in one.steps[1:] if s.word is Word.UNDECIDED]
        if names:
            way = "raise `blocks` or `budget` under [plan], and use a new directory"
            yield f"Undecided ({one.benchmark}, steps to {listed(names, 5)}): {way}."


def _share(one: Step) -> str:
    """Return the change by a step: "-18.0 % [-18.6, -17.3]", "size withheld" or "none"."""
    if one.ratio is None:
        return "none" if one.word is Word.NO_DATA else SIZE_WITHHELD
    return format_interval(one.ratio, one.low, one.high)


def lead(judgement: Judgement, rows: Rows) -> str:
    """Return the answer of each benchmark, as sentences."""
    return " ".join(f"{one.benchmark}: {said(one)}." for one in rows)


def basis(judgement: Judgement) -> str:
    """Return the note on the confidence of the intervals."""
    sure = percent(judgement.study.settings.confidence)
    return (
        f"Intervals: {sure} confidence over all steps of a benchmark, its ends, and all looks."
        " Steps that are each within the margin add up from end to end."
    )


# --- reports ---------------------------------------------------------------------------------


def _cells(of: Stairs) -> Iterator[list[str]]:
    for one in (*of.steps, of.whole):
        yield [f"{one.before} -> {one.arm}", _share(one), one.word.value]


def print_series(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the answer and the steps of each benchmark."""
    heading(console, TITLE)
    for of in rows:
        line(console, said(of), name=of.benchmark)
        cells = [Row(row) for row in _cells(of)]
        head = ["step", "change [interval]", "verdict"]
        print_rows(console, head, cells, right=(), coloured=(2,))
    line(console, basis(judgement), style="dim")


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the answer of each benchmark."""
    console.print()
    for of in rows:
        line(console, said(of), name=of.benchmark, hang=2)


def html_section(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the section of the HTML report: the arms in order, drawn, and their steps."""
    parts = [element("h2", escape(TITLE))]
    for of in rows:
        cells = [[escape(cell) for cell in row] for row in _cells(of)]
        shown = table(["Step", "Change [interval]", "Verdict"], cells, of.benchmark, left=(0, 2))
        caption = element("figcaption", escape(f"{of.benchmark}: {said(of)}"))
        parts.append(element("figure", _picture(judgement, of), caption))
        parts.append(element("details", element("summary", "All steps"), shown))
    parts.append(element("p", element("small", escape(basis(judgement)))))
    return element("section", *parts, aria_label="Series")


def _picture(judgement: Judgement, of: Stairs) -> Html:
    """Return the picture of how many times as slow as the first arm each is, and of the steps."""
    heads = {h.arm: h for h in judgement.headlines if h.benchmark == of.benchmark}
    names = [arm.name for arm in judgement.study.arms]
    marks = [over_time.Mark(0.0, Comparison(1, 1.0, 0.0, math.inf, 0.0), "open", names[0])]
    for place, name in enumerate(names[1:], 1):
        known = usable(heads[name])
        if known is not None:
            slow = known.times(heads[name].metric.better)
            marks.append(over_time.Mark(float(place), slow, "open", f"{name}: {slow.ratio:.3f}"))
    found = [n for n, one in enumerate(of.steps) if one.word in STEPS]
    changes = [(n + 0.5, f"{of.steps[n].arm}: {_share(of.steps[n])}") for n in found]
    ends = [-1, *found, len(names) - 1]
    levels = [level for a, b in pairwise(ends) if (level := _level(marks, a + 1, b))]
    label = f"{of.benchmark}: times as slow as {names[0]}"
    return over_time.picture(label, marks, (0.0, len(names) - 1.0), levels, changes, names)


def _level(marks: Sequence[over_time.Mark], first: int, last: int) -> over_time.Level | None:
    """Return the mean between two steps, of the arms at places `first` to `last`."""
    mine = [one for one in marks if first <= one.at <= last]
    if not mine:
        return None
    mean = math.exp(math.fsum(math.log(one.times.ratio) for one in mine) / len(mine))
    return mine[0].at, mine[-1].at, mean


KEPT = kept("series", Stairs, lambda judgement, one: said(one))


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    """Return the steps of a stored verdict; raises ValueError for a ratio outside its interval."""
    found: Rows = KEPT["from_json"](table, judgement) or ()
    known = {head.benchmark for head in judgement.headlines}
    for of in found:
        if of.benchmark not in known:
            raise ValueError(f"{of.benchmark!r:.40} has no headline")
        for one in (*of.steps, of.whole):
            check_interval(one.high if one.ratio is None else one.ratio, one.low, one.high)
    return found or None


def _csv(judgement: Judgement, rows: Rows) -> Iterable[Sequence[Scalar | None]]:
    yield ["benchmark", "before", "arm", "ratio", "low", "high", "word"]
    for of in rows:
        for one in (*of.steps, of.whole):
            high = one.high if one.high < math.inf else None
            yield [of.benchmark, one.before, one.arm, one.ratio, one.low, high, one.word.value]


LENS = Lens(
    judge=series,
    to_json=KEPT["to_json"],
    from_json=from_json,
    text=print_series,
    html=html_section,
    lead=lead,
    short=print_short,
    left=_left,
    csv=("series.csv", _csv),
)
