"""The difference between two trees: devices that moved, and pairs of GPUs joined otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from paribus.topology.shape import matrix_of
from paribus.topology.tree import Node, Tree

What = Literal["socket", "tree", "switch", "depth", "width", "speed"]
MOVING = ("gpu", "nic", "nvme")
"""The kinds of devices that are compared: those that can be plugged elsewhere."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of devices in `what`, from `before` to `after`, as texts: "socket", "0", "1"."""

    devices: tuple[str, ...]
    what: What
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs between two trees; nothing if it is empty, and so False.

    `gone`, `new`: names of devices in only one. `pairs`: label before, label after, and how many
    pairs of GPUs changed so. `links`: two names, and how many links beside PCIe join them before
    and after.
    """

    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    pairs: tuple[tuple[str, str, int], ...] = ()
    links: tuple[tuple[str, str, int, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gone or self.new or self.moved or self.pairs or self.links)


def difference(a: Tree, b: Tree) -> Difference:
    """Return what differs from `a` to `b`, without numbers of buses.

    Devices are matched by their keys, else by kind and name.
    """
    one, other = (tree.devices(*MOVING) for tree in (a, b))
    pairs = _matched(one, other)
    old_places, new_places = _places(a), _places(b)
    changes: dict[tuple[What, str, str], list[str]] = {}
    for old, new in pairs:
        for what, before in old_places[old.id].items():
            after = new_places[new.id][what]
            if before != after and "" not in (before, after):
                changes.setdefault((what, before, after), []).append(old.name)
    met_old, met_new = {old.id for old, _ in pairs}, {new.id for _, new in pairs}
    return Difference(
        tuple(node.name for node in one if node.id not in met_old),
        tuple(node.name for node in other if node.id not in met_new),
        tuple(Moved(tuple(names), *change) for change, names in changes.items()),
        _relabelled(a, b, [pair for pair in pairs if pair[0].kind == "gpu"]),
        _relinked(a, b, pairs),
    )


def _matched(one: list[Node], other: list[Node]) -> list[tuple[Node, Node]]:
    """Return the devices that are in both lists, as pairs."""
    keyed = {node.key: node for node in other if node.key}
    named = {(node.kind, node.name): node for node in other}
    pairs = []
    for node in one:
        match = keyed.get(node.key) if node.key in keyed else named.get((node.kind, node.name))
        if match is not None and (not node.key or not match.key or node.key == match.key):
            pairs.append((node, match))
    return pairs


def _places(tree: Tree) -> dict[str, dict[What, str]]:
    """Return where each device is, by its id: socket, GPUs in its tree and at its switch, ..."""
    found: dict[str, dict[What, str]] = {}
    above, sockets = tree.above(), tree.socket_of()
    for node in tree.devices(*MOVING):
        upper, package = above[node.id], sockets[node.id].package
        switches = [inner for inner in upper if inner.kind == "switch"]
        found[node.id] = {
            "socket": "" if package is None else str(package),
            "tree": _gpus(upper[1]) if len(upper) > 1 else "none",
            "switch": _gpus(_without_switches(switches[-1])) if switches else "none",
            "depth": str(len(switches)),
            "width": str(node.link.width or ""),
            "speed": str(node.link.generation_most or ""),
        }
    return found


def _without_switches(node: Node) -> Node:
    """Return a switch without the switches below it."""
    return replace(node, children=tuple(n for n in node.children if n.kind != "switch"))


def _gpus(node: Node) -> str:
    """Return the names of the GPUs below a node, runs of numbers folded: GPU0-3."""
    names = sorted(
        (inner.name for inner in node.walk() if inner.kind == "gpu"),
        key=lambda name: (len(name), name),
    )
    return folded(names) or "none"


def folded(names: list[str] | tuple[str, ...]) -> str:
    """Return names with runs of numbers folded: "GPU0-3, NIC1"."""
    runs: list[tuple[str, int, int]] = []
    plain = []
    for name in names:
        start = name.rstrip("0123456789")
        digits = name[len(start) :]
        if not digits or len(digits) > 9:
            plain.append(name)
        elif runs and runs[-1][0] == start and runs[-1][2] + 1 == int(digits):
            runs[-1] = (start, runs[-1][1], int(digits))
        else:
            runs.append((start, int(digits), int(digits)))
    shown = [f"{s}{low}" if low == high else f"{s}{low}-{high}" for s, low, high in runs]
    return ", ".join([*shown, *plain])


def _relabelled(
    a: Tree, b: Tree, pairs: list[tuple[Node, Node]]
) -> tuple[tuple[str, str, int], ...]:
    """Return label before, label after, and count, of pairs of GPUs whose label differs."""
    before = matrix_of(a, [old for old, _ in pairs])
    after = matrix_of(b, [new for _, new in pairs])
    counts: Counter[tuple[str, str]] = Counter()
    for number, (old, new) in enumerate(pairs):
        for old_other, new_other in pairs[number + 1 :]:
            labels = before[old.id, old_other.id], after[new.id, new_other.id]
            counts[labels] += labels[0] != labels[1]
    return tuple((*labels, count) for labels, count in sorted(counts.items()) if count)


def _relinked(
    a: Tree, b: Tree, pairs: list[tuple[Node, Node]]
) -> tuple[tuple[str, str, int, int], ...]:
    """Return two names, and the counts before and after, where links beside PCIe differ."""
    counts = []
    for tree, names in (
        (a, {o.id: o.name for o, _ in pairs}),
        (b, {n.id: o.name for o, n in pairs}),
    ):
        found: Counter[tuple[str, ...]] = Counter()
        for peer in tree.peers:
            found[tuple(sorted(names.get(end, end) for end in (peer.a, peer.b)))] += peer.count
        counts.append(found)
    return tuple(
        (ends[0], ends[1], counts[0][ends], counts[1][ends])
        for ends in sorted(counts[0].keys() | counts[1].keys())
        if counts[0][ends] != counts[1][ends]
    )
