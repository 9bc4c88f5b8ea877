"""How two devices are joined, in the labels of `nvidia-smi topo -m`."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.topology.tree import BRIDGES, NVSWITCH, Node, Tree

ORDER = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""From the nearest to the farthest."""


def matrix_of(
    tree: Tree, devices: Sequence[Node], *, peers: bool = True
) -> dict[tuple[str, str], str]:
    """Return the label of each pair of `devices` by their ids: X, NV4, XGMI1, PIX, PXB, PHB, ...

    Without `peers` the label is of the path over PCIe alone. A label counts bridges, also those
    that a card brings: it says less than the tree.
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
    """Return the label of two paths from a host bridge down (nvidia-smi topo -m, its legend)."""
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
    """Return the labels of pairs that have links beside PCIe; NVSwitches join all with all."""
    found: dict[tuple[str, str], str] = {}
    switched = {peer.a: peer.count for peer in tree.peers if peer.b == NVSWITCH}
    for one, count in switched.items():
        found |= {(one, b): f"NV{min(count, switched[b])}" for b in switched if b != one}
    for peer in tree.peers:
        if peer.b != NVSWITCH:
            label = f"{_NAMES[peer.kind]}{peer.count}"
            found[peer.a, peer.b] = found[peer.b, peer.a] = label
    return found
