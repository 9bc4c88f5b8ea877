"""The figures of a report, as Vega-Lite specifications: plain dicts, one function per figure.

A spec carries its data and a `description` for those who cannot see it, but neither width nor
theme: the page and the exporter set those. Colours hold 3:1 against white and against near-black,
and each arm has a shape of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paribus.core import (
    Case,
    Comparison,
    Finding,
    Judgement,
    Ratio,
    Spread,
    Word,
    format_changes,
    format_value,
    lenses,
    slowness,
    units,
    usable,
)
from paribus.report import lookup, sentences, wording
from paribus.report.axes import (
    BAND,
    ROOFLINE,
    UNDECIDED,
    Panel,
    Spec,
    arm_channels,
    arm_names,
    ends_of,
    layer,
    log_axis,
    new_spec,
    panel_title,
    ratio_axis,
    sweep_axis,
    times_title,
    tooltip,
    x_of,
)
from paribus.report.wording import clean
from paribus.stats.verdict import word_of


def of_panel(judgement: Judgement, panel: Panel) -> Iterator[tuple[str, str, Spec]]:
    """Yield name, caption and specification of the figures of a panel: values, and ratios."""
    title = f"{panel.metric.name}{f', {panel.group}' if panel.group else ''}"
    if any(_finite(v) for f in panel.cases for v in (f.reference_value, f.arm_value)):
        unit = lookup.unit(judgement)
        caption = f"{title}: median {unit}; shaded: middle half of the {units.plural(unit)}"
        yield "absolute", caption, curves(judgement, panel)
    if any(map(slowness, panel.cases)):
        caption = f"{title}: times as slow; shaded: margin; grey and hollow: no verdict"
        yield "ratio", caption, ratios(judgement, panel)


def _finite(spread: Spread | None) -> bool:
    """Return whether a value can be drawn: that of launches that were cut off is infinite."""
    return spread is not None and math.isfinite(spread.low + spread.median + spread.high)


# --- absolute values ---------------------------------------------------------------------------


def curves(judgement: Judgement, panel: Panel) -> Spec:
    """Return the absolute values of all arms with their quartiles: curves, or dots without sweep.

    Both axes are logarithmic; a size of 0 stands half as far left as the smallest other one, and
    its label says 0.
    """
    rows = _absolute_rows(judgement, panel)
    title = f"{panel.metric.name} ({panel.metric.unit}), {wording.direction(panel.metric)}"
    reported = "; ".join(f"{r['case']}, {r['arm']}: {r['shown']}" for r in rows)
    spec = new_spec(f"{panel_title(panel)}: {panel.metric.name}", f"{title}. {reported}")
    arms = arm_channels(judgement)
    colour = {"color": arms["color"]}
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    values = log_axis("value", low, high, clean(title))
    if panel.key is None:
        x, y = values, {"field": "case", "type": "nominal", "title": None, "sort": None}
        offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": arm_names(judgement)}}
        spread = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
        dots = {"x": x, "y": y, **offset}
        layers = [layer({"type": "rule", "strokeWidth": 3, "opacity": 0.55}, spread, colour)]
        spec["height"] = 16 * len(arm_names(judgement)) * len({r["case"] for r in rows})
    else:
        x, y = sweep_axis(panel), values
        spread = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        dots = {"x": x, "y": y}
        layers = [
            layer({"type": "area", "opacity": 0.25}, spread, colour),
            layer({"type": "line", "strokeWidth": 1.5}, dots, colour),
        ]
        if panel.key == ROOFLINE:
            layers += _roof_layers(rows, panel.metric.unit, x, y, colour)
        spec["height"] = 240
    tips = tooltip(case="case", arm="arm", shown="median launch", quartiles="quartiles")
    layers.append(
        layer({"type": "point", "filled": True, "opacity": 1, "size": 42}, dots, arms | tips)
    )
    return spec | {"data": {"values": rows}, "layer": layers}


def _absolute_rows(judgement: Judgement, panel: Panel) -> list[Spec]:
    rows, unit = dict[tuple[str, Case | None], Spec](), lookup.unit(judgement)
    for f in panel.cases:
        for arm, spread in ((judgement.reference, f.reference_value), (f.arm, f.arm_value)):
            if spread is None or not _finite(spread) or (arm, f.case) in rows:
                continue
            rows[arm, f.case] = {
                "arm": clean(arm),
                "case": wording.case_text(f),
                "x": x_of(panel, f),
                "value": spread.median,
                "low": spread.low,
                "high": spread.high,
                "shown": clean(wording.value_text(spread, panel.metric)),
                "quartiles": f"{wording.spread_text(spread)}, {units.count(spread.launches, unit)}",
            }
    return [*rows.values()]


# --- ratios ------------------------------------------------------------------------------------


def ratios(judgement: Judgement, panel: Panel) -> Spec:
    """Return the ratios of every arm by case, as times as slow: intervals, and the margin shaded.

    Points whose verdict claims nothing are grey and hollow; without a known size none is drawn.
    """
    rows = [r for f in panel.cases if (r := _ratio_row(judgement, f, x_of(panel, f)))]
    spec = _ratio_spec(judgement, rows, f"{panel_title(panel)}: times as slow")
    if panel.key is None:
        return sideways(judgement, spec, rows, "case", times_title(judgement))
    x, y = sweep_axis(panel), ratio_axis(rows, times_title(judgement))
    layers = [margin_band(rows, x, y), equal("y", y)]
    others = arm_names(judgement)[1:]
    for index, arm in enumerate(others):
        nudge = {"xOffset": 5 * (index - (len(others) - 1) / 2)}
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        of_arm = [r for r in rows if r["arm"] == arm]
        layers += _interval_layers(judgement, of_arm, whisker, {"x": x, "y": y}, nudge)
    return spec | {"height": 240, "data": {"values": rows}, "layer": layers}


def overview(judgement: Judgement) -> Spec | None:
    """Return all headlines as ratios (times as slow); None if no size is known.

    With one arm a row has the colour of its verdict, with several that of its arm.
    """
    rows = [r for h in lookup.rows(judgement) if (r := _ratio_row(judgement, h, None))]
    if not rows:
        return None
    spec = _ratio_spec(judgement, rows, "Headlines, times as slow")
    spec = sideways(judgement, spec, rows, "benchmark", times_title(judgement))
    if len(judgement.study.arms) == 2:
        paint = {"field": "verdict", "type": "nominal", "legend": None, "scale": VERDICTS}
        for one in spec["layer"]:
            one["encoding"].pop("shape", None)
            if one["encoding"].get("color", {}).get("field") == "arm":
                one["encoding"] |= {"color": paint}
    return spec


VERDICTS = {
    "domain": ["faster", "slower", "equivalent", "reliability differs"],
    "range": ["#0b6b5b", "#a33d0b", "#2c4a86", "#86246f"],
}
"""The colours of verdicts, as page.css has them."""


def _ratio_row(judgement: Judgement, finding: Finding, x: float | None) -> Spec | None:
    times = slowness(finding)
    if times is None:
        return None
    known = wording.has_interval(times)
    return {
        "benchmark": clean(lookup.row_name(judgement, finding)),
        "arm": clean(finding.arm),
        "case": wording.case_text(finding),
        "x": x,
        **ends_of(times, finding.margin),
        "supported": finding.verdict.word in wording.DECIDED and known,
        "shown": wording.estimate(times),
        "values": clean(sentences.versus(finding, judgement.reference)),
        "verdict": finding.verdict.word.value,
    }


def _ratio_spec(judgement: Judgement, rows: list[Spec], what: str) -> Spec:
    reported = "; ".join(
        f"{r['benchmark']}, {r['case']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows
    )
    return new_spec(what, f"{' '.join(times_title(judgement))}. {reported}")


TIPS = tooltip(
    benchmark="benchmark", case="case", arm="arm", shown="times as slow",
    values="median launches", verdict="verdict",
)  # fmt: skip


def sideways(
    judgement: Judgement,
    spec: Spec,
    rows: list[Spec],
    field: str,
    title: Sequence[str],
    tips: Spec = TIPS,
) -> Spec:
    """Return a ratio figure with a line per case or benchmark instead of a numeric axis."""
    x = ratio_axis(rows, title)
    y = {"field": field, "type": "nominal", "title": None, "sort": None}
    offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": arm_names(judgement)[1:]}}
    band = {"x": {**x, "field": "below"}, "x2": {"field": "above"}, "y": y}
    whisker = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
    layers = [
        layer({"type": "bar", "size": 24, "clip": True, **BAND}, band, {}),
        equal("x", x),
        *_interval_layers(judgement, rows, whisker, {"x": x, "y": y, **offset}, {}, tips),
    ]
    height = 14 * (1 + len(judgement.study.arms[1:])) * len({r[field] for r in rows})
    return spec | {"height": height, "data": {"values": rows}, "layer": layers}


def _interval_layers(
    judgement: Judgement,
    rows: list[Spec],
    whisker: Spec,
    point: Spec,
    nudge: Spec,
    tips: Spec = TIPS,
) -> list[Spec]:
    """Return whiskers and points of `rows`: coloured where supported, else grey and hollow."""
    arms = arm_channels(judgement, reference=False)
    shape, colour = {"shape": arms["shape"]}, {"color": arms["color"]}
    line = {"type": "rule", "strokeWidth": 2, "clip": True, **nudge}
    dot = {"type": "point", "opacity": 1, "size": 55, "strokeWidth": 2, **nudge}
    layers = []
    for supported in (True, False):
        some = [r for r in rows if r["supported"] is supported]
        paint = colour if supported else {"color": {"value": UNDECIDED}}
        if some:
            layers += [
                layer(line, whisker, paint | tips) | {"data": {"values": some}},
                layer({**dot, "filled": supported}, point, shape | paint | tips)
                | {"data": {"values": some}},
            ]
    return layers


def margin_band(rows: list[Spec], x: Spec, y: Spec) -> Spec:
    """Return the margin as a shaded band, stepping where it depends on the case."""
    edges = {"y": {**y, "field": "below"}, "y2": {"field": "above"}}
    if len({r["below"] for r in rows}) == 1:
        first = {"values": rows[:1]}
        return {"data": first, "mark": {"type": "rect", "clip": True, **BAND}, "encoding": edges}
    mark = {"type": "area", "interpolate": "step", "clip": True, **BAND}
    return {"mark": mark, "encoding": {"x": x, **edges}}


def equal(channel: str, axis: Spec) -> Spec:
    """Return the line at a ratio of 1: no difference."""
    datum = {k: v for k, v in axis.items() if k != "field"} | {"datum": 1}
    mark = {"type": "rule", "strokeDash": [4, 3], "color": UNDECIDED}
    return {"mark": mark, "encoding": {channel: datum}}


# --- intervals by blocks -----------------------------------------------------------------------


def narrowing(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return the intervals of a headline over its blocks; None with fewer than three of them."""
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    rows = [
        _step(head, step.times(head.metric.better))
        for head in heads
        for step in head.history
        if head.verdict.size_known and step.low > 0 and math.isfinite(step.high)
    ]
    if len({row["blocks"] for row in rows}) < 3 or not lookup.measured(judgement):
        return None
    ratio = ratio_axis(rows, times_title(judgement))
    after = [row["blocks"] for row in rows]
    room = 0.02 * (max(after) - min(after))
    blocks = {
        "field": "blocks",
        "type": "quantitative",
        "scale": {"domain": [min(after) - room, max(after) + room], "nice": False},
        "axis": {"title": "blocks", "grid": False, "tickMinStep": 1},
    }
    tips = tooltip(arm="arm", blocks="blocks", shown="times as slow")
    paint = arm_channels(judgement, reference=False)
    ends = {"x": blocks, "y": {**ratio, "field": "low"}, "y2": {"field": "high"}}
    dot = {"type": "point", "filled": True, "size": 38}
    layers = [
        margin_band(rows, blocks, ratio),
        equal("y", ratio),
        layer({"type": "area", "opacity": 0.18, "clip": True}, ends, {"color": paint["color"]}),
        layer({"type": "line", "strokeWidth": 1}, {"x": blocks, "y": ratio}, paint),
        layer(dot, {"x": blocks, "y": ratio}, paint | tips),
    ]
    reported = "; ".join(f"{row['arm']} after {row['blocks']}: {row['shown']}" for row in rows)
    title = f"{clean(benchmark)}: times as slow, by blocks"
    return new_spec(title, reported) | {"height": 170, "data": {"values": rows}, "layer": layers}


def _step(head: Finding, step: Comparison) -> Spec:
    row = {"arm": clean(head.arm), "blocks": step.blocks, "shown": wording.estimate(step)}
    return row | ends_of(step, head.margin)


# --- time, cost and energy ---------------------------------------------------------------------

OF_WORK = "Time, cost and energy of a unit of work"


def spent(judgement: Judgement) -> Spec | None:
    """Return the ratios of time, cost and energy to the reference, below 1 if the arm needs less.

    None without a price, and if no node counts its energy.
    """
    rows = [*_spent_rows(judgement)]
    if not rows:
        return None
    reported = "; ".join(f"{r['line']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows)
    spec = new_spec(OF_WORK, f"Times as much as the reference, above 1 is more. {reported}")
    title = f"times as much as {clean(judgement.reference)}"
    tips = tooltip(line="what", arm="arm", shown="change", verdict="verdict")
    return sideways(judgement, spec, rows, "line", (title, "(above 1: it takes more)"), tips)


def _spent_rows(judgement: Judgement) -> Iterator[Spec]:
    beside = [one for lens, rows in lenses(judgement) for one in lens.ratios(judgement, rows)]
    for head in judgement.headlines:
        of_head = [one for one in beside if (one.benchmark, one.arm) == (head.benchmark, head.arm)]
        known = usable(head)
        if known is not None and of_head:
            times = known.times(head.metric.better)
            ends = (times.ratio, times.low, times.high)
            word = word_of(times.low, times.high, head.margin)
            judged = (head.margin, str(word), word is not Word.UNDECIDED)
            yield _spent_row(Ratio(head.benchmark, head.arm, "time", *ends, *judged))
        yield from map(_spent_row, of_head)


def _spent_row(one: Ratio) -> Spec:
    middle, least, most = format_changes((one.ratio, one.low, one.high))
    return {
        "line": f"{clean(one.benchmark)}: {one.what}",
        "arm": clean(one.arm),
        **ends_of(one, one.margin),
        "supported": one.decided,
        "shown": f"{middle} ({least} to {most})",
        "verdict": one.word,
    }


# --- rooflines ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Roof:
    """The roofline of an arm: limited by memory up to the ridge, then by the processor."""

    arm: str
    bandwidth: float  # of memory, in GB/s
    peak: float  # of the processor, in the metric's unit

    @property
    def ridge(self) -> float:
        """The intensity, in operations per byte, above which the processor limits."""
        return self.peak / self.bandwidth


def roofs(rows: Sequence[Spec]) -> list[Roof]:
    """Return the roof of each arm of a figure's rows: the best that its points reached.

    A speed in G operations per second, divided by operations per byte, is in GB/s.
    """
    found = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        of_arm = [row for row in rows if row["arm"] == arm and row["x"]]
        bandwidth = max(row["value"] / row["x"] for row in of_arm)
        found.append(Roof(arm, bandwidth, max(row["value"] for row in of_arm)))
    return found


def roof_text(roof: Roof, unit: str) -> str:
    """Return bandwidth, peak and ridge of a roof in words."""
    return (
        f"{roof.arm}: {format_value(roof.bandwidth)} GB/s, {format_value(roof.peak)} {unit},"
        f" ridge at {format_value(roof.ridge)} per byte"
    )


def _roof_layers(rows: Sequence[Spec], unit: str, x: Spec, y: Spec, colour: Spec) -> Iterator[Spec]:
    """Yield layers with the roofs as dashed lines, and with their figures in the free corner."""
    found = roofs(rows)
    low, high = min(row["x"] for row in rows), max(row["x"] for row in rows)
    lines = [
        {"arm": roof.arm, "x": at, "value": min(roof.peak, roof.bandwidth * at)}
        for roof in found
        for at in sorted({low, min(max(roof.ridge, low), high), high})
    ]
    dashed = {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5}
    yield layer(dashed, {"x": x, "y": y}, colour) | {"data": {"values": lines}}
    for place, roof in enumerate(reversed(found)):
        mark = {"type": "text", "text": roof_text(roof, unit), "align": "right", "fontSize": 11}
        at = {
            "x": {"value": {"expr": "width - 4"}},
            "y": {"value": {"expr": f"height - {10 + 15 * place}"}},
        }
        yield layer(mark, at, colour) | {"data": {"values": [{"arm": roof.arm}]}}
