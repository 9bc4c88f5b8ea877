"""A tree in the language of Graphviz."""

from __future__ import annotations

from paribus.topology import words as words
from paribus.topology.tree import NVSWITCH, Node, Tree


def to_dot(tree: Tree) -> str:
    """Return `tree` as a graph for `dot -Tsvg`."""
    lines = ["graph topology {", "  node [shape=box, fontname=sans];"]
    names: dict[str, str] = {}
    for number, socket in enumerate(tree.sockets):
        own = f"s{number}"
        names[f"cpu{socket.package}"] = own
        lines.append(f'  {own} [label="{words.of_socket(tree, number)}"];')
        for bridge in socket.bridges:
            _add(bridge, own, names, lines)
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
    own = f"n{len(lines)}"
    names[node.id or own] = own
    label = "\\n".join(_quoted(part) for part in (node.name or node.kind, node.address) if part)
    rate = f' [label="{node.link.gbs:.1f} GB/s"]' if node.link.gbs else ""
    lines += [f'  {own} [label="{label}"];', f"  {upper} -- {own}{rate};"]
    for child in node.children:
        _add(child, own, names, lines)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
