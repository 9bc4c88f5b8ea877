"""The tree of a server as a picture, from its sockets down to its devices: SVG, or for Graphviz."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from paribus.border import printable
from paribus.topology import words as words
from paribus.topology.shape import shape_of
from paribus.topology.tree import NVSWITCH, Node, Tree


def to_dot(tree: Tree) -> str:
    """Return `tree` as a graph for `dot -Tsvg`."""
    lines = ["graph topology {", "  node [shape=box, fontname=sans];"]
    names: dict[str, str] = {}
    for number, socket in enumerate(tree.sockets):
        ident = f"s{number}"
        names[f"cpu{socket.package}"] = ident
        lines.append(f'  {ident} [label="{words.of_socket(tree, number)}"];')
        for bridge in socket.bridges:
            _add(bridge, ident, names, lines)
    if any(peer.b == NVSWITCH for peer in tree.peers):
        names[NVSWITCH] = "nvswitches"
        lines.append('  nvswitches [label="NVSwitch"];')
    for peer in tree.peers:
        ends = f"{names[peer.a]} -- {names[peer.b]}"
        lines.append(
            f'  {ends} [label="{peer.kind} {peer.count}", style=dashed, constraint=false];'
        )
    return "\n".join([*lines, "}"]) + "\n"


def _add(node: Node, upper: str, names: dict[str, str], lines: list[str]) -> None:
    ident = f"n{len(lines)}"
    names[node.id or ident] = ident
    label = "\\n".join(_quoted(part) for part in (node.name or node.kind, node.address) if part)
    rate = f' [label="{node.link.gbs:.1f} GB/s"]' if node.link.gbs else ""
    lines += [f'  {ident} [label="{label}"];', f"  {upper} -- {ident}{rate};"]
    for child in node.children:
        _add(child, ident, names, lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_WIDE, _HIGH, _GAP, _STEP = 92, 34, 10, 74
_COLOURS = {
    "socket": "#dfe6ee",
    "host-bridge": "#eef1f5",
    "root-port": "#eef1f5",
    "switch": "#ffe3b3",
    "card-bridge": "#f3efe6",
    "gpu": "#cfe8cf",
    "nic": "#d5dcf7",
    "nvme": "#ececec",
    "nvswitch": "#e2cfe8",
}
_PEERS = {"nvlink": "#5a9e3c", "xgmi": "#b5531c", "c2c": "#7a4fb5"}


@dataclass(slots=True)
class _Box:
    """A node of the picture: its texts, those of its link, and its place.

    `x`: the middle of its upper edge in px; `depth`: its row; `below`: the boxes below it.
    """

    kind: str
    lines: tuple[str, ...]
    id: str
    link: tuple[str, ...] = ()
    x: float = 0.0
    depth: int = 0
    below: list[_Box] = field(default_factory=list)


def svg(tree: Tree) -> str:
    """Return the picture; its texts are text, so that they can be searched and read aloud."""
    boxes = [_socket(tree, number) for number in range(len(tree.sockets))]
    right = 0.0
    for box in boxes:
        right = _place(box, right, 0) + 2 * _GAP
    every = [inner for box in boxes for inner in _all(box)]
    deepest = max((box.depth for box in every), default=0)
    peers = _peers(tree, every)
    width, top = max(right, 460.0), 46
    height = top + deepest * _STEP + _HIGH + (70 if peers else 16)
    name, rest = (escape(part) for part in words.shape_parts(tree, shape_of(tree)))
    head = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg {head} width="{width:.0f}" font-family="sans-serif" font-size="11" role="img">',
        f"<title>{name}: {rest}</title>",
        f'<text x="{_GAP}" y="16" font-size="13">{name}</text>',
        f'<text x="{_GAP}" y="33">{rest}</text>',
        f'<g transform="translate(0 {top})">',
    ]
    for box in every:
        parts += [_edge(box, child) for child in box.below]
    parts += peers
    parts += [_drawn(box) for box in every]
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _socket(tree: Tree, number: int) -> _Box:
    socket = tree.sockets[number]
    below = [_node(bridge) for bridge in socket.bridges]
    named = words.of_socket(tree, number)
    return _Box("socket", (named,), f"cpu{socket.package}", below=below)


def _node(node: Node) -> _Box:
    lines = tuple(printable(part) for part in (words.of_node(node), node.address) if part)
    bare = node.kind in ("host-bridge", "root-port")
    link = () if bare else tuple(words.link_parts(node.link))
    return _Box(node.kind, lines, node.id, link, below=[_node(child) for child in node.children])


def _place(box: _Box, left: float, depth: int) -> float:
    """Set the places of a box and all below it, from `left` on; return where they end, in px."""
    box.depth = depth
    right = left
    for child in box.below:
        right = _place(child, right, depth + 1)
    if not box.below:
        right = left + _WIDE + _GAP
        box.x = left + _GAP + _WIDE / 2
    else:
        box.x = (box.below[0].x + box.below[-1].x) / 2
    return right


def _all(box: _Box) -> list[_Box]:
    return [box, *(inner for child in box.below for inner in _all(child))]


def _edge(upper: _Box, lower: _Box) -> str:
    """Return the line between two boxes, with the link's speed beside it."""
    y0, y1 = upper.depth * _STEP + _HIGH, lower.depth * _STEP
    middle = (y0 + y1) / 2
    path = f"M{upper.x:.0f} {y0}V{middle:.0f}H{lower.x:.0f}V{y1}"
    drawn = f'<path d="{path}" fill="none" stroke="#8a94a0"/>'
    if lower.link:
        for row, part in enumerate(lower.link):
            y = y1 - 3 - 10 * (len(lower.link) - 1 - row)
            drawn += (
                f'<text x="{lower.x + 3:.0f}" y="{y}" font-size="9" fill="#56606b">{part}</text>'
            )
    return drawn


def _drawn(box: _Box) -> str:
    """Return a box with its lines of text."""
    x, y = box.x - _WIDE / 2, box.depth * _STEP
    text = "".join(
        f'<text x="{box.x:.0f}" y="{y + (21 if len(box.lines) == 1 else 14 + 13 * row)}"'
        f' text-anchor="middle">{escape(part)}</text>'
        for row, part in enumerate(box.lines)
    )
    return (
        f'<rect x="{x:.0f}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4"'
        f' fill="{_COLOURS[box.kind]}" stroke="#56606b"/>{text}'
    )


def _peers(tree: Tree, boxes: list[_Box]) -> list[str]:
    """Return the links beside PCIe as arcs below the devices; NVSwitches are a bar."""
    places = {box.id: box for box in boxes if box.id}
    arcs = []
    switched = [places[peer.a] for peer in tree.peers if peer.b == NVSWITCH]
    for peer in tree.peers:
        if not peer.direct:
            continue
        one, other = places[peer.a], places[peer.b]
        y0, y1 = one.depth * _STEP + _HIGH, other.depth * _STEP + _HIGH
        low = max(y0, y1) + min(60.0, 12 + abs(one.x - other.x) / 12)
        arcs.append(
            f'<path d="M{one.x:.0f} {y0}C{one.x:.0f} {low:.0f} {other.x:.0f} {low:.0f}'
            f' {other.x:.0f} {y1}" fill="none" stroke="{_PEERS[peer.kind]}"'
            f' stroke-width="{min(4, peer.count)}"><title>{peer.kind} {peer.count}</title></path>'
        )
    if switched:
        y = max(box.depth for box in switched) * _STEP + _HIGH + 26
        left, right = min(box.x for box in switched), max(box.x for box in switched)
        arcs.append(
            f'<rect x="{left:.0f}" y="{y}" width="{right - left:.0f}" height="18" rx="4"'
            f' fill="{_COLOURS["nvswitch"]}" stroke="#56606b"/>'
            f'<text x="{(left + right) / 2:.0f}" y="{y + 13}" text-anchor="middle">NVSwitch</text>'
        )
        arcs += [
            f'<path d="M{box.x:.0f} {box.depth * _STEP + _HIGH}V{y}" stroke="{_PEERS["nvlink"]}"'
            ' stroke-width="3"/>'
            for box in switched
        ]
    return arcs
