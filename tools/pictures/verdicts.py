"""Pictures of verdicts: the regions of the margin, and the looks of one study."""

from __future__ import annotations

import math
import textwrap

from paribus.core import Comparison
from paribus.report.axes import COLOURS, UNDECIDED, Spec
from paribus.report.figures import INK
from paribus.stats.verdict import judge
from paribus.words.values import reason_of
from pictures.style import GOOD, B, axis, band, beside, coloured, intervals, line_at, paint
from validation.studies import LOOKS, MARGIN, study, verdict_at

STUDIES = 1000

EXAMPLES = (
    (0.940, 0.926, 0.954),
    (1.003, 0.990, 1.016),
    (1.012, 1.006, 1.018),
    (1.021, 1.017, 1.025),
    (1.016, 0.994, 1.038),
    (1.060, 1.023, 1.098),
    (1.045, 1.031, 1.059),
)
"""Ratio and interval of seven made-up comparisons, the better direction being lower."""


def margin() -> Spec:
    """Return example intervals against the margin, with what Paribus says of each."""
    data = []
    for place, (ratio, low, high) in enumerate(EXAMPLES):
        found = Comparison(18, ratio, low, high, LOOKS.confidence)
        said = judge(found, better="lower", margin=MARGIN, last=False)
        reason = textwrap.wrap(reason_of(said).replace(" %", "\N{NO-BREAK SPACE}%"), 58)
        data.append(
            {
                "place": place,
                "ratio": ratio,
                "low": low,
                "high": high,
                "what": said.word.value,
                "said": "\n".join([said.word.value, *reason]),
            }
        )
    words = ("faster", "equivalent", "slower", "undecided")
    colours = paint(words, (COLOURS[4], GOOD, B, UNDECIDED))
    for channel in colours.values():
        channel["legend"] = None
    row: Spec = {"field": "place", "type": "ordinal", "axis": None}
    x = axis(
        "low",
        "ratio arm / reference (lower is better)",
        (0.9, 1.11),
        format=".2f",
        grid=False,
        tickCount=6,
    )
    dot = {"type": "point", "filled": True, "size": 55, "opacity": 1}
    text = {"type": "text", "align": "left", "lineBreak": "\n", "fontSize": 11, "lineHeight": 13}
    named = [
        {"at": 0.94, "name": "faster"},
        {"at": 1.0, "name": "equivalent"},
        {"at": 1.065, "name": "slower"},
    ]
    top = {
        "data": {"values": named},
        "mark": {"type": "text", "fontSize": 11, "fontStyle": "italic", "color": INK},
        "encoding": {
            "x": {**x, "field": "at"},
            "y": {"value": -8},
            "text": {"field": "name"},
        },
    }
    return {
        "description": "Seven intervals and the margin of 2 %: wholly beyond it is faster or "
        "slower, wholly inside equivalent, across its edge undecided.",
        "width": 290,
        "height": 48 * len(EXAMPLES),
        "data": {"values": data},
        "layer": [
            band("x", 1 / (1 + MARGIN), 1 + MARGIN),
            line_at("x", 1),
            {
                "mark": {"type": "rule", "strokeWidth": 2.5},
                "encoding": {"x": x, "x2": {"field": "high"}, "y": row, **coloured(colours)},
            },
            {"mark": dot, "encoding": {"x": {**x, "field": "ratio"}, "y": row, **colours}},
            {
                "mark": {**text, "color": INK, "baseline": "middle", "dy": -13},
                "encoding": {"x": {"value": 302}, "y": row, "text": {"field": "said"}},
            },
            top,
        ],
    }


LOOKED_AT = 3
"""Which of the simulated studies the picture of the looks shows."""


def looks() -> Spec:
    """Return the interval of one simulated study at every look, with three true effects."""
    found = study("N1", STUDIES)
    names = ("looked at", "the last look", "not needed any more")
    panels: list[Spec] = []
    for effect in (0.0, 0.015, 0.05):
        shift, stopped, data = math.log1p(effect), "", []
        for i, blocks in enumerate(LOOKS.at):
            said = verdict_at(found, LOOKED_AT, i, shift)
            what = names[2] if stopped else names[1] if said.final else names[0]
            if said.final and not stopped:
                stopped = f"{said.word.value} after {blocks} blocks"
            ends = {"low": found.low, "high": found.high, "ratio": found.estimate}
            shown = {k: math.exp(v[LOOKED_AT, i] + shift) for k, v in ends.items()}
            data.append({"blocks": str(blocks), "what": what, **shown})
        x = {
            "field": "blocks",
            "type": "ordinal",
            "sort": None,
            "axis": {"title": "blocks", "labelAngle": 0},
        }
        y = axis("low", "ratio" if not panels else None, (0.97, 1.1), format=".2f")
        colours = paint(names, (GOOD, B, "#c3c8cf"))
        panels.append(
            {
                "title": {"text": f"true effect {effect * 100:g} %", "subtitle": stopped},
                "width": 175,
                "height": 190,
                "data": {"values": data},
                "layer": [
                    band("y", 1 / (1 + MARGIN), 1 + MARGIN),
                    line_at("y", 1),
                    *intervals(x, y, colours),
                ],
            }
        )
    return beside(
        "The interval of one study at its looks, for true effects of 0, 1.5 and "
        "5 %: it narrows until it lies on one side of an edge of the margin.",
        panels,
    )
