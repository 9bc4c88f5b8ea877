"""The tree of a server on a terminal: drawn, the matrix of its pairs, shares of links, warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from paribus.border import printable
from paribus.report.printing import Row, heading, item, line, print_rows, raw
from paribus.topology import words as words
from paribus.topology.capacities import Capacities, Model
from paribus.topology.predict import ALIKE, Beside, Forecast, Pairs, Rates, step_ms
from paribus.topology.shape import canonical_hash, matrix_of, shape_of
from paribus.topology.tree import Node, Tree
from paribus.topology.words import shares_of, warnings_of

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.topology.diff import Difference


_COLOURS = ("#7fb3d5", "#f5b971", "#8fca8f", "#d7a1d1", "#c9b39a", "#9fb8ad")
_ALIKE = "#eeeeee"
_COLUMNS, _ROWS, _CELL = 48, 36, 7
_INPUT_MB, _COMPUTE_MS = (1.0, 1000.0), (10.0, 1000.0)


def print_forecasts(
    found: Sequence[Forecast], names: Sequence[str], source: str, console: Console
) -> None:
    """Print a line for each load, a column for each tree."""
    line(console, words.of_prediction(source), style="bold")
    console.print()
    rows = []
    for number, one in enumerate(found):
        if number == 0 or found[number - 1].load != one.load:
            rows.append(Row((one.load,)))
        figures = [_figure(value) for value in one.values]
        rows.append(Row((f"  {one.of}", *figures, _marked(one.unit))))
    head = ("", *names, "")
    print_rows(console, head, rows, right=set(range(1, 1 + len(names))), coloured=())


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _marked(unit: str) -> str:
    return f"{unit}, predicted" if unit else "predicted"


def print_pairs(
    several: Sequence[tuple[str, Pairs]], loads: Sequence[str], console: Console
) -> None:
    """Print for each tree the rates of pairs, or the orders of rings, that `loads` ask for."""
    for tree, one in several:
        rows = {"p2p": one.alone, "p2p-all": one.together}
        for load in loads:
            if load in rows:
                heading(console, f"{load} on {tree}, from row to column")
                _print_rates(one.gpus, rows[load], console)
            if load == "ring-allreduce":
                heading(console, f"{load} on {tree}")
                for name, order in (("NCCL's", one.nccl_ring), ("the best", one.best_ring)):
                    item(console, f"{name} order, predicted: {' '.join(order)}")


def _print_rates(
    gpus: Sequence[str], rates: Sequence[Sequence[float | None]], console: Console
) -> None:
    rows = [
        Row((name, *("-" if rate is None else _figure(rate) for rate in row), _marked("GB/s")))
        for name, row in zip(gpus, rates, strict=True)
    ]
    right = set(range(1, 1 + len(gpus)))
    print_rows(console, ("", *gpus, ""), rows, right=right, coloured=(), indent=2)


def print_beside(found: Sequence[Beside], console: Console) -> None:
    """Print the published orderings of study 3 beside the predicted ones."""
    heading(console, "Beside the orderings that study 3 published")
    for one in found:
        item(console, words.of_beside(one), name=one.of)


def window_svg(names: Sequence[str], rates: Sequence[Rates], stated: Capacities) -> str:
    """Return an SVG with a map for each model: the tree with the shortest step, as a colour.

    The axes are input (MB) and compute time (ms) of a step, both logarithmic; a circle marks the
    model itself. Grey: the best two are alike within 1 %.
    """
    wide, high = _COLUMNS * _CELL, _ROWS * _CELL
    panels = []
    for number, name in enumerate(stated.models):
        panels.append(_panel(name, number * (wide + 90) + 60, rates, stated))
    width, height = len(panels) * (wide + 90) + 20, high + 130
    legend = [*zip(names, _COLOURS, strict=False), ("alike within 1 %", _ALIKE)]
    keys = "".join(
        f'<rect x="{60 + 170 * i}" y="{high + 98}" width="12" height="12" fill="{colour}"/>'
        f'<text x="{78 + 170 * i}" y="{high + 108}">{escape(printable(name))}</text>'
        for i, (name, colour) in enumerate(legend)
    )
    title = words.of_window()
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' font-family="sans-serif" font-size="11" role="img"><title>{title}</title>'
        f'<text x="60" y="16" font-size="13">{title}</text>{"".join(panels)}{keys}</svg>\n'
    )


def _panel(name: str, left: int, rates: Sequence[Rates], stated: Capacities) -> str:
    """Return the map of a model: which topology is fastest, by compute time and input size."""
    model = stated.models[name]
    parts = [f'<g transform="translate({left} 44)">']
    for row in range(_ROWS):
        colours = [_winner(_steps(model, column, row, rates, stated)) for column in range(_COLUMNS)]
        y, x = (_ROWS - 1 - row) * _CELL, 0
        for colour, run in groupby(colours):
            wide = len(list(run)) * _CELL
            parts.append(f'<rect x="{x}" y="{y}" width="{wide}" height="{_CELL}" fill="{colour}"/>')
            x += wide
    across = _place(_INPUT_MB, model.images * model.image_mb) * _COLUMNS * _CELL
    down = (1 - _place(_COMPUTE_MS, model.compute_ms)) * _ROWS * _CELL
    title = f"{escape(printable(name))}, {model.gradient_mb:g} MB of gradients"
    parts.append(
        f'<circle cx="{across:.0f}" cy="{down:.0f}" r="5" fill="none" stroke="#000"/>'
        f'<text x="0" y="-8">{title}</text>'
    )
    return "".join([*parts, *_axes(), "</g>"])


def _steps(
    model: Model, column: int, row: int, rates: Sequence[Rates], stated: Capacities
) -> list[float]:
    """Return the ms of a step on each tree, for a cell of the map."""
    inputs = _at(_INPUT_MB, (column + 0.5) / _COLUMNS)
    compute = _at(_COMPUTE_MS, (row + 0.5) / _ROWS)
    return [step_ms(one, model.gradient_mb, inputs, compute, stated) for one in rates]


def _axes() -> list[str]:
    """Return the axes of a map with their ticks."""
    wide, high = _COLUMNS * _CELL, _ROWS * _CELL
    middle = 'text-anchor="middle"'
    ticks = []
    for value in (1, 10, 100, 1000):
        x = _place(_INPUT_MB, value) * wide
        ticks.append(f'<text x="{x:.0f}" y="{high + 14}" text-anchor="middle">{value}</text>')
    for value in (10, 100, 1000):
        y = (1 - _place(_COMPUTE_MS, value)) * high + 4
        ticks.append(f'<text x="-6" y="{y:.0f}" text-anchor="end">{value}</text>')
    return [
        *ticks,
        f'<text x="{wide / 2}" y="{high + 32}" {middle}>input of each GPU per step, MB</text>',
        f'<text transform="translate(-38 {high / 2}) rotate(-90)" {middle}>compute, ms</text>',
    ]


def _winner(steps: Sequence[float]) -> str:
    """Return the colour of the shortest step, grey where the next one is alike."""
    best = min(range(len(steps)), key=lambda number: steps[number])
    others = [step for number, step in enumerate(steps) if number != best]
    alike = bool(others) and min(others) - steps[best] <= ALIKE * steps[best]
    return _ALIKE if alike else _COLOURS[best % len(_COLOURS)]


def _at(ends: tuple[float, float], share: float) -> float:
    return float(ends[0] * (ends[1] / ends[0]) ** share)


def _place(ends: tuple[float, float], value: float) -> float:
    share = math.log(max(value, 1e-12) / ends[0]) / math.log(ends[1] / ends[0])
    return min(1.0, max(0.0, share))


def print_tree(tree: Tree, place: str, console: Console) -> None:
    """Print a tree: shape, drawing, matrix of pairs, shared uplinks, warnings and hashes."""
    line(console, words.of_shape(tree, shape_of(tree)), style="bold")
    named = f"{tree.product}, " if tree.product else ""
    line(console, f"{named}from {place}")
    console.print()
    for drawn in drawing(tree):
        raw(console, drawn)
    _print_matrix(tree, console)
    _print_shares(tree, console)
    if found := warnings_of(tree):
        heading(console, "Warnings")
        for one in found:
            item(console, words.of_warning(one), style="yellow")
    if tree.lacks:
        heading(console, "What this source does not show")
        for sentence in words.of_lacks(tree):
            item(console, sentence)
    console.print()
    raw(console, f"hash {canonical_hash(tree)}, wiring {canonical_hash(tree, keys=False)}")


def drawing(tree: Tree) -> Iterator[str]:
    """Yield the lines of the tree, one for each node; parts of one NUMA node share its line."""
    named = [_of_socket(tree, number) for number in range(len(tree.sockets))]
    parts = zip(named, tree.sockets, strict=True)
    for name, several in groupby(parts, lambda part: part[0]):
        bridges = [bridge for _, socket in several for bridge in socket.bridges]
        yield name + ("" if bridges else ": no device")
        for index, bridge in enumerate(bridges):
            yield from _lines(bridge, "", last=index + 1 == len(bridges))


def _of_socket(tree: Tree, number: int) -> str:
    numa = ", ".join(str(node) for node in tree.sockets[number].numa)
    known = numa and not tree.by_numa
    return words.of_socket(tree, number) + (f" (NUMA node {numa})" if known else "")


def _lines(node: Node, before: str, *, last: bool) -> Iterator[str]:
    yield f"{before}{'└─ ' if last else '├─ '}{_label(node)}"
    deeper = before + ("   " if last else "│  ")
    for index, child in enumerate(node.children):
        yield from _lines(child, deeper, last=index + 1 == len(node.children))


def _label(node: Node) -> str:
    # A host bridge has no link, and that below a root port is shown at the switch or device.
    link = words.of_link(node.link) if node.kind not in ("host-bridge", "root-port") else ""
    model = f"[{node.model}]" if node.model else ""
    text = " ".join(part for part in (words.of_node(node), node.address, model, node.key) if part)
    return f"{text}  {link}" if link else text


def _print_matrix(tree: Tree, console: Console) -> None:
    """Print how each pair of GPUs and NICs is joined."""
    devices = tree.devices("gpu", "nic")
    if not tree.gpus or len(devices) < 2:
        return
    labels = matrix_of(tree, devices)
    heading(console, "How pairs are joined (labels of nvidia-smi topo -m)")
    wide = max(len(name) for name in (*(one.name for one in devices), *labels.values())) + 1
    raw(console, "  " + " " * wide + "".join(one.name.ljust(wide) for one in devices).rstrip())
    for one in devices:
        cells = "".join(labels[one.id, other.id].ljust(wide) for other in devices)
        raw(console, f"  {one.name.ljust(wide)}{cells.rstrip()}")


def _print_shares(tree: Tree, console: Console) -> None:
    """Print the uplinks that several GPUs share."""
    shares = shares_of(tree)
    if not shares:
        return
    heading(console, "Uplinks that GPUs share, per direction")
    rows = [
        Row(
            (
                f"switch {share.node.address}".strip(),
                str(share.gpus),
                _gbs(share.gbs),
                _gbs(share.each),
            )
        )
        for share in shares
    ]
    head = ("uplink of", "GPUs", "all together", "each, when all use it")
    print_rows(console, head, rows, right={1, 2, 3}, coloured=(), indent=2)


def _gbs(value: float | None) -> str:
    return "not given" if value is None else f"{value:.1f} GB/s"


def print_difference(found: Difference, trees: tuple[Tree, Tree], console: Console) -> None:
    """Print what differs between two trees, their shapes first."""
    for name, tree in zip(("A", "B"), trees, strict=True):
        line(console, words.of_shape(tree, shape_of(tree)), name=name)
    console.print()
    for sentence in words.of_difference(found):
        item(console, sentence)
