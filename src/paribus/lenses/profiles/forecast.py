"""Forecasts of applications: on a terminal, in HTML, as figures and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paribus.core import Judgement, format_changes
from paribus.lenses.profiles import prediction
from paribus.lenses.profiles.prediction import TITLE, Prediction
from paribus.report import export
from paribus.report.axes import COLOURS, Spec, layer, new_spec, tooltip
from paribus.report.figures import plain
from paribus.report.html import Figures
from paribus.report.markup import Html, join
from paribus.report.printing import heading, item
from paribus.report.rows import list_section
from paribus.report.stored import read_as
from paribus.report.wording import clean

if TYPE_CHECKING:
    from rich.console import Console

KINDS = ("computation", "in MPI")


def drawn(judgement: Judgement, some: Sequence[Prediction]) -> Iterator[tuple[str, Spec]]:
    """Yield a figure for each application that was replayed, with its name."""
    for name in dict.fromkeys(one.application for one in some if one.replayed):
        own = [one for one in some if one.application == name and one.replayed]
        yield f"forecast-{plain(name)}", figure(judgement, own)


def figure(judgement: Judgement, some: Sequence[Prediction]) -> Spec:
    """Return the bars of one application: time over that in the reference, with each range."""
    first = some[0]
    rows = list(_bars(clean(judgement.reference), [part.share for part in first.parts]))
    ranges = []
    for one in some:
        arm = clean(one.arm)
        rows += _bars(arm, [part.share * (part.ratio or 0.0) for part in one.parts])
        middle, low, high = format_changes((one.ratio, one.low, one.high))
        shown = f"{middle} ({low} to {high})"
        ranges.append({"arm": arm, "low": one.low, "high": one.high, "shown": shown})
    described = "; ".join(f"{one['arm']}: {one['shown']}" for one in ranges)
    title = f"{clean(first.application)}: {TITLE[0].lower()}{TITLE[1:]}"
    spec = new_spec(title, described)
    names = [clean(judgement.reference), *(one["arm"] for one in ranges)]
    axis = {"title": f"time, {names[0]} = 1", "format": "~g"}
    x: Spec = {"field": "from", "type": "quantitative", "axis": axis, "scale": {"zero": True}}
    y: Spec = {"field": "arm", "type": "nominal", "sort": names, "title": None}
    colour = {
        "color": {
            "field": "kind",
            "type": "nominal",
            "scale": {"domain": list(KINDS), "range": [COLOURS[0], COLOURS[1]]},
            "title": None,
        }
    }
    tips = tooltip(arm="arm", kind="part", shown="share of the reference's time")
    whisker = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    bars = layer(
        {"type": "bar", "height": 16}, {"y": y, "x": x, "x2": {"field": "to"}}, colour | tips
    )
    rule = layer(
        {"type": "rule", "strokeWidth": 2, "color": COLOURS[5]},
        whisker,
        tooltip(arm="arm", shown="forecast"),
    )
    layers = [bars | {"data": {"values": rows}}, rule | {"data": {"values": ranges}}]
    return spec | {"height": 28 * len(names), "layer": layers}


def _bars(arm: str, lengths: Sequence[float]) -> Iterator[Spec]:
    at = 0.0
    for kind, length in zip(KINDS, lengths, strict=True):
        yield {"arm": arm, "kind": kind, "from": at, "to": at + length, "shown": f"{length:.3g}"}
        at += length


def print_predictions(some: Sequence[Prediction], console: Console) -> None:
    """Print what is forecast, an arm after the other."""
    heading(console, prediction.TITLE)
    for one in some:
        item(console, prediction.said(one), name=one.arm)
        item(console, prediction.basis(one), style="dim")


def html_predictions(judgement: Judgement, some: Sequence[Prediction], figures: Figures) -> Html:
    """Return the section on forecasts."""
    lines = [(one.arm, prediction.said(one), f" {prediction.basis(one)}") for one in some]
    pictures = [figures.add(spec, spec["title"]) for _, spec in drawn(judgement, some)]
    return join(list_section(prediction.TITLE, "Forecast", lines), *pictures)


def forecast_json(one: Prediction) -> dict[str, Any]:
    """Return a forecast as JSON values; `text` is for people."""
    return {
        **{key: getattr(one, key) for key in ("arm", "application", "command")},
        "predicted": True,
        **export.plain(one),
        "text": f"{prediction.said(one)} {prediction.basis(one)}",
    }


def from_json(table: Mapping[str, Any]) -> Prediction:
    """Return a forecast that `forecast_json` wrote; raises ValueError for what is none."""
    found: Prediction = read_as(Prediction, table)
    if found.replayed and len(found.parts) != len(KINDS):
        raise ValueError("the forecast of a replay has computation and MPI")
    return found
