"""The figure of what a unit of work takes in each arm: time, money and energy, each as a ratio."""

from __future__ import annotations

from collections.abc import Iterator

from paribus.core import Judgement, Ratio, Word, format_changes, lenses, usable
from paribus.report.axes import (
    BAND,
    UNDECIDED,
    Spec,
    arm_channels,
    arm_names,
    layer,
    new_spec,
    ratio_scale,
    tooltip,
)
from paribus.report.wording import band, clean
from paribus.stats.verdict import word_of

TITLE = "Time, cost and energy of a unit of work"


def figure(judgement: Judgement) -> Spec | None:
    """Return the ratios of arm to reference with their intervals, below 1 where it is less.

    None without a price, and where no node counts its energy.
    """
    rows = [*_rows(judgement)]
    if not rows:
        return None
    told = "; ".join(f"{r['line']}, {r['arm']}: {r['shown']}, {r['verdict']}" for r in rows)
    spec = new_spec(TITLE, f"Ratio of arm to reference, below 1 is less. {told}")
    scale, ticks = ratio_scale(rows)
    others = arm_names(judgement)[1:]
    title = f"ratio {others[0] if len(others) == 1 else 'arm'} / {clean(judgement.reference)}"
    axis = {**ticks, "title": [title, "(below 1: it takes less)"], "titleLimit": 320}
    x = {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis}
    y = {"field": "line", "type": "nominal", "title": None, "sort": None}
    offset = {"yOffset": {"field": "arm", "type": "nominal", "sort": others}}
    one = {"x": {"datum": 1, "type": "quantitative", "scale": scale, "axis": axis}}
    margin = {"x": {**x, "field": "below"}, "x2": {"field": "above"}, "y": y}
    whisker = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, **offset}
    arms = arm_channels(judgement, reference=False)
    tips = tooltip(line="what", arm="arm", shown="change", verdict="verdict")
    layers = [
        layer({"type": "bar", "size": 24, "clip": True, **BAND}, margin, {}),
        layer({"type": "rule", "strokeDash": [4, 3], "color": UNDECIDED}, one, {}),
    ]
    for decided in (True, False):
        some = {"data": {"values": [r for r in rows if r["decided"] is decided]}}
        paint = {"color": arms["color"]} if decided else {"color": {"value": UNDECIDED}}
        dot = {"type": "point", "opacity": 1, "size": 55, "strokeWidth": 2, "filled": decided}
        if some["data"]["values"]:
            layers += [
                layer({"type": "rule", "strokeWidth": 2}, whisker, paint | tips) | some,
                layer(dot, {"x": x, "y": y, **offset}, {"shape": arms["shape"]} | paint | tips)
                | some,
            ]
    height = 14 * (1 + len(others)) * len({r["line"] for r in rows})
    return spec | {"height": height, "data": {"values": rows}, "layer": layers}


def _rows(judgement: Judgement) -> Iterator[Spec]:
    beside = [one for lens, rows in lenses(judgement) for one in lens.ratios(judgement, rows)]
    for head in judgement.headlines:
        mine = [one for one in beside if (one.benchmark, one.arm) == (head.benchmark, head.arm)]
        known = usable(head)
        if known is not None and mine:
            ends = (known.ratio, known.low, known.high)
            if head.metric.better != "lower":
                ends = (1 / known.ratio, 1 / known.high, 1 / known.low)
            word = word_of(ends[1], ends[2], head.margin)
            said = (head.margin, str(word), word is not Word.UNDECIDED)
            yield _row(Ratio(head.benchmark, head.arm, "time", *ends, *said))
        yield from map(_row, mine)


def _row(one: Ratio) -> Spec:
    middle, least, most = format_changes((one.ratio, one.low, one.high))
    below, above = band(one.margin)
    return {
        "line": f"{clean(one.benchmark)}: {one.what}",
        "arm": clean(one.arm),
        **{key: getattr(one, key) for key in ("ratio", "low", "high")},
        "below": below,
        "above": above,
        "decided": one.decided,
        "shown": f"{middle} ({least} to {most})",
        "verdict": one.word,
    }
