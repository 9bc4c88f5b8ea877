"""The first screen of the HTML report: the answer, a picture of all headlines, warnings, steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from paribus.core import Comparison, Judgement, Notice, Word, units
from paribus.report import lookup, sentences, tables, wording
from paribus.report.advice import steps
from paribus.report.axes import log_ticks, padded
from paribus.report.effects import Effect, effects
from paribus.report.markup import Html, element, escape, forest_of, forest_row, join, prose, section
from paribus.words.lists import listed
from paribus.words.study import summary
from paribus.words.values import consequences, notice_said, reason_of, warnings

MOST_NAMED = 3
"""The most benchmarks that the line of a warning names."""


def screen(judgement: Judgement, *, running: bool = False) -> Html:
    """Return question, answer, picture, a line for each warning, and the next step.

    With `running` the study goes on at this moment.
    """
    short = summary(judgement.sentence, judgement.headlines)
    return element(
        "header",
        element("p", escape(judgement.study.question), kind="question"),
        element("h1", prose(short)),
        forest(judgement) if judgement.headlines else Html(""),
        _warnings(judgement),
        _steps(judgement, running=running),
        id="answer",
    )


MOST_LINES = 3
"""The most warnings with a line of their own on the first screen; the others are folded."""

LONGEST = 28
"""The most characters of both values that are kept on one line."""


class Scale:
    """A logarithmic axis of ratios (times as slow): maps them to percent of its width.

    It spans 1, all margins and all intervals in `known`, pairs of a margin and a comparison.
    """

    def __init__(self, known: Iterable[tuple[float, Comparison | None]]) -> None:
        ends = [1.0]
        for margin, times in known:
            ends += wording.band(margin)
            if times is not None:
                around = (times.low, times.ratio, times.high)
                ends += [end for end in around if 0 < end < math.inf]
        self.low, self.high = padded(min(ends), max(ends))

    def at(self, ratio: float) -> str:
        """Return the place of `ratio` as a CSS percentage; beyond the axis, its nearer end."""
        inside = min(self.high, max(self.low, ratio))
        return f"{100 * math.log(inside / self.low) / math.log(self.high / self.low):.2f}%"


def forest(judgement: Judgement) -> Html:
    """Return the headlines as one table whose rows are drawn on one axis, slower to the right."""
    rows = effects(judgement)
    has_figures = any(one.finding.comparison or one.finding.arm_value for one in rows)
    scale = Scale((one.finding.margin, one.times) for one in rows) if has_figures else None
    several = len(judgement.study.arms) > 2
    arms = [a.name for a in judgement.study.arms]
    values = f"{arms[0]} → {'arm' if several else arms[-1]}"
    noun = units.plural(lookup.unit(judgement)).capitalize()
    hollow = any(one.times and one.kind in ("open", "few") for one in rows)
    margins = [one.finding.margin for one in rows]
    head = [(escape(noun), "number used")]
    if scale:
        axes = (axis(scale, margins=margins, hollow=hollow), "axis")
        head = [axes, (Html("Times as slow"), "number"), (escape(values), _kind(values)), *head]
    caption = (
        f"How many times as slow each arm is as {judgement.reference}: the interval of every"
        " headline, the margin shaded"
    )
    body = [_row(judgement, one, scale, several=several) for one in rows]
    return forest_of("Benchmark", caption, head, body)


def axis(
    scale: Scale, name: str = "Interval", margins: Sequence[float] = (), *, hollow: bool = False
) -> Html:
    """Return the head of the column of bars: which side is worse, margins, ticks of the axis.

    With `hollow` there are hollow dots, of findings without a verdict.
    """
    sizes = units.percent(max(margins)) if margins else ""
    if margins and min(margins) < max(margins):
        sizes = f"{100 * min(margins):.3g}–{sizes}"
    keys = ["◂ faster", f'<tspan class="swatch">■</tspan> {f"margin {sizes}".strip()}']
    keys += ["○ no verdict"] if hollow else []
    drawn = [f'<text x="0%" y="{12 + 16 * row}">{key}</text>' for row, key in enumerate(keys)]
    drawn.append('<text x="100%" y="12" text-anchor="end">slower ▸</text>')
    bottom = 12 + 16 * len(keys)
    ticks = [t for t in log_ticks(scale.low, scale.high) if scale.low < t < scale.high]
    drawn += [
        f'<text x="{scale.at(tick)}" y="{bottom}" text-anchor="middle">{tick:g}</text>'
        for tick in ticks
    ]
    unseen = element("span", escape(name), kind="unseen")
    size = f'width="100%" height="{bottom + 4}" aria-hidden="true"'
    return Html(f"{unseen}<svg {size}>{''.join(drawn)}</svg>")


def _row(judgement: Judgement, one: Effect, scale: Scale | None, *, several: bool) -> Html:
    """Return the row of a headline; without a `scale` no row has figures."""
    finding = one.finding
    place = f"#{tables.anchor(judgement, finding.benchmark)}"
    arm = [element("small", escape(finding.arm))] if several else []
    found = lookup.total_of(judgement, finding)
    failed = [element("small", escape(f"{found.failures} failed"))] if found.failures else []
    ratio = element("b", escape(one.ratio))
    if one.few:
        ratio = join(ratio, Html(" "), element("span", escape(one.few), kind="interval"))
    elif one.times is not None and wording.has_interval(one.times):
        ratio = tables.ratio_of(one.times)
    values = wording.both(finding, "→")
    cells = [(Html(str(lookup.units_of(judgement, finding))), "number used")]
    if scale:
        drawn = bar(scale, finding.margin, [(one.times, one.kind)])
        cells = [(drawn, "axis"), (ratio, "number"), (escape(values), _kind(values)), *cells]
    name = join(element("a", escape(finding.benchmark), href=place), *arm, *failed)
    # Figures of a withheld verdict are drawn paler.
    paler = "held" if finding.verdict.word is Word.WITHHELD else None
    chip = tables.chip_of(one.sign, one.word, one.kind, reason_of(finding.verdict))
    return forest_row(name, chip, *cells, kind=paler)


def _kind(values: str) -> str:
    """Return the CSS class of a cell with both values, which wraps if they are long."""
    return f"number values{' wraps' if len(values) > LONGEST else ''}"


def bar(scale: Scale, margin: float, marks: Sequence[tuple[Comparison | None, str]]) -> Html:
    """Return an SVG of intervals against their margin.

    `marks` are one or two comparisons, each with the CSS class of its colour. Of two, the first is
    drawn above, and a line connects them.
    """
    low, high = map(scale.at, wording.band(margin))
    title = element("title", escape(f"margin {units.percent(margin)}"))
    drawn = [
        f'<line class="margin" x1="{low}" x2="{high}" y1="12" y2="12">{title}</line>',
        *(f'<line class="edge" x1="{x}" x2="{x}" y1="0" y2="24"/>' for x in (low, high)),
        f'<line class="one" x1="{scale.at(1)}" x2="{scale.at(1)}" y1="0" y2="24"/>',
    ]
    heights = (12,) if len(marks) == 1 else (7, 17)
    known = [(y, times, kind) for y, (times, kind) in zip(heights, marks, strict=True) if times]
    if len(known) > 1:
        x1, x2 = (scale.at(times.ratio) for _, times, _ in known)
        drawn.append(f'<line class="way" x1="{x1}" y1="7" x2="{x2}" y2="17"/>')
    for y, times, kind in known:
        if wording.has_interval(times):
            ends = f'x1="{scale.at(times.low)}" x2="{scale.at(times.high)}"'
            drawn.append(f'<line class="interval {kind}" {ends} y1="{y}" y2="{y}"/>')
        drawn.append(f'<circle class="{kind}" cx="{scale.at(times.ratio)}" cy="{y}" r="5"/>')
    return Html(f'<svg width="100%" height="24" aria-hidden="true">{"".join(drawn)}</svg>')


def _warnings(judgement: Judgement) -> Html:
    """Return a line for each warning with its consequence, or one that there is none.

    If no headline has data, the first warning is unfolded.
    """
    if quiet := sentences.nothing_disturbed(judgement):
        return element("p", Html("✓ "), escape(quiet), kind="line")
    empty = all(head.verdict.word is Word.NO_DATA for head in judgement.headlines)
    lines = list[Html]()
    for notice in warnings(judgement):
        where = listed(notice.benchmarks, MOST_NAMED)
        about = [element("span", escape(f" in {where}"))] if where else []
        does = element("span", escape(f" · {consequences(notice)}"), kind="does")
        summary_line = element("summary", Html("⚠ "), escape(notice.name), *about, does)
        opened = {"open": ""} if empty and not lines else {}
        shown = summary_line, element("p", notice_of(notice))
        lines.append(element("details", *shown, kind="line warning", **opened))
    if len(lines) <= MOST_LINES + 1:
        return join(*lines)
    others = warnings(judgement)[MOST_LINES:]
    does = element("span", escape(f" · {consequences(others[0])}"), kind="does")  # the gravest
    more = element("summary", escape(f"⚠ {len(others)} more"), does)
    rest = element("details", more, *lines[MOST_LINES:], kind="line warning")
    return join(*lines[:MOST_LINES], rest)


def notice_of(notice: Notice) -> Html:
    """Return the name of a notice, its sentences, and what can be done."""
    return join(element("b", escape(f"{notice.name}: ")), prose(notice_said(notice)))


def _steps(judgement: Judgement, *, running: bool) -> Html:
    """Return the first step in a few words; unfolded, it lists all steps in full."""
    found = steps(judgement, running=running)
    if not found:
        words = {one.verdict.word for one in judgement.headlines}
        done = judgement.complete and words and words <= wording.DECIDED
        return element("p", Html("➜ Nothing left to do"), kind="line") if done else Html("")
    first = found[0][0]
    if found == [(first, first)]:
        return element("p", Html("➜ "), prose(first), kind="line")
    shown = element("summary", Html("➜ "), prose(first))
    items = element("ul", *(element("li", prose(whole)) for _, whole in found))
    return element("details", shown, items, kind="line steps")


def contents(judgement: Judgement, sections: Sequence[tuple[str, str]]) -> Html:
    """Return the contents of the page: a list beside it, or a select element on a telephone.

    `sections` are the titles and ids of the parts below the benchmarks.
    """
    rows = effects(judgement)
    found = []
    for label in lookup.benchmarks(judgement):
        of_benchmark = [one for one in rows if one.finding.benchmark == label]
        dots = [
            element("span", one.sign, kind=f"dot {one.kind}", title=one.word, aria_hidden="true")
            for one in of_benchmark[:MOST_NAMED]
        ]
        found.append((join(*dots), label, tables.anchor(judgement, label)))
    links = [(Html(""), "Answer", "answer"), *found, *((Html(""), *one) for one in sections)]
    listed = [
        element("li", element("a", dots, escape(name), href=f"#{place}"))
        for dots, name, place in links
    ]
    options = [element("option", escape(name), value=place) for _, name, place in links]
    choice = element("select", *options, kind="jump", aria_label="Go to a part of the report")
    return element("nav", choice, element("ul", *listed), kind="contents", aria_label="Contents")


def about(judgement: Judgement, facts: Html) -> Html:
    """Return what was compared with what, and how the figures came about."""
    design = "" if lookup.nothing_came(judgement) else judgement.design
    note = sentences.ratio_note(judgement) if any(h.comparison for h in judgement.headlines) else ""
    below = (element("p", escape(text), kind="small") for text in (design, note) if text)
    return section("This study", "study", facts, *below)
