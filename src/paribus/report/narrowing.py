"""How a headline's interval narrowed, look by look: a figure of every study that was measured."""

from __future__ import annotations

import math

from paribus.core import Comparison, Finding, Judgement
from paribus.report import lookup, wording
from paribus.report.axes import (
    Spec,
    arm_channels,
    layer,
    new_spec,
    ratio_scale,
    times_axis,
    tooltip,
)
from paribus.report.plots import equal, margin_band
from paribus.report.wording import clean


def figure(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return the intervals of the headline of `benchmark` over its blocks; None before three."""
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    rows = [
        _row(head, step.times(head.metric.better))
        for head in heads
        for step in head.history
        if head.verdict.size_known and step.low > 0 and math.isfinite(step.high)
    ]
    if len({row["blocks"] for row in rows}) < 3 or not lookup.measured(judgement):
        return None
    scale, ticks = ratio_scale(rows)
    ratio = {
        "field": "ratio",
        "type": "quantitative",
        "scale": scale,
        "axis": {**ticks, "title": times_axis(judgement)},
    }
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
    told = "; ".join(f"{row['arm']} after {row['blocks']}: {row['shown']}" for row in rows)
    title = f"{clean(benchmark)}: times as slow, by blocks"
    return new_spec(title, told) | {"height": 170, "data": {"values": rows}, "layer": layers}


def _row(head: Finding, step: Comparison) -> Spec:
    low, high = wording.band(head.margin)
    return {
        "arm": clean(head.arm),
        "blocks": step.blocks,
        "ratio": step.ratio,
        "low": step.low,
        "high": step.high,
        "below": low,
        "above": high,
        "shown": wording.estimate(step),
    }
