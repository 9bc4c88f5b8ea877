"""The matrix of all pairs of nodes: a heat map, and lines for a terminal."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core import Cases, Drawn, Judgement, Lens, format_value, grouped
from paribus.lenses.matrices.matrix import Matrix, matrices
from paribus.report.axes import FAILED, Spec, layer, new_spec, tooltip
from paribus.report.figures import FORMATS, plain, write_drawings
from paribus.report.html import Figures
from paribus.report.markup import Html
from paribus.report.printing import heading, item, raw
from paribus.report.rows import kept
from paribus.report.wording import clean

if TYPE_CHECKING:
    from rich.console import Console

Rows = tuple[Matrix, ...]

SHOWN_FIGURES = 10
"""Nodes up to which a cell has room for its figure."""

MOST_LABELS = 24
"""Names along an axis."""

MOST_IN_A_TERMINAL = 16
"""Nodes up to which a terminal shows the matrix."""

COLOURS = ("#eef3f8", "#b9cfe4", "#f2c98f", "#dd7d3c", "#96281b")
"""From fast to slow: light to dark, for those who see no colours too."""

CLAMP = 2.0
"""Pairs so many times as slow as the median one, and slower, have the darkest colour."""


def groups(matrices: Sequence[Matrix]) -> list[list[Matrix]]:
    """Return the matrices by metric and case: those of all arms share a scale of colours."""
    found = grouped(((one.metric, one.case), one) for one in matrices)
    return list(found.values())


def title(matrix: Matrix) -> str:
    """Return the title of a matrix: "arm: latency, bytes=8 (us)"."""
    name = f"{matrix.metric.name}, {matrix.case} ({matrix.metric.unit})"
    return clean(f"{matrix.arm}: {name}" if matrix.arm else name)


def heat_map(matrix: Matrix, shared: Sequence[Matrix] = ()) -> Spec:
    """Return the heat map of `matrix`; those of `shared`, if any, have the same scale of colours.

    Slow nodes have a red frame and name, slow pairs a frame in the colour of the text. The scale
    ends at CLAMP, so that a broken link does not make all others look alike.
    """
    nodes = [clean(name) for name in matrix.nodes]
    slow = {clean(one.node) for one in matrix.slow_nodes}
    fast, slowest = _ends(matrix, shared)
    rows = _rows(matrix, fast, slowest)
    spec = new_spec(title(matrix), f"{title(matrix)}. {' '.join(matrix.sentences)}")
    size = max(160, min(400, 26 * len(nodes)))
    spec |= {"height": size, "data": {"values": rows}}
    x, y = _axis(nodes, slow, "to", "x"), _axis(nodes, slow, "from", "y")
    tips = tooltip(**{"from": "from", "to": "to", "shown": "median launch", "range": "launches"})
    layers = [
        layer({"type": "rect"}, {"x": x, "y": y}, {"color": _colour(matrix, fast, slowest), **tips})
    ]
    if len(nodes) <= SHOWN_FIGURES:
        dark = {"test": "datum.dark", "value": "#ffffff"}
        ink = {"color": {"condition": dark, "value": "#1b1f24"}}
        text = {"text": {"field": "shown", "type": "nominal"}}
        layers.append(layer({"type": "text", "fontSize": 11}, {"x": x, "y": y}, text | ink | tips))
    frame: Spec = {"type": "rect", "filled": False, "stroke": FAILED, "strokeWidth": 2}
    dark = frame | {"stroke": "currentColor", "strokeWidth": 3}
    for channel, axis in (("y", y), ("x", x)):
        framed = [{"from": name, "to": name} for name in sorted(slow)]
        if framed:
            layers.append(layer(frame, {channel: axis}, {}) | {"data": {"values": framed}})
    if framed := [row for row in rows if row["slow"]]:
        layers.append(layer(dark, {"x": x, "y": y}, tips) | {"data": {"values": framed}})
    return spec | {"layer": layers}


def _rows(matrix: Matrix, fast: float, slowest: float) -> list[Spec]:
    """Return the cells, from `fast` to the `slowest` figure; one of both ways stands in both."""
    slow_pairs = {(one.node, one.to) for one in matrix.slow_pairs}
    whole = math.log(slowest / fast)
    rows: list[Spec] = []
    for i, source in enumerate(matrix.nodes):
        for j, target in enumerate(matrix.nodes):
            a, b = (i, j) if matrix.median[i][j] is not None else (j, i)
            value, low, high = (of[a][b] for of in (matrix.median, matrix.low, matrix.high))
            if value is None or low is None or high is None:
                continue
            rows.append(
                {
                    "from": clean(source),
                    "to": clean(target),
                    "value": value,
                    "shown": format_value(value),
                    "range": f"{format_value(low)} to {format_value(high)}",
                    "slow": (matrix.nodes[a], matrix.nodes[b]) in slow_pairs,
                    "dark": math.log(value / fast) / whole > 0.7,
                }
            )
    return rows


def _axis(nodes: Sequence[str], slow: set[str], field: str, channel: str) -> Spec:
    """Return the axis of all nodes; with more than MOST_LABELS only some, and slow ones, named."""
    step = -(-len(nodes) // MOST_LABELS)
    at = [place for place, name in enumerate(nodes) if name in slow]
    shown = [
        name
        for place, name in enumerate(nodes)
        if name in slow or (place % step == 0 and all(abs(place - one) >= step for one in at))
    ]
    # A JSON list is valid in Vega's expressions.
    red = {"test": f"indexof({json.dumps(sorted(slow))}, datum.value) >= 0", "value": FAILED}
    bold = {"test": red["test"], "value": "bold"}
    axis: Spec = {
        "title": field,
        "values": shown,
        "labelLimit": 110,
        "labelOverlap": False,
        "domain": False,
        "ticks": len(nodes) > MOST_LABELS,
        "grid": False,
    }
    if slow:
        axis |= {"labelColor": {"condition": red, "value": "currentColor"}}
        axis |= {"labelFontWeight": {"condition": bold, "value": "normal"}}
    if channel == "x":
        axis |= {"orient": "top", "labelAngle": -90 if _crowded(shown) else 0}
    return {
        "field": field,
        "type": "ordinal",
        "scale": {"domain": list(nodes), "paddingInner": 0.04 if len(nodes) <= 24 else 0},
        "axis": axis,
    }


def _crowded(names: Sequence[str]) -> bool:
    """Return whether names side by side would touch: some 7 pixels a letter, in 240."""
    return 7 * (1 + max(map(len, names))) * len(names) > 240


def _ends(matrix: Matrix, shared: Sequence[Matrix]) -> tuple[float, float]:
    """Return the figures at both ends of the scale of colours, the fastest first."""
    figures = sorted(v for m in (shared or (matrix,)) for v in m.figures)
    middle = statistics.median(figures)
    if matrix.metric.better == "lower":
        return figures[0], max(1.2 * middle, min(figures[-1], CLAMP * middle))
    return figures[-1], min(middle / 1.2, max(figures[0], middle / CLAMP))


def _colour(matrix: Matrix, fast: float, slow: float) -> Spec:
    """Return the channel of the colour by figure: logarithmic, slow is dark."""
    lower = matrix.metric.better == "lower"
    # Cells may be beyond the last colour, and the legend says so.
    beyond = max(matrix.figures) > slow if lower else min(matrix.figures) < slow
    mark = f"{'≥' if lower else '≤'} " if beyond else ""
    return {
        "field": "value",
        "type": "quantitative",
        "scale": {
            "type": "log",
            "domain": sorted((fast, slow)),
            "clamp": True,
            "range": list(COLOURS if lower else COLOURS[::-1]),
            "interpolate": "lab",
        },
        "legend": {
            "title": matrix.metric.unit,
            "orient": "right",
            "gradientLength": 140,
            "values": [fast, math.sqrt(fast * slow), slow],
            "format": ",.3~r",
            "labelExpr": f"(datum.value == {slow!r} ? '{mark}' : '') + datum.label",
        },
    }


def text_lines(matrix: Matrix, width: int) -> list[str]:
    """Return the matrix as lines of at most `width` characters, slow nodes and pairs with a *.

    Figures have three digits, or two where these are too wide; MB/s become GB/s. There are no lines
    for more than MOST_IN_A_TERMINAL nodes, and where two digits are too wide.
    """
    if len(matrix.nodes) > MOST_IN_A_TERMINAL:
        return []
    for digits in (3, 2):
        lines = _lines(matrix, digits)
        if max(map(len, lines)) <= width:
            return lines
    return []


def _lines(matrix: Matrix, digits: int) -> list[str]:
    """Return head and rows with so many significant digits, in aligned columns."""
    rates = matrix.metric.unit == "MB/s"
    slow = {one.node for one in matrix.slow_nodes}
    pairs = {(one.node, one.to) for one in matrix.slow_pairs}

    def shown(value: float | None) -> str:
        if value is None:
            return ""
        figure = value / 1000 if rates else value
        return f"{figure:,.{max(0, digits - 1 - math.floor(math.log10(figure)))}f}"

    cells = [["GB/s" if rates else matrix.metric.unit, *map(str, range(len(matrix.nodes)))]]
    for i, name in enumerate(matrix.nodes):
        marks = ["*" if (name, other) in pairs else "" for other in matrix.nodes]
        figures = [shown(value) + mark for value, mark in zip(matrix.median[i], marks, strict=True)]
        cells.append([f"{i} {clean(name)}{'*' if name in slow else ''}", *figures])
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    lines = []
    for row in cells:
        right = [cell.rjust(room) for cell, room in zip(row[1:], widths[1:], strict=True)]
        lines.append(" ".join([row[0].ljust(widths[0]), *right]).rstrip())
    return lines


def print_matrix(matrix: Matrix, console: Console) -> None:
    """Print a matrix, where there is room for it, and its sentences."""
    item(console, title(matrix), style="bold")
    for one in text_lines(matrix, console.width - 4):
        raw(console, f"    {one}")
    for sentence in matrix.sentences:
        item(console, sentence, indent=4)


def write_matrices(
    matrices: Sequence[Matrix], directory: Path, formats: Set[str] = frozenset(FORMATS)
) -> list[Path]:
    """Write the heat map of each matrix into `directory`; otherwise as `write_figures`."""
    drawings = ((one.name, one.spec) for group in _drawn(matrices) for one in group)
    return write_drawings(drawings, directory, formats)


def _drawn(matrices: Sequence[Matrix]) -> Iterator[list[Drawn]]:
    """Yield the heat maps of one metric and case in all arms, with their sentences."""
    for group in groups(matrices):
        yield [
            Drawn(
                plain(f"{one.arm} {one.metric.name} {one.case}"),
                *(title(one), heat_map(one, group), " ".join(one.sentences)),
            )
            for one in group
        ]


def _cases(judgement: Judgement, rows: Rows, benchmark: str) -> Cases | None:
    mine = [one for one in rows if one.benchmark == benchmark]
    return Cases([*_drawn(mine)], "cases.csv lists every pair of nodes.") if mine else None


def print_matrices(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print all matrices."""
    heading(console, "All pairs of nodes (rows send, columns receive; * is slow)")
    for matrix in rows:
        print_matrix(matrix, console)


def _html(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return nothing: the heat maps stand in the sections of their benchmarks."""
    return Html("")


KEPT = kept("matrices", Matrix, lambda judgement, one: one.sentences)


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    found: Rows = KEPT["from_json"](table, judgement) or ()
    for one in found:
        square = [len(one.nodes)] * len(one.nodes)
        whole = all([*map(len, of)] == square for of in (one.median, one.low, one.high))
        if not (whole and one.figures and one.figures[0] > 0):
            raise ValueError("a matrix has a row and a column for each node, and figures above 0")
    return found or None


LENS = Lens(
    judge=matrices,
    to_json=KEPT["to_json"],
    from_json=from_json,
    text=print_matrices,
    html=_html,
    text_after="cases",
    cases=_cases,
)
