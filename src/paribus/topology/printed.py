"""The tree of a server on a terminal: drawn, the matrix of its pairs, shares of links, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from paribus.report.printing import Row, heading, item, line, print_rows, raw
from paribus.topology import words as words
from paribus.topology.labels import matrix_of
from paribus.topology.shape import canonical_hash, shape_of
from paribus.topology.tree import Node, Tree
from paribus.topology.words import shares_of, warnings_of

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.topology.diff import Difference


def print_tree(tree: Tree, place: str, console: Console) -> None:
    """Print everything that is known of a tree."""
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
        for said in words.of_lacks(tree):
            item(console, said)
    console.print()
    raw(console, f"hash {canonical_hash(tree)}, wiring {canonical_hash(tree, keys=False)}")


def drawing(tree: Tree) -> Iterator[str]:
    """Yield the lines of the tree, a node each; the parts of one NUMA node below one line."""
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
    # A host bridge has no link, and that of a root port is its switch's or its device's.
    link = words.of_link(node.link) if node.kind not in ("host-bridge", "root-port") else ""
    model = f"[{node.model}]" if node.model else ""
    said = " ".join(part for part in (words.of_node(node), node.address, model, node.key) if part)
    return f"{said}  {link}" if link else said


def _print_matrix(tree: Tree, console: Console) -> None:
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
    print_rows(console, head, rows, right={1, 2, 3}, verdict=-1, indent=2)


def _gbs(value: float | None) -> str:
    return "not given" if value is None else f"{value:.1f} GB/s"


def print_difference(found: Difference, trees: tuple[Tree, Tree], console: Console) -> None:
    """Print what differs between two trees, their shapes first."""
    for name, tree in zip(("A", "B"), trees, strict=True):
        line(console, words.of_shape(tree, shape_of(tree)), name=name)
    console.print()
    for said in words.of_difference(found):
        item(console, said)
