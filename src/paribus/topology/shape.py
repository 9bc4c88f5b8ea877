"""What shape a tree has, and the name of this shape."""

from __future__ import annotations

from dataclasses import dataclass

from paribus.topology.tree import NVSWITCH, Node, Tree

BALANCE, COMMON, CASCADE, DIRECT = "Balance", "Common", "Cascade", "direct"
VIRTUAL, SINGLE, MIXED, NONE = "virtual", "one switch", "mixed", "no GPU"
UNKNOWN = "unknown"
"""The source hides what the name would follow from."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the GPUs of a server hang together: `name` follows from the other parts.

    `sockets`: those with GPUs (NUMA nodes where the source has no packages). `trees`: root ports
    with GPUs below. `depth`: the most switches above a GPU each of which joins it with more GPUs; a
    bridge on a card joins none, nor does a switch above the one that has all the same GPUs.
    """

    name: str
    gpus: int
    sockets: int
    trees: int
    depth: int


def shape_of(tree: Tree) -> Shape:
    """Return the shape of `tree`, whatever labels its source gave to pairs of devices."""
    above = tree.above()
    gpus = tree.gpus
    at = [socket for gpu, socket in tree.socket_of().items() if gpu in _ids(gpus)]
    # Labels may show one NUMA node in parts (topology/grouped.py).
    sockets = {one.numa if tree.by_numa and one.numa else id(one) for one in at}
    trees: dict[int, int] = {}
    depths = []
    for gpu in gpus:
        root = id(above[gpu.id][1] if len(above[gpu.id]) > 1 else gpu)
        trees[root] = trees.get(root, 0) + 1
        joined = {_slots(node) for node in above[gpu.id] if node.kind == "switch"}
        depths.append(len(joined - {1}))
    shape = Shape("", len(gpus), len(sockets), len(trees), max(depths, default=0))
    return Shape(_name(tree, shape, trees, depths), *_parts(shape))


def _parts(shape: Shape) -> tuple[int, int, int, int]:
    return shape.gpus, shape.sockets, shape.trees, shape.depth


def _name(tree: Tree, shape: Shape, trees: dict[int, int], depths: list[int]) -> str:
    """Return the name of a shape (five-studies.md 3: Balance, Common, Cascade)."""
    if not shape.gpus:
        return NONE
    if tree.virtual:
        return VIRTUAL
    if {peer.a for peer in tree.peers if peer.b == NVSWITCH} >= _ids(tree.gpus):
        return "NVSwitch"
    if "paths" in tree.lacks:
        return UNKNOWN
    if not shape.depth:
        return DIRECT
    even = len(set(trees.values())) == 1 and min(depths) > 0
    if shape.trees == 1 and even:
        return CASCADE if shape.depth > 1 else SINGLE
    if even and shape.sockets == 1:
        return COMMON
    if even and shape.sockets == shape.trees:
        return UNKNOWN if tree.by_numa else BALANCE
    return MIXED


def _ids(nodes: list[Node]) -> set[str]:
    return {node.id for node in nodes}


def _slots(switch: Node) -> int:
    """Return how many slots below a switch hold GPUs: functions of one device are one slot."""
    return len(
        {node.id.rpartition(".")[0] or node.id for node in switch.walk() if node.kind == "gpu"}
    )
