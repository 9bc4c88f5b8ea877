"""The shape of a tree and its name, its hash, and the labels of pairs of devices."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.topology.tree import BRIDGES, DEVICES, NVSWITCH, Node, Peer, Tree


def canonical_hash(tree: Tree, *, keys: bool = True) -> str:
    """Return 16 hex digits, a hash of which node is below which and of the links beside PCIe.

    Numbers of buses, sockets and devices do not enter, nor do speeds and widths. A device enters by
    its UUID, GUID or serial number, else by its model. Without `keys` only its kind does: that is
    the hash of the wiring, equal for two servers of one make.
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
    """Return the digest of a node and all below it; it is added to `digests`, by id."""
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
"""The name where the source hides what it would follow from."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the GPUs of a server are connected; `name` follows from the numbers.

    `sockets`: how many have GPUs (NUMA nodes where the source has no packages). `trees`: how many
    root ports have GPUs below. `depth`: the most switches above a GPU of which each joins it with
    further GPUs; a bridge on a card is none, nor is a switch with the same GPUs as the one below.
    """

    name: str
    gpus: int
    sockets: int
    trees: int
    depth: int


def shape_of(tree: Tree) -> Shape:
    """Return the shape of `tree`."""
    above = tree.above()
    gpus = tree.gpus
    at = [socket for gpu, socket in tree.socket_of().items() if gpu in _ids(gpus)]
    # In a tree from labels several sockets may be of one NUMA node (grouped.py).
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
    """Return how many slots below a switch have GPUs; the functions of a device share one."""
    return len(
        {node.id.rpartition(".")[0] or node.id for node in switch.walk() if node.kind == "gpu"}
    )


# --- pairs of devices, in the labels of `nvidia-smi topo -m` -----------------------------------

ORDER = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""From the nearest to the farthest."""


def matrix_of(
    tree: Tree, devices: Sequence[Node], *, peers: bool = True
) -> dict[tuple[str, str], str]:
    """Return the label of each pair of `devices` by their ids: X, NV4, XGMI1, PIX, PXB, PHB, ...

    Without `peers` it is the label of the path over PCIe. Labels count bridges, those on cards too,
    so that they say less than the tree.
    """
    above = tree.above()
    sockets = tree.socket_of()
    beside = _beside(tree) if peers else {}
    found = {}
    for one in devices:
        for other in devices:
            pair = one.id, other.id
            if one is other:
                found[pair] = "X"
            elif pair in beside:
                found[pair] = beside[pair]
            else:
                same = sockets[one.id] is sockets[other.id]
                found[pair] = _label(above[one.id], above[other.id], same_socket=same)
    return found


def _label(one: tuple[Node, ...], other: tuple[Node, ...], *, same_socket: bool) -> str:
    """Return the label of two devices, by the nodes above each from the host bridge down.

    It is that of the legend of `nvidia-smi topo -m`.
    """
    common = 0
    for upper, lower in zip(one, other, strict=False):
        if upper is not lower:
            break
        common += 1
    crossed = [node for path in (one, other) for node in path[common:] if node.kind in BRIDGES]
    if common and one[common - 1].kind != "host-bridge":
        return "PXB" if crossed else "PIX"
    if common:
        return "PHB"
    near = one[0].numa == other[0].numa if None not in (one[0].numa, other[0].numa) else same_socket
    return "NODE" if near and same_socket else "SYS"


_NAMES = {"nvlink": "NV", "xgmi": "XGMI", "c2c": "C2C"}


def _beside(tree: Tree) -> dict[tuple[str, str], str]:
    """Return the labels of pairs with links beside PCIe; NVSwitches join each with all others."""
    found: dict[tuple[str, str], str] = {}
    switched = {peer.a: peer.count for peer in tree.peers if peer.b == NVSWITCH}
    for one, count in switched.items():
        found |= {(one, b): f"NV{min(count, switched[b])}" for b in switched if b != one}
    for peer in tree.peers:
        if peer.b != NVSWITCH:
            label = f"{_NAMES[peer.kind]}{peer.count}"
            found[peer.a, peer.b] = found[peer.b, peer.a] = label
    return found
