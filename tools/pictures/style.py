"""What the pictures share: style, axes, bands and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.core import Comparison
from paribus.report.axes import BAND, COLOURS, SHAPES, UNDECIDED, Spec
from paribus.report.figures import CONFIG, INK

A, B = COLOURS[0], COLOURS[5]

GOOD = COLOURS[1]

QUIET: dict[str, Any] = {"aria": False}

STYLE: dict[str, Any] = {
    **CONFIG,
    "padding": 10,
    "mark": QUIET,
    "axis": CONFIG["axis"] | QUIET | {"labelFlush": False},
    "legend": CONFIG["legend"]
    | QUIET
    | {"orient": "top", "title": None, "symbolOpacity": 1, "labelLimit": 300},
    "title": CONFIG["title"] | QUIET | {"subtitleColor": INK, "subtitleFontSize": 11},
    "header": QUIET,
}


def paint(names: Sequence[str], colours: Sequence[str], field: str = "what") -> Spec:
    """Return the channels that colour and shape `field`, with one legend for both."""
    return {
        channel: {
            "field": field,
            "type": "nominal",
            "scale": {"domain": list(names), "range": list(palette[: len(names)])},
        }
        for channel, palette in (("color", colours), ("shape", SHAPES))
    }


def coloured(channels: Spec) -> Spec:
    """Return the colour alone: for lines, which have no shape."""
    return {"color": channels["color"]}


def beside(description: str, panels: Sequence[Spec]) -> Spec:
    """Return panels in a row, their titles at one height."""
    return {"description": description, "hconcat": list(panels), "bounds": "flush", "spacing": 50}


def axis(field: str, title: str | None, domain: Sequence[float] | None = None, **more: Any) -> Spec:
    """Return a quantitative channel; `more` goes to its axis."""
    scale: Spec = {"zero": False, "nice": False, "clamp": True}
    if domain:
        scale["domain"] = list(domain)
    if more.pop("log", False):
        scale["type"] = "log"
    return {"field": field, "type": "quantitative", "scale": scale, "axis": {"title": title} | more}


def line_at(channel: str, value: float) -> Spec:
    """Return a dashed line, such as at a ratio of 1."""
    mark = {"type": "rule", "strokeDash": [4, 3], "color": UNDECIDED}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {channel: {"datum": value}}}


def band(channel: str, low: float, high: float) -> Spec:
    """Return a shaded band, such as the margin."""
    ends = {channel: {"datum": low}, f"{channel}2": {"datum": high}}
    return {"data": {"values": [{}]}, "mark": {"type": "rect", **BAND}, "encoding": ends}


def reported(found: Comparison) -> str:
    return f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]"


def excludes_one(found: Comparison) -> bool:
    return not found.low <= 1 <= found.high


def intervals(x: Spec, y: Spec, colours: Spec) -> list[Spec]:
    """Return the layers of intervals from `low` to `high` with a point at `ratio`."""
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 3},
            "encoding": {"x": x, "y": y, "y2": {"field": "high"}, **coloured(colours)},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1},
            "encoding": {"x": x, "y": {**y, "field": "ratio"}, **colours},
        },
    ]
