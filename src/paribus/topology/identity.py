"""A hash of a tree that stays the same while its wiring does, whatever number a bus gets."""

from __future__ import annotations

import hashlib

from paribus.topology.tree import DEVICES, Node, Peer, Tree


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
