"""The figures of a report, as Vega-Lite specifications: plain dicts, one function per figure.

A spec carries its data and a `description` for those who cannot see it, but neither width nor
theme: the page and the exporter set those. Colours hold 3:1 against white and against near-black,
and each arm has a shape of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paribus.core import Finding, Judgement, Metric, Point, Spread, format_value, units
from paribus.report import lookup, roofline, sentences, wording
from paribus.report.axes import (
    BAND,
    FAILED,
    UNDECIDED,
    WARM_UP_OPACITY,
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
    tooltip,
    x_of,
)
from paribus.report.wording import clean
from paribus.words.values import flag_of


def has_values(cases: Sequence[Finding]) -> bool:
    """Return whether any case has an absolute value to draw."""
    return any(_finite(v) for f in cases for v in (f.reference_value, f.arm_value))


def has_ratios(cases: Sequence[Finding]) -> bool:
    """Return whether any case has a ratio to draw: one that its verdict stands by."""
    return any(_drawable(f) for f in cases)


def _finite(spread: Spread | None) -> bool:
    """Return whether a value can be drawn: a launch that was cut off has none."""
    return spread is not None and math.isfinite(spread.low + spread.median + spread.high)


def _drawable(f: Finding) -> bool:
    ratio = f.comparison.ratio if f.comparison is not None and f.verdict.size_known else 0.0
    return ratio > 0 and math.isfinite(ratio)


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
        if roofline.is_roofline(panel):
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
    """Return the ratio of every arm to the reference by case: intervals, and the margin shaded.

    Points whose verdict claims nothing are grey and hollow; where no size is known, none is drawn.
    """
    rows = [r for f in panel.cases if (r := _ratio_row(judgement, f, x_of(panel, f)))]
    spec = _ratio_spec(judgement, rows, panel_title(panel), panel.metric)
    if panel.key is None:
        return _sideways(judgement, spec, rows, "case", panel.metric)
    title = list(_ratio_title(judgement, panel.metric))
    scale, ticks = ratio_scale(rows)
    x = sweep_axis(panel)
    axis = {**ticks, "title": title, "titleLimit": 240}
    y = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    layers = [_margin_band(rows, x, y), _one("y", y)]
    others = arm_names(judgement)[1:]
    for index, arm in enumerate(others):
        nudge = {"xOffset": 5 * (index - (len(others) - 1) / 2)}
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        mine = [r for r in rows if r["arm"] == arm]
        layers += _interval_layers(judgement, mine, whisker, {"x": x, "y": y}, nudge)
    return spec | {"height": 240, "data": {"values": rows}, "layer": layers}


def overview(judgement: Judgement, better: str) -> Spec | None:
    """Return the rows of the verdicts whose metric is better that way ("lower", "higher"), or None.

    The two directions never share a figure: left of 1 would mean better in one row and worse in
    the next.
    """
    heads = [h for h in lookup.rows(judgement) if h.metric.better == better]
    rows = [r for h in heads if (r := _ratio_row(judgement, h, None))]
    if not rows:
        return None
    spec = _ratio_spec(judgement, rows, f"Headlines where {better} is better", heads[0].metric)
    return _sideways(judgement, spec, rows, "benchmark", heads[0].metric)


def _ratio_row(judgement: Judgement, finding: Finding, x: float | None) -> Spec | None:
    comparison = finding.comparison
    if comparison is None or not _drawable(finding):
        return None
    known = wording.has_interval(comparison)
    low, high = wording.band(finding.margin)
    return {
        "benchmark": clean(lookup.row_name(judgement, finding)),
        "arm": clean(finding.arm),
        "case": wording.case_text(finding),
        "x": x,
        "ratio": comparison.ratio,
        "low": comparison.low if comparison.low > 0 else comparison.ratio,
        "high": comparison.high if math.isfinite(comparison.high) else comparison.ratio,
        "below": low,
        "above": high,
        "supported": finding.verdict.word in wording.DECIDED and known,
        "shown": wording.estimate_text(finding),
        "values": clean(sentences.versus(finding, judgement.reference)),
        "verdict": finding.verdict.word.value,
    }


def _ratio_spec(judgement: Judgement, rows: list[Spec], what: str, metric: Metric) -> Spec:
    told = "; ".join(
        f"{r['benchmark']}, {r['case']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows
    )
    title = " ".join(_ratio_title(judgement, metric))
    return new_spec(f"{what}: ratio", f"{title}. {told}")


def _ratio_title(judgement: Judgement, metric: Metric) -> tuple[str, str]:
    """Return what a ratio divides, and which side of 1 is better."""
    others = arm_names(judgement)[1:]
    arm = others[0] if len(others) == 1 else "arm"
    side = "below" if metric.better == "lower" else "above"
    return f"ratio {arm} / {clean(judgement.reference)}", f"({side} 1: {arm} is better)"


def _sideways(
    judgement: Judgement, spec: Spec, rows: list[Spec], field: str, metric: Metric
) -> Spec:
    """Return a ratio figure with a line per case or benchmark instead of a numeric axis."""
    scale, ticks = ratio_scale(rows)
    axis = {**ticks, "title": list(_ratio_title(judgement, metric)), "titleLimit": 320}
    x = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    y = {"field": field, "type": "nominal", "title": None, "sort": None}
    offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": arm_names(judgement)[1:]}}
    band = {"x": {**x, "field": "below"}, "x2": {"field": "above"}, "y": y}
    whisker = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
    layers = [
        layer({"type": "bar", "size": 24, "clip": True, **BAND}, band, {}),
        _one("x", x),
        *_interval_layers(judgement, rows, whisker, {"x": x, "y": y, **offset}, {}),
    ]
    height = 14 * (1 + len(judgement.study.arms[1:])) * len({r[field] for r in rows})
    return spec | {"height": height, "data": {"values": rows}, "layer": layers}


def _interval_layers(
    judgement: Judgement, rows: list[Spec], whisker: Spec, point: Spec, nudge: Spec
) -> list[Spec]:
    """Return whiskers and points of `rows`: coloured where supported, else grey and hollow."""
    arms = arm_channels(judgement, reference=False)
    shape, colour = {"shape": arms["shape"]}, {"color": arms["color"]}
    tips = tooltip(
        benchmark="benchmark", case="case", arm="arm", shown="ratio", values="median launches",
        verdict="verdict",
    )  # fmt: skip
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


def _margin_band(rows: list[Spec], x: Spec, y: Spec) -> Spec:
    """Return the margin as a shaded band, stepping where it depends on the case."""
    edges = {"y": {**y, "field": "below"}, "y2": {"field": "above"}}
    if len({r["below"] for r in rows}) == 1:
        first = {"values": rows[:1]}
        return {"data": first, "mark": {"type": "rect", "clip": True, **BAND}, "encoding": edges}
    mark = {"type": "area", "interpolate": "step", "clip": True, **BAND}
    return {"mark": mark, "encoding": {"x": x, **edges}}


def _one(channel: str, axis: Spec) -> Spec:
    """Return the line at a ratio of 1: no difference."""
    datum = {k: v for k, v in axis.items() if k != "field"} | {"datum": 1}
    mark = {"type": "rule", "strokeDash": [4, 3], "color": UNDECIDED}
    return {"mark": mark, "encoding": {channel: datum}}


# --- launches over time ------------------------------------------------------------------------

MOST_POINTS = 20_000
"""Launches of a judgement beyond which there is no time axis: a page could not show it."""


def timeline(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return every launch of `benchmark` over time, relative to the reference; None without any.

    None also where the judgement has more than MOST_POINTS. A launch that gave nothing is a cross
    at the bottom edge; warm-up launches are pale; one with a flag has a ring around it.
    """
    points = [p for p in judgement.points if p.benchmark == benchmark]
    if not points or len(judgement.points) > MOST_POINTS:
        return None
    divisor, unit = _time_unit(max(p.at_s for p in points))
    rows = [_point_row(p, divisor) for p in points]
    x, y = _time_axis(max(r["at"] for r in rows) or 1.0, unit), _level_axis(judgement, points)
    tips = tooltip(
        launch="launch", block="block", arm="arm", shown="level", state="state", flag="unusual"
    )
    pale = {"opacity": {"condition": {"test": "datum.warm", "value": WARM_UP_OPACITY}, "value": 1}}
    good = layer(
        {"type": "point", "filled": True, "size": 38},
        {"x": x, "y": y},
        arm_channels(judgement) | tips | pale,
    )
    bad = layer(
        {"type": "point", "shape": "cross", "angle": 45, "size": 90, "filled": True, "opacity": 1}
        | {"color": FAILED},
        {"x": x, "y": {"value": {"expr": "height - 8"}}},
        tips,
    )
    broken = [r for r in rows if r["level"] is None]
    told = (
        f"{units.count(len(points), 'launch')} over time, {len(broken)} without usable output, "
        f"{sum(bool(flag_of(p)) for p in points)} unusual"
    )
    usable = [r for r in rows if r["level"] is not None]
    layers = [_one("y", y)]
    if usable:
        layers.append(good | {"data": {"values": usable}})
    ringed = [r for r in usable if r["flag"]]
    if ringed:
        layers.append(_rings(x, y, tips) | {"data": {"values": ringed}})
    if broken:
        layers.append(bad | {"data": {"values": broken}})
    title = f"{clean(benchmark)}: every launch over time"
    return new_spec(title, told) | {"height": 170, "data": {"values": rows}, "layer": layers}


def _time_axis(last: float, unit: str) -> Spec:
    """Return the axis of the time since the start, to `last`, in `unit`."""
    return {
        "field": "at",
        "type": "quantitative",
        "scale": {"domain": [-0.02 * last, 1.02 * last], "nice": False},
        "axis": {"title": f"time since start ({unit})", "grid": False, "tickCount": 8},
    }


def _level_axis(judgement: Judgement, points: Sequence[Point]) -> Spec:
    """Return the axis of launches' levels, relative to the reference's usual one."""
    levels = [p.level for p in points if p.level is not None] or [1.0]
    domain = padded(min(1.0, *levels), max(1.0, *levels))
    return {
        "field": "level",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {
            "values": log_ticks(*domain),
            "format": ",~g",
            "grid": True,
            "title": ["level / usual level", f"of {clean(judgement.reference)}"],
            "titleLimit": 170,
        },
    }


def _rings(x: Spec, y: Spec, tips: Spec) -> Spec:
    """Return the layer that draws a ring around unusual launches."""
    mark = {"type": "point", "filled": False, "size": 150, "strokeWidth": 2, "opacity": 1}
    return layer(mark | {"color": FAILED}, {"x": x, "y": y}, tips)


def _point_row(point: Point, divisor: float) -> Spec:
    warm = point.block == wording.WARM_UP
    return {
        "launch": point.number,
        "block": "warm-up (not counted)" if warm else str(point.block),
        "arm": clean(point.arm),
        "at": point.at_s / divisor,
        "level": point.level,
        "warm": warm,
        "shown": "none" if point.level is None else format_value(point.level),
        "state": point.state.value,
        "flag": clean(flag_of(point)),
    }


def _time_unit(longest_s: float) -> tuple[float, str]:
    for limit, divisor, unit in ((300, 1.0, "s"), (7200, 60.0, "min"), (172_800, 3600.0, "h")):
        if longest_s <= limit:
            return divisor, unit
    return 86_400.0, "d"
