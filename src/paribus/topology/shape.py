"""What shape a tree has, and the name of this shape."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from paribus.topology.tree import DEVICES, NVSWITCH, Node, Peer, Tree


def canonical_hash(tree: Tree, *, keys: bool = True) -> str:
    """Return 16 hex digits that follow from what hangs below what and what is linked beside it.

    Numbers of buses, sockets and devices have no part in it, nor speeds and widths. A device counts
    by its UUID, GUID or serial number, else by its model. Without `keys` only its kind counts: the
    hash of the wiring, equal for two servers of one make.
    """
    digests: dict[str, str] = {}
    sockets = sorted(
        _digest("socket", *sorted(_of_node(bridge, keys, digests) for bridge in socket.bridges))
        for socket in tree.sockets
    )
    places = _places(tree, digests)
    peers = sorted(_of_peer(peer, places) for peer in tree.peers)
    return _digest("tree", *sockets, "peers", *peers)[:16]


def _of_node(node: Node, keys: bool, digests: dict[str, str]) -> str:
    """Return the digest of a node and all below it; that of devices goes into `digests`."""
    below = sorted(_of_node(child, keys, digests) for child in node.children)
    device = (node.key or node.model) if keys and node.kind in DEVICES else ""
    digest = _digest(node.kind, device, *below)
    digests[node.id or str(id(node))] = digest
    return digest


def _places(tree: Tree, digests: dict[str, str]) -> dict[str, str]:
    """Return for each device a digest of itself and of all above it."""
    return {
        device: _digest(digests[device], *(digests[n.id or str(id(n))] for n in upper))
        for device, upper in tree.above().items()
    }


def _of_peer(peer: Peer, places: dict[str, str]) -> str:
    ends = sorted(places.get(end, end.rstrip("0123456789")) for end in (peer.a, peer.b))
    return _digest(peer.kind, str(peer.count), *ends)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


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
    """Return the name of a shape (docs/recipes.md, study 3: Balance, Common, Cascade)."""
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
