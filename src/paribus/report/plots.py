"""The figures of a report, as Vega-Lite specifications: plain dicts, one function per figure.

A spec carries its data and a `description` for those who cannot see it, but neither width nor
theme: the page and the exporter set those. Colours hold 3:1 against white and against near-black,
and each arm has a shape of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paribus.core import Finding, Judgement, Spread, slowness, units
from paribus.report import lookup, sentences, wording
from paribus.report.axes import (
    BAND,
    ROOFLINE,
    UNDECIDED,
    Panel,
    Spec,
    arm_channels,
    arm_names,
    layer,
    log_ticks,
    new_spec,
    padded,
    panel_title,
    ratio_scale,
    sweep_axis,
    times_axis,
    tooltip,
    x_of,
)
from paribus.report.wording import clean


def has_values(cases: Sequence[Finding]) -> bool:
    """Return whether any case has an absolute value to draw."""
    return any(_finite(v) for f in cases for v in (f.reference_value, f.arm_value))


def has_ratios(cases: Sequence[Finding]) -> bool:
    """Return whether any case has a ratio to draw: one that its verdict stands by."""
    return any(map(slowness, cases))


def _finite(spread: Spread | None) -> bool:
    """Return whether a value can be drawn: a launch that was cut off has none."""
    return spread is not None and math.isfinite(spread.low + spread.median + spread.high)


# --- absolute values ---------------------------------------------------------------------------


def curves(judgement: Judgement, panel: Panel) -> Spec:
    """Return the absolute values of all arms with their quartiles: curves, or dots without sweep.

    Both axes are logarithmic; a size of 0 stands half as far left as the smallest other one, and
    its label says 0.
    """
    rows = _absolute_rows(judgement, panel)
    title = f"{panel.metric.name} ({panel.metric.unit}), {wording.direction(panel.metric)}"
    told = "; ".join(f"{r['case']}, {r['arm']}: {r['shown']}" for r in rows)
    spec = new_spec(f"{panel_title(panel)}: {panel.metric.name}", f"{title}. {told}")
    arms = arm_channels(judgement)
    colour = {"color": arms["color"]}
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    domain = padded(low, high)
    scale: Spec = {"type": "log", "domain": domain, "nice": False}
    ticks: Spec = {"values": log_ticks(*domain), "title": clean(title), "format": ",~g"}
    if panel.key is None:
        x = {"field": "value", "type": "quantitative", "scale": scale, "axis": ticks}
        y: Spec = {"field": "case", "type": "nominal", "title": None, "sort": None}
        offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": arm_names(judgement)}}
        spread = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
        dots = {"x": x, "y": y, **offset}
        layers = [layer({"type": "rule", "strokeWidth": 3, "opacity": 0.55}, spread, colour)]
        spec["height"] = 16 * len(arm_names(judgement)) * len({r["case"] for r in rows})
    else:
        x = sweep_axis(panel)
        y = {"field": "value", "type": "quantitative", "scale": scale, "axis": ticks}
        spread = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        dots = {"x": x, "y": y}
        layers = [
            layer({"type": "area", "opacity": 0.25}, spread, colour),
            layer({"type": "line", "strokeWidth": 1.5}, dots, colour),
        ]
        if panel.key == ROOFLINE:
            from paribus.report import roofline

            layers += roofline.layers(rows, panel.metric.unit, x, y, colour)
        spec["height"] = 240
    tips = tooltip(case="case", arm="arm", shown="median launch", quartiles="quartiles")
    layers.append(
        layer({"type": "point", "filled": True, "opacity": 1, "size": 42}, dots, arms | tips)
    )
    return spec | {"data": {"values": rows}, "layer": layers}


def _absolute_rows(judgement: Judgement, panel: Panel) -> list[Spec]:
    rows = []
    seen = set()
    for finding in panel.cases:
        for arm, spread in (
            (judgement.reference, finding.reference_value),
            (finding.arm, finding.arm_value),
        ):
            if spread is not None and _finite(spread) and (arm, finding.case) not in seen:
                seen.add((arm, finding.case))
                rows.append(_absolute_row(panel, finding, arm, spread, lookup.unit(judgement)))
    return rows


def _absolute_row(panel: Panel, finding: Finding, arm: str, spread: Spread, unit: str) -> Spec:
    return {
        "arm": clean(arm),
        "case": wording.case_text(finding),
        "x": x_of(panel, finding),
        "value": spread.median,
        "low": spread.low,
        "high": spread.high,
        "shown": clean(wording.value_text(spread, panel.metric)),
        "quartiles": f"{wording.spread_text(spread)}, {units.count(spread.launches, unit)}",
    }


# --- ratios ------------------------------------------------------------------------------------


def ratios(judgement: Judgement, panel: Panel) -> Spec:
    """Return how many times as slow every arm is by case: intervals, and the margin shaded.

    Points whose verdict claims nothing are grey and hollow; where no size is known, none is drawn.
    """
    rows = [r for f in panel.cases if (r := _ratio_row(judgement, f, x_of(panel, f)))]
    spec = _ratio_spec(judgement, rows, f"{panel_title(panel)}: times as slow")
    if panel.key is None:
        return sideways(judgement, spec, rows, "case", times_axis(judgement))
    scale, ticks = ratio_scale(rows)
    x = sweep_axis(panel)
    axis = {**ticks, "title": times_axis(judgement), "titleLimit": 240}
    y = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    layers = [margin_band(rows, x, y), equal("y", y)]
    others = arm_names(judgement)[1:]
    for index, arm in enumerate(others):
        nudge = {"xOffset": 5 * (index - (len(others) - 1) / 2)}
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        mine = [r for r in rows if r["arm"] == arm]
        layers += _interval_layers(judgement, mine, whisker, {"x": x, "y": y}, nudge)
    return spec | {"height": 240, "data": {"values": rows}, "layer": layers}


def overview(judgement: Judgement) -> Spec | None:
    """Return the rows of the verdicts, as times as slow; None without a size.

    With one arm a row has the colour of its verdict, with several that of its arm.
    """
    rows = [r for h in lookup.rows(judgement) if (r := _ratio_row(judgement, h, None))]
    if not rows:
        return None
    spec = _ratio_spec(judgement, rows, "Headlines, times as slow")
    spec = sideways(judgement, spec, rows, "benchmark", times_axis(judgement))
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
    low, high = wording.band(finding.margin)
    return {
        "benchmark": clean(lookup.row_name(judgement, finding)),
        "arm": clean(finding.arm),
        "case": wording.case_text(finding),
        "x": x,
        "ratio": times.ratio,
        "low": times.low if times.low > 0 else times.ratio,
        "high": times.high if math.isfinite(times.high) else times.ratio,
        "below": low,
        "above": high,
        "supported": finding.verdict.word in wording.DECIDED and known,
        "shown": wording.estimate(times),
        "values": clean(sentences.versus(finding, judgement.reference)),
        "verdict": finding.verdict.word.value,
    }


def _ratio_spec(judgement: Judgement, rows: list[Spec], what: str) -> Spec:
    told = "; ".join(
        f"{r['benchmark']}, {r['case']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows
    )
    return new_spec(what, f"{' '.join(times_axis(judgement))}. {told}")


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
    scale, ticks = ratio_scale(rows)
    axis = {**ticks, "title": list(title), "titleLimit": 320}
    x = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
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
