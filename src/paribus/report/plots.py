"""The figures of a report, as Vega-Lite specifications: plain dicts, one function per figure.

A spec carries its data and a `description` for those who cannot see it, but neither width nor
theme: the page and the exporter set those. Colours hold 3:1 against white and against near-black,
and each arm has a shape of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.model import Case, Finding, Judgement, Metric, Point, Spread, State
from paribus.report import wording
from paribus.report.wording import clean
from paribus.units import format_value

Spec = dict[str, Any]

COLOURS = ("#7d8794", "#2f7fc1", "#c0589c", "#8f7a1e", "#1f9277", "#c4622d", "#7d6fd0")
SHAPES = ("circle", "diamond", "triangle-up", "square", "triangle-down", "triangle-right", "wedge")
UNDECIDED = "#8a8f98"
FAILED = "#d0432f"
BAND = {"color": UNDECIDED, "opacity": 0.22}
WARM_UP_OPACITY = 0.35
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"


@dataclass(frozen=True, slots=True)
class Panel:
    """The cases of one benchmark that share a figure: one metric, one sweep.

    `key` is the numeric case parameter on the x axis, None when there is none; `group` names the
    other parameters where they differ between panels ("" otherwise).
    """

    benchmark: str
    metric: Metric
    group: str
    key: str | None
    cases: tuple[Finding, ...]


def panels(judgement: Judgement, benchmark: str) -> tuple[Panel, ...]:
    """Return the panels of `benchmark` in the order of its cases: one or more per metric."""
    cases = judgement.of_benchmark(benchmark, judgement.cases)
    made = []
    for metric in dict.fromkeys(f.metric for f in cases):
        rows = [f for f in cases if f.metric == metric]
        key = _axis(rows)
        groups: dict[str, list[Finding]] = {}
        for row in rows:
            rest = Case(tuple(i for i in (row.case or Case()).items if i[0] != key))
            groups.setdefault(str(rest) if key else "", []).append(row)
        made += [
            Panel(benchmark, metric, name if len(groups) > 1 else "", key, tuple(group))
            for name, group in groups.items()
        ]
    return tuple(made)


def _axis(rows: Sequence[Finding]) -> str | None:
    """Return the numeric parameter with the most values: bytes where it is swept."""
    values: dict[str, set[float]] = {}
    for row in rows:
        for key, value in (row.case or Case()).items:
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                values.setdefault(key, set()).add(value)
    swept = {k: len(v) for k, v in values.items() if len(v) > 1}
    everywhere = [k for k in swept if all((r.case or Case()).get(k) is not None for r in rows)]
    if "bytes" in everywhere:
        return "bytes"
    return max(everywhere, key=lambda k: swept[k], default=None)


# --- absolute values ---------------------------------------------------------------------------


def curves(judgement: Judgement, panel: Panel) -> Spec:
    """Return the absolute values of all arms with their quartiles: curves, or dots without sweep.

    Both axes are logarithmic; a size of 0 stands half as far left as the smallest other one, and
    its label says 0.
    """
    rows = _absolute_rows(judgement, panel)
    title = f"{panel.metric.name} ({panel.metric.unit}), {wording.direction(panel.metric)}"
    told = "; ".join(f"{r['case']}, {r['arm']}: {r['shown']}" for r in rows)
    spec = _spec(f"{_title(panel)}: {panel.metric.name}", f"{title}. {told}")
    arms = _arm_channels(judgement)
    colour = {"color": arms["color"]}
    low, high = min(r["low"] for r in rows), max(r["high"] for r in rows)
    domain = _padded(low, high)
    scale: Spec = {"type": "log", "domain": domain, "nice": False}
    ticks: Spec = {"values": log_ticks(*domain), "title": clean(title), "format": "~g"}
    if panel.key is None:
        x = {"field": "value", "type": "quantitative", "scale": scale, "axis": ticks}
        y: Spec = {"field": "case", "type": "nominal", "title": None, "sort": None}
        offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": _arms(judgement)}}
        spread = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
        dots = {"x": x, "y": y, **offset}
        layers = [_layer({"type": "rule", "strokeWidth": 3, "opacity": 0.55}, spread, colour)]
        spec["height"] = {"step": 16}
    else:
        x = _sweep_axis(panel)
        y = {"field": "value", "type": "quantitative", "scale": scale, "axis": ticks}
        spread = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        dots = {"x": x, "y": y}
        layers = [
            _layer({"type": "area", "opacity": 0.25}, spread, colour),
            _layer({"type": "line", "strokeWidth": 1.5}, dots, colour),
        ]
        spec["height"] = 240
    tips = {"tooltip": _tips(case="case", arm="arm", shown="median launch", quartiles="quartiles")}
    layers.append(
        _layer({"type": "point", "filled": True, "opacity": 1, "size": 42}, dots, arms | tips)
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
            if spread is not None and (arm, finding.case) not in seen:
                seen.add((arm, finding.case))
                rows.append(_absolute_row(panel, finding, arm, spread))
    return rows


def _absolute_row(panel: Panel, finding: Finding, arm: str, spread: Spread) -> Spec:
    return {
        "arm": clean(arm),
        "case": wording.case_text(finding),
        "x": _x(panel, finding),
        "value": spread.median,
        "low": spread.low,
        "high": spread.high,
        "shown": clean(wording.value_text(spread, panel.metric)),
        "quartiles": f"{wording.spread_text(spread)}, {wording.count(spread.launches, 'launch')}",
    }


# --- ratios ------------------------------------------------------------------------------------


def ratios(judgement: Judgement, panel: Panel) -> Spec:
    """Return the ratio of every arm to the reference by case: intervals, and the margin shaded.

    Points whose verdict is open, or which their family does not support, are grey and hollow.
    """
    rows = [r for f in panel.cases if (r := _ratio_row(judgement, f, _x(panel, f)))]
    spec = _ratio_spec(judgement, rows, _title(panel), panel.metric)
    if panel.key is None:
        return _sideways(judgement, spec, rows, "case")
    title = _ratio_title(judgement, panel.metric)
    scale, ticks = _ratio_scale(rows)
    x = _sweep_axis(panel)
    axis = {**ticks, "title": title, "titleLimit": 230}
    y = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    layers = [_margin_band(rows, x, y), _one("y", y)]
    others = _arms(judgement)[1:]
    for index, arm in enumerate(others):
        nudge = {"xOffset": 5 * (index - (len(others) - 1) / 2)}
        only = [{"filter": {"field": "arm", "equal": arm}}]
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        for mark, channels in (
            ({"type": "rule", "strokeWidth": 2, "clip": True, **nudge}, whisker),
            (
                {"type": "point", "opacity": 1, "size": 55, "strokeWidth": 2, **nudge},
                {"x": x, "y": y},
            ),
        ):
            layer = _layer(mark, channels, _ratio_channels(judgement, points="size" in mark))
            layers.append(layer | {"transform": only})
    return spec | {"height": 240, "data": {"values": rows}, "layer": layers}


def overview(judgement: Judgement, better: str) -> Spec | None:
    """Return the headlines whose metric is better that way ("lower", "higher"), or None.

    The two directions never share a figure: left of 1 would mean better in one row and worse in
    the next.
    """
    heads = [h for h in judgement.headlines if h.metric.better == better]
    rows = [r for h in heads if (r := _ratio_row(judgement, h, None))]
    if not rows:
        return None
    spec = _ratio_spec(judgement, rows, f"Headlines where {better} is better", heads[0].metric)
    return _sideways(judgement, spec, rows, "benchmark")


def _ratio_row(judgement: Judgement, finding: Finding, x: float | None) -> Spec | None:
    comparison = finding.comparison
    if comparison is None:
        return None
    known = wording.has_interval(comparison)
    low, high = wording.band(finding.margin)
    head = wording.ratio_text(comparison.ratio)
    return {
        "benchmark": clean(finding.benchmark),
        "arm": clean(finding.arm),
        "case": wording.case_text(finding),
        "x": x,
        "ratio": comparison.ratio,
        "low": comparison.low if known else comparison.ratio,
        "high": comparison.high if known else comparison.ratio,
        "below": low,
        "above": high,
        "supported": wording.supported(judgement, finding) and known,
        "shown": f"{head} {wording.interval_text(comparison)}",
        "values": clean(wording.versus(finding, judgement.reference)),
        "verdict": finding.verdict.word.value,
    }


def _ratio_spec(judgement: Judgement, rows: list[Spec], what: str, metric: Metric) -> Spec:
    told = "; ".join(
        f"{r['benchmark']}, {r['case']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows
    )
    return _spec(f"{what}: ratio", f"{_ratio_title(judgement, metric)}. {told}")


def _ratio_title(judgement: Judgement, metric: Metric) -> str:
    others = _arms(judgement)[1:]
    arm = others[0] if len(others) == 1 else "arm"
    side = "below" if metric.better == "lower" else "above"
    return f"ratio {arm} / {clean(judgement.reference)} ({side} 1: {arm} is better)"


def _sideways(judgement: Judgement, spec: Spec, rows: list[Spec], field: str) -> Spec:
    """Return a ratio figure with a line per case or benchmark instead of a numeric axis."""
    scale, ticks = _ratio_scale(rows)
    title = spec["description"].split(". ", 1)[0]
    axis = {**ticks, "title": title, "titleLimit": 300}
    x = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    y = {"field": field, "type": "nominal", "title": None, "sort": None}
    offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": _arms(judgement)[1:]}}
    band = {"x": {**x, "field": "below"}, "x2": {"field": "above"}, "y": y}
    whisker = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
    layers = [
        _layer({"type": "bar", "size": 24, "clip": True, **BAND}, band, {}),
        _one("x", x),
        _layer(
            {"type": "rule", "strokeWidth": 2, "clip": True},
            whisker,
            _ratio_channels(judgement, points=False),
        ),
        _layer(
            {"type": "point", "opacity": 1, "size": 55, "strokeWidth": 2},
            {"x": x, "y": y, **offset},
            _ratio_channels(judgement, points=True),
        ),
    ]
    step = 28 if len(judgement.study.arms) == 2 else 16
    return spec | {"height": {"step": step}, "data": {"values": rows}, "layer": layers}


def _ratio_channels(judgement: Judgement, *, points: bool) -> Spec:
    arms = _arm_channels(judgement, reference=False)
    supported = {"test": "datum.supported"}
    colour = {"condition": {**supported, **arms["color"]}, "value": UNDECIDED}
    channels = {
        "color": colour,
        "tooltip": _tips(
            benchmark="benchmark", case="case", arm="arm", shown="ratio", values="median launches",
            verdict="verdict",
        ),
    }  # fmt: skip
    if points:
        filled = {"condition": {**supported, **arms["color"], "legend": None}, "value": "#0000"}
        channels |= {"shape": arms["shape"], "fill": filled}
    return channels


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


def _ratio_scale(rows: Iterable[Spec]) -> tuple[Spec, Spec]:
    """Return scale and axis for ratios: logarithmic, with 1, the margin and all ends in view."""
    listed = list(rows)
    ends = [r[k] for r in listed for k in ("low", "high", "below", "above")]
    domain = _padded(min(1.0, *ends), max(1.0, *ends))
    scale = {"type": "log", "domain": domain, "nice": False}
    return scale, {"values": log_ticks(*domain), "format": "~g"}


# --- launches over time ------------------------------------------------------------------------


def timeline(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return every launch of `benchmark` over time, relative to the reference; None without any.

    A launch that gave nothing is a cross at the bottom edge; warm-up launches are pale.
    """
    points = [p for p in judgement.points if p.benchmark == benchmark]
    if not points:
        return None
    divisor, unit = _time_unit(max(p.at_s for p in points))
    rows = [_point_row(p, divisor) for p in points]
    levels = [p.level for p in points if p.level is not None] or [1.0]
    domain = _padded(min(1.0, *levels), max(1.0, *levels))
    x = {
        "field": "at",
        "type": "quantitative",
        "axis": {"title": f"time since start ({unit})", "grid": False},
    }
    y = {
        "field": "level",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {
            "values": log_ticks(*domain),
            "format": "~g",
            "grid": True,
            "title": f"level / usual level of {clean(judgement.reference)}",
            "titleLimit": 200,
        },
    }
    tips = {
        "tooltip": _tips(launch="launch", block="block", arm="arm", shown="level", state="state")
    }
    pale = {"opacity": {"condition": {"test": "datum.warm", "value": WARM_UP_OPACITY}, "value": 1}}
    good = _layer(
        {"type": "point", "filled": True, "size": 38},
        {"x": x, "y": y},
        _arm_channels(judgement) | tips | pale,
    )
    bad = _layer(
        {"type": "point", "shape": "cross", "angle": 45, "size": 90, "filled": True, "opacity": 1}
        | {"color": FAILED},
        {"x": x, "y": {"value": {"expr": "height - 8"}}},
        tips,
    )
    broken = sum(p.state is not State.OK for p in points)
    told = f"{wording.count(len(points), 'launch')} over time, {broken} without usable output"
    return _spec(f"{clean(benchmark)}: every launch over time", told) | {
        "height": 170,
        "data": {"values": rows},
        "layer": [
            _one("y", y),
            good | {"transform": [{"filter": "isValid(datum.level)"}]},
            bad | {"transform": [{"filter": "!isValid(datum.level)"}]},
        ],
    }


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
    }


def _time_unit(longest_s: float) -> tuple[float, str]:
    for limit, divisor, unit in ((300, 1.0, "s"), (7200, 60.0, "min"), (172_800, 3600.0, "h")):
        if longest_s <= limit:
            return divisor, unit
    return 86_400.0, "d"


# --- shared parts ------------------------------------------------------------------------------


def _spec(title: str, description: str) -> Spec:
    return {"$schema": SCHEMA, "title": clean(title), "description": clean(description)}


def _title(panel: Panel) -> str:
    return clean(f"{panel.benchmark} ({panel.group})" if panel.group else panel.benchmark)


def _layer(mark: Spec, position: Spec, channels: Spec) -> Spec:
    return {"mark": mark, "encoding": {**position, **channels}}


def _arms(judgement: Judgement) -> list[str]:
    return [clean(a.name) for a in judgement.study.arms]


def _arm_channels(judgement: Judgement, *, reference: bool = True) -> Spec:
    """Return colour and shape by arm, the same in every figure of a report."""
    names = _arms(judgement)
    first = 0 if reference else 1
    legend = {"title": None, "orient": "top", "labelLimit": 150, "columns": 2}
    return {
        channel: {
            "field": "arm",
            "type": "nominal",
            "scale": {
                "domain": names[first:],
                "range": [palette[i % len(palette)] for i in range(len(names))][first:],
            },
            "legend": legend,
        }
        for channel, palette in (("color", COLOURS), ("shape", SHAPES))
    }


def _tips(**fields: str) -> list[Spec]:
    return [{"field": f, "type": "nominal", "title": title} for f, title in fields.items()]


def _x(panel: Panel, finding: Finding) -> float | None:
    if panel.key is None or finding.case is None:
        return None
    value = finding.case.get(panel.key)
    number = float(value) if isinstance(value, int | float) else 0.0
    return number if number > 0 else _place_of_zero(panel)


def _sweep_values(panel: Panel) -> list[float]:
    found = {f.case.get(panel.key) for f in panel.cases if f.case is not None and panel.key}
    return sorted(float(v) for v in found if isinstance(v, int | float))


def _place_of_zero(panel: Panel) -> float:
    return min(v for v in _sweep_values(panel) if v > 0) / 2


def _sweep_axis(panel: Panel) -> Spec:
    """Return the x axis of a sweep: logarithmic, ticks at measured points, names with units."""
    assert panel.key is not None
    key = panel.key
    names = {(v if v > 0 else _place_of_zero(panel)): v for v in _sweep_values(panel)}
    labels = ",".join(f"'{_digits(p)}':'{wording.tick_label(key, v)}'" for p, v in names.items())
    low, high = min(names), max(names)
    room = max(1.25, (high / low) ** 0.03)
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [low / room, high * room], "nice": False},
        "axis": {
            "title": "message size" if key == "bytes" else clean(key),
            "values": list(names),
            "labelExpr": f"{{{labels}}}[toString(datum.value)] || ''",
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "grid": False,
        },
    }


def _digits(number: float) -> str:
    """Return a number as JavaScript writes it: the key by which an axis finds its label."""
    return str(int(number)) if number.is_integer() else repr(number)


def _padded(low: float, high: float) -> tuple[float, float]:
    """Return (low, high) with room on both sides of a logarithmic axis."""
    room = max((high / low) ** 0.06, 1.004)
    return low / room, high * room


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between `low` and `high`, evenly enough for a logarithmic axis.

    >>> log_ticks(3, 4000)
    [10.0, 100.0, 1000.0]
    >>> log_ticks(0.97, 1.06)
    [0.98, 1.0, 1.02, 1.04, 1.06]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**e for e in range(first, last + 1) for s in steps]
        inside = [float(f"{t:.12g}") for t in ticks if low <= t <= high]
        if 3 <= len(inside) <= most:
            return inside
        if len(inside) < 3:
            return _even_ticks(low, high, most)
    return inside[:: math.ceil(len(inside) / most)]


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * size for s in (1, 2, 5, 10, 20) if (high - low) / (s * size) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
