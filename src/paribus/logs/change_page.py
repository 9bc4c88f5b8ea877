"""Studies side by side as one HTML file: its pictures are SVG, so it needs no script."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paribus.core import Comparison, Finding, Spread, slowness, units
from paribus.logs import change_printed as shown
from paribus.logs.change import Change, Changed, Measured, Step
from paribus.logs.studies import Compared
from paribus.report import first as one_axis
from paribus.report import sentences, tables, track, wording
from paribus.report.axes import AXES, drawn, log_ticks, padded
from paribus.report.markup import (
    Html,
    attribute,
    document,
    element,
    escape,
    forest_of,
    forest_row,
    join,
    pairs,
    table,
)
from paribus.report.unequal import LIKELY

KINDS = {
    Changed.IMPROVED: "faster",
    Changed.WORSENED: "slower",
    Changed.UNCHANGED: "equivalent",
}
SIGNS = {
    Changed.IMPROVED: "▲",
    Changed.WORSENED: "▼",
    Changed.UNCHANGED: "=",
    Changed.WITHHELD: "⊘",
    Changed.NO_DATA: "–",
}
HEIGHT, FOOT = 200, 34
LEFT, RIGHT = 9.0, 97.0
"""Percent of the width between which curves are drawn."""

FEWEST = 3
"""Sizes from which there is a curve."""


def chip(change: Change) -> Html:
    """Return the verdict on a change, with a sign."""
    sign, kind = SIGNS.get(change.word, "?"), KINDS.get(change.word, "open")
    return tables.chip_of(sign, change.word.value, kind, shown.why_none(change))


def forest(step: Step, places: Sequence[str]) -> Html:
    """Return the forest plot: a row for each headline, with both effects and the change.

    Slower is to the right. `places` are the ids of the sections that say more of each.
    """
    rows = step.headlines
    sides = [(one, slowness(one.before), slowness(one.after)) for one in rows]
    effect = one_axis.Scale((one.margin, t) for one, *both in sides for t in both)
    change = one_axis.Scale((one.margin, shown.times_of(one)) for one in rows)
    names = shown.names(step)
    effects = element("span", escape(f"effects: {names[0]} above (○), {names[1]} below"))
    open_ = any(one.word not in KINDS for one in rows)
    head = (
        (join(effects, one_axis.axis(effect, "Effects")), "axis"),
        (join(element("span", "change"), one_axis.axis(change, "Change", hollow=open_)), "axis"),
        (Html("Change, times as slow"), "number"),
    )
    several = len({one.arm for one in rows}) > 1
    body = []
    for (one, before, after), place in zip(sides, places, strict=True):
        arm = [element("small", escape(one.arm))] if several else []
        name = element("a", escape(one.benchmark), href=f"#{place}")
        kind, known = KINDS.get(one.word, "open"), shown.times_of(one)
        two = ((before, "open"), (after, kind))
        cells = (
            (one_axis.bar(effect, one.margin, two), "axis"),
            (one_axis.bar(change, one.margin, [(known, kind)]), "axis"),
            (ratio_cell(known), "number"),
        )
        body.append(forest_row(join(name, *arm), chip(one), *cells))
    caption = "How many times as slow each arm is in both studies, and the change, margins shaded"
    return forest_of("Benchmark", caption, head, body, "changes")


def ratio_cell(known: Comparison | None) -> Html:
    """Return a ratio, bold, and its interval."""
    return escape("none") if known is None else tables.ratio_of(known)


# --- over size ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Curve:
    """Values with their spread over a parameter, in the colour of an arm.

    `kind` is the study, "first" or "later". A point is (x, value, low, high).
    """

    name: str
    colour: str
    kind: str
    points: tuple[tuple[float, float, float, float], ...]


def over_size(step: Step, head: Change) -> Html:
    """Return pictures of the values and effects of both studies, over the sizes of each sweep."""
    cases = [one for one in step.cases if (one.benchmark, one.arm) == (head.benchmark, head.arm)]
    pictures: list[Html] = []
    for panel in drawn(step.first.judgement, head.benchmark):
        mine = {f.case for f in panel.cases}
        if panel.key is None:
            continue
        like = (one for one in cases if one.metric == panel.metric)
        known = [(one.case.get(panel.key), one) for one in like if one.case and one.case in mine]
        swept = [(float(x), one) for x, one in known if isinstance(x, int | float)]
        if len(swept) >= FEWEST:
            swept.sort(key=lambda pair: pair[0])
            pictures += _two(step, panel.key, panel.group, swept)
    return element("div", *pictures, kind="figures") if pictures else Html("")


def _two(step: Step, key: str, group: str, swept: Sequence[tuple[float, Change]]) -> Iterator[Html]:
    """Yield two pictures of a sweep: the values of both arms in both studies, and the effects.

    `swept` are the changes at each value of the parameter `key`.
    """
    change = swept[0][1]
    names, reference = shown.names(step), step.first.judgement.reference
    colours = track.colours(step.first.judgement)
    values, effects = [], []
    for name, kind, at in zip(names, ("first", "later"), ("before", "after"), strict=True):
        found = [(x, getattr(one, at)) for x, one in swept]
        arm_then = getattr(change, at).arm
        for arm, of in ((reference, "reference_value"), (arm_then, "arm_value")):
            spreads = [(x, s) for x, one in found if (s := getattr(one, of)) and _drawable(s)]
            points = tuple((x, s.median, s.low, s.high) for x, s in spreads)
            colour = colours[wording.clean(arm if arm == reference else change.before.arm)]
            values.append(Curve(f"{arm}, {name}", colour, kind, points))
        sizes = [(x, t) for x, one in found if (t := slowness(one)) is not None]
        points = tuple((x, t.ratio, *_ends(t)) for x, t in sizes)
        effects.append(Curve(name, colours[wording.clean(change.before.arm)], kind, points))
    where = f", {group}" if group else ""
    unit = f" ({change.metric.unit})" if change.metric.unit != "1" else ""
    for curves, said, margins in (
        (values, f"{change.metric.name}{unit}, {wording.direction(change.metric)}", ()),
        (effects, f"{change.arm}: times as slow as {reference}", [one.margin for _, one in swept]),
    ):
        known = [one for one in curves if one.points]
        if known:
            keys = element("div", *(_key(one) for one in known))
            caption = element("figcaption", escape(f"{said}{where}"), keys)
            yield element("figure", caption, picture(known, key, [x for x, _ in swept], margins))


def _drawable(spread: Spread) -> bool:
    return spread.low > 0 and math.isfinite(spread.high)


def _ends(known: Comparison) -> tuple[float, float]:
    low = known.low if known.low > 0 else known.ratio
    return low, known.high if known.high < math.inf else known.ratio


def _key(curve: Curve) -> Html:
    paint = f'class="{curve.kind}" stroke="{curve.colour}" color="{curve.colour}"'
    line = f'<line {paint} x1="0" x2="26" y1="6" y2="6"/>'
    dot = f'<circle {paint} fill="{curve.colour}" cx="13" cy="6" r="3.5"/>'
    svg = f'<svg class="curves" width="26" height="12" stroke-width="2">{line}{dot}</svg> '
    return element("span", Html(svg), escape(curve.name), kind="key")


def picture(
    curves: Sequence[Curve], key: str, xs: Sequence[float], margins: Sequence[float] = ()
) -> Html:
    """Return curves over a parameter on logarithmic axes, `margins` as a band around 1."""
    ends = [end for one in curves for point in one.points for end in point[2:]]
    ends += [end for m in margins for end in wording.band(m)]
    low, high = padded(min(ends), max(ends))
    places = [math.log2(x) if x > 0 else math.log2(min([v for v in xs if v > 0])) - 1 for x in xs]
    at = dict(zip(xs, places, strict=True))
    wide = max(places) - min(places)

    def across(place: float) -> float:
        return LEFT + (RIGHT - LEFT) * (place - min(places)) / wide

    def up(value: float) -> float:
        return HEIGHT * math.log(high / value) / math.log(high / low)

    parts = []
    # From the middle between two sizes to the next, however far apart they are.
    middles = [(a + b) / 2 for a, b in pairwise(places)]
    edges = map(across, [places[0], *middles, places[-1]])
    for (left, right), margin in zip(pairwise(edges), margins, strict=False):
        bottom, top = map(up, wording.band(margin))
        size = f'width="{right - left:.2f}%" height="{bottom - top:.1f}"'
        parts.append(f'<rect class="band" x="{left:.2f}%" y="{top:.1f}" {size}/>')
    parts += _axes(low, high, key, [(x, across(at[x])) for x in xs], up)
    for one in curves:
        points = [(across(at[x]), *map(up, some)) for x, *some in one.points]
        paint = f'class="{one.kind}" stroke="{one.colour}" color="{one.colour}"'
        for a, b in pairwise(points):
            ends_of = f'x1="{a[0]:.2f}%" y1="{a[1]:.1f}" x2="{b[0]:.2f}%" y2="{b[1]:.1f}"'
            parts.append(f"<line {paint} {ends_of}/>")
        for x, y, bottom, top in points:
            parts.append(
                f'<line stroke="{one.colour}" opacity="0.45" stroke-width="4"'
                f' x1="{x:.2f}%" x2="{x:.2f}%" y1="{bottom:.1f}" y2="{top:.1f}"/>'
                f'<circle {paint} fill="{one.colour}" cx="{x:.2f}%" cy="{y:.1f}" r="3.5"/>'
            )
    said = "; ".join(_reported(one) for one in curves)
    shown_as = f'class="strip curves" width="100%" height="{HEIGHT + FOOT}" stroke-width="2"'
    return Html(f'<svg {shown_as} role="img" aria-label="{attribute(said)}">{"".join(parts)}</svg>')


def _axes(
    low: float,
    high: float,
    key: str,
    xs: Sequence[tuple[float, float]],
    up: Callable[[float], float],
) -> Iterator[str]:
    for tick in log_ticks(low, high):
        y = f"{up(tick):.1f}"
        yield f'<line class="usual" x1="{LEFT}%" x2="{RIGHT}%" y1="{y}" y2="{y}"/>'
        label = f"{tick:,g}" if tick < 1e6 else f"{tick:.3g}"
        yield f'<text x="{LEFT - 1}%" y="{y}" dy="4" text-anchor="end">{label}</text>'
    every = math.ceil(len(xs) / 6)
    for x, place in xs[::every]:
        name = escape(wording.tick_label(key, x))
        yield f'<text x="{place:.2f}%" y="{HEIGHT + 15}" text-anchor="middle">{name}</text>'
    name = escape(AXES.get(key, key))
    yield f'<text x="{RIGHT}%" y="{HEIGHT + 31}" text-anchor="end">{name}</text>'


def _reported(one: Curve) -> str:
    ends = [value for _, value, *_ in one.points]
    return f"{one.name}: {min(ends):.4g} to {max(ends):.4g}"


def page(compared: Compared) -> str:
    """Return the whole HTML page."""
    return document(compared.first.plan.study.question, body(compared))


def body(compared: Compared, links: Mapping[str, str] | None = None) -> Html:
    """Return the body of the page; `links` are addresses of studies by their names here."""
    steps = (_step(n, step) for n, step in enumerate(compared.steps))
    return join(_header(compared, links or {}), *steps)


def _header(compared: Compared, links: Mapping[str, str]) -> Html:
    first = compared.first
    study = first.plan.study
    return element(
        "header",
        element("p", escape(study.question), kind="question"),
        *(element("h1", escape(step.sentence)) for step in compared.steps),
        pairs([("Factor", study.factor), ("Reference", first.judgement.reference)]),
        *(_study(one, links.get(one.name, "")) for one in shown.studies(compared)),
    )


def _study(one: Measured, link: str) -> Html:
    """Return the line of a study: its name, date and launches, and its sentence, folded."""
    name = element("a", escape(one.name), href=link) if link else element("b", escape(one.name))
    began = one.judgement.started
    day = "" if began is None else time.strftime("%Y-%m-%d %H:%M UTC, ", time.gmtime(began))
    said = escape(f" {day}{sentences.launches_text(one.judgement)}")
    text = _folded("What it says", element("p", escape(shown.study_text(one))))
    return element("div", name, said, text, kind="line")


def _step(number: int, step: Step) -> Html:
    title = f"From {step.first.name} to {step.study.name}"
    warning = f"{step.study.name} {shown.BACKWARDS}" if shown.backwards(step) else ""
    rows = [(_label(one), one) for one in step.headlines]
    places = [f"change-{number}-{n}" for n in range(len(rows))]
    left = element("ul", *(element("li", escape(one.text)) for one in step.not_compared))
    said = f"Not compared: {len(step.not_compared)}"
    note = f"{shown.CONTROL} {shown.note(step)}"
    values = _table(step, "Benchmark", rows, "Effect in each study, and its change")
    parts = [
        element("h2", escape(title)),
        element("p", escape(warning)) if warning else "",
        forest(step, places),
        element("details", element("summary", "Values of both arms in both studies"), values),
        element("p", escape(note), kind="small"),
        *(_sizes(step, *one) for one in zip(step.headlines, places, strict=True)),
        _folded(said, left) if step.not_compared else "",
        _platform(step),
    ]
    return element("section", *parts, aria_label=title)


def _folded(summary: str, inside: Html) -> Html:
    return element("details", element("summary", escape(summary)), inside)


def _sizes(step: Step, head: Change, place: str) -> Html:
    """Return the section of a headline: both studies over size, and its cases."""
    name = f"{head.benchmark}, {head.arm}"
    why = f"{why}." if (why := shown.why_none(head)) else ""
    return element(
        "section",
        element("h3", escape(name), id=place),
        element("p", escape(why), kind="small") if why else "",
        over_size(step, head),
        _cases(step, head),
    )


def _label(change: Change) -> Html:
    under = f"{change.arm}; {change.metric.name}, {shown.margin(change)}"
    return join(escape(change.benchmark), element("small", escape(under)))


def _table(step: Step, what: str, rows: list[tuple[Html, Change]], caption: str) -> Html:
    head = [what, "Verdict", "Change [interval]", *shown.names(step)]
    cells = [
        [
            label,
            chip(one),
            ratio_cell(shown.times_of(one)),
            _effect(step.first, one.before),
            _effect(step.study, one.after),
        ]
        for label, one in rows
    ]
    values = f"values: {step.first.judgement.reference} → arm"
    return table(head, cells, f"{caption} ({values})", left=(0, 1))


def _effect(study: Measured, finding: Finding) -> Html:
    under = finding.verdict.word.value
    if finding.reference_value and finding.arm_value:
        under += (
            f"; {wording.value_text(finding.reference_value, finding.metric)} →"
            f" {wording.value_text(finding.arm_value, finding.metric)}"
        )
    times = slowness(finding)
    said = ratio_cell(times) if times else escape(wording.estimate_text(finding))
    return join(said, element("small", escape(under)))


def _cases(step: Step, head: Change) -> Html:
    rows = [(escape(label), one) for label, one in shown.labelled(shown.cases_of(step, head))]
    if not rows:
        return Html("")
    caption = f"Cases of {head.benchmark}, {head.arm}"
    said = f"{units.count(len(rows), 'case')} in both studies"
    return _folded(said, _table(step, "Case", rows, caption))


def _platform(step: Step) -> Html:
    title = f"What changed between {step.first.name} and {step.study.name}"
    rows = [
        [
            element("code", escape(one.key)),
            escape(", ".join(arms)),
            escape(one.reference_value),
            escape(one.arm_value),
            escape(f"{LIKELY[one.rank]}: {one.reason}" if one.reason else LIKELY[one.rank]),
        ]
        for one, arms in shown.changed(step.platform)
    ]
    head = ["Fact", "Arm", *shown.names(step), "Why it matters"]
    body = table(head, rows, "Facts and settings", left=range(len(head))) if rows else Html("")
    return join(element("h3", escape(title)), body, element("p", escape(shown.platform_note(step))))
