"""A tree from the matrix of `nvidia-smi topo -m`, as far as its labels show it.

Devices joined by PIX hang at one switch, those joined by PXB at one root port, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import ParseError
from paribus.readers import nvidia_topo
from paribus.topology.fold import of_labels
from paribus.topology.shape import ORDER, matrix_of
from paribus.topology.tree import NVSWITCH, Node, Peer, Socket, Tree, finished

Labels = Mapping[tuple[str, str], str]

_OTHER_WORDS = {"SOC": "SYS", "PSB": "PIX"}
"""Labels of older drivers for SYS, and of a switch on a card for PIX."""

_MOST_LINKS = 18
"""The most NVLinks of one GPU, those of Hopper (NVIDIA H100 white paper, 2022)."""


def recognise(text: str) -> bool:
    """Return whether `text` holds the matrix of nvidia-smi."""
    return nvidia_topo.recognise(text)


def read(text: str) -> Tree:
    """Return a tree with the labels of the matrix; raises ParseError where there is none.

    It has no addresses and no widths. Labels do not show whether, of two switches below one port,
    one is below the other or both are below a third: here they are below a third.
    """
    found = nvidia_topo.matrix(text)
    if len(found.devices) > 256:
        raise ParseError(f"{len(found.devices)} devices in one matrix")
    nodes = [
        Node("gpu" if device.startswith("GPU") else "nic", name=device) for device in found.devices
    ]
    if len({node.name for node in nodes}) < len(nodes):
        raise ParseError("two devices have one name")
    # The column after the labels shows the NUMA node of GPUs whose NVLinks hide their path.
    near = {device: rest[:1] for device, rest in found.rest.items()}
    numa = found.numa
    pcie = {pair: _OTHER_WORDS.get(label, label) for pair, label in found.links.items()}
    names = found.devices
    hidden = {pair: int(label[2:]) for pair, label in pcie.items() if label.startswith("NV")}
    sockets = _united(_groups(names, pcie, "NODE"), pcie, hidden, near)
    of_name = {node.name: node for node in nodes}
    numbers = [tuple(sorted({numa[name] for name in gpus if name in numa})) for gpus in sockets]
    known = [of for of in numbers if of]
    # Sorted by NUMA nodes; sockets without a known one are last.
    placed = sorted(zip(numbers, sockets, strict=True), key=lambda part: (not part[0], part[0]))
    tree = Tree(
        "smi",
        tuple(
            Socket(number, of, tuple(_bridges(of, gpus, pcie, of_name)))
            for number, (of, gpus) in enumerate(placed)
        ),
        tuple(_peers(names, hidden)),
        virtual=of_labels([node.name for node in nodes if node.kind == "gpu"], pcie, numa),
        lacks=(
            *(("packages",) if len(sockets) > 2 or len(set(known)) < len(known) else ()),
            *(("paths",) if hidden else ()),
            "addresses",
        ),
    )
    _check(tree, nodes, pcie)
    return finished(tree)


def _groups(names: Sequence[str], links: Labels, farthest: str) -> list[list[str]]:
    """Return the groups of names that are joined by labels as near as `farthest`, or nearer."""
    near = ORDER[: ORDER.index(farthest) + 1]
    group = {name: [name] for name in names}
    for (one, other), label in links.items():
        if label in near and one in group and other in group and group[one] is not group[other]:
            group[one] += group[other]
            for name in group[other]:
                group[name] = group[one]
    unique = {id(members): members for members in group.values()}
    rank = {name: number for number, name in enumerate(names)}
    return sorted(
        (sorted(g, key=rank.__getitem__) for g in unique.values()), key=lambda g: rank[g[0]]
    )


def _united(
    sockets: list[list[str]],
    links: Labels,
    hidden: Labels | Mapping[tuple[str, str], int],
    near: Mapping[str, Sequence[str]],
) -> list[list[str]]:
    """Return the sockets, two of them united where only NVLink labels are between them.

    They are one socket if GPUs of both have the same affinity (`near`), and no pair is SYS.
    """
    far = {pair for pair, label in links.items() if label == "SYS"}
    united: list[list[str]] = []
    for names in sockets:
        for number, other in enumerate(united):
            pairs = {(a, b) for a in other for b in names} | {(b, a) for a in other for b in names}
            same = any(near.get(a) and near.get(a) == near.get(b) for a, b in pairs & set(hidden))
            if same and not pairs & far:
                united[number] = other + names
                break
        else:
            united.append(list(names))
    return united


def _bridges(
    numa: Sequence[int], names: list[str], links: Labels, nodes: Mapping[str, Node]
) -> list[Node]:
    """Return the host bridges that `names`, the GPUs of a socket, are below by their labels."""
    return [
        Node(
            "host-bridge",
            numa=numa[0] if len(numa) == 1 else None,
            children=tuple(
                Node("root-port", children=_below(port, links, nodes))
                for port in _groups(bridge, links, "PXB")
            ),
        )
        for bridge in _groups(names, links, "PHB")
    ]


def _below(names: list[str], links: Labels, nodes: Mapping[str, Node]) -> tuple[Node, ...]:
    """Return the node below one root port: a device, or a switch, perhaps with switches below."""
    if len(names) == 1:
        return (nodes[names[0]],)
    switches = _groups(names, links, "PIX")
    if len(switches) == 1:
        return (_switch("", [nodes[name] for name in names]),)
    alone = sum(len(below) == 1 for below in switches)
    inner = []
    for below in switches:
        devices = [nodes[name] for name in below]
        # Several devices alone at their switch each have the bridge of their own card.
        bridge = _switch if len(below) > 1 else _card if alone > 1 else None
        inner += [bridge("", devices)] if bridge else devices
    return (_switch("", inner),)


def _switch(address: str, inner: list[Node]) -> Node:
    return Node("switch", address, children=tuple(inner))


def _card(address: str, inner: list[Node]) -> Node:
    return Node("card-bridge", address, children=tuple(inner))


def _peers(names: Sequence[str], hidden: Mapping[tuple[str, str], int]) -> list[Peer]:
    """Return NVLinks between pairs, or to NVSwitches where pairs would need too many links."""
    ends = {name for pair in hidden for name in pair}
    counts = set(hidden.values())
    whole = len(hidden) == len(ends) * (len(ends) - 1) // 2 and len(counts) == 1
    if whole and next(iter(counts)) * (len(ends) - 1) > _MOST_LINKS:
        return [
            Peer(name, NVSWITCH, "nvlink", next(iter(counts))) for name in names if name in ends
        ]
    return [Peer(one, other, "nvlink", count) for (one, other), count in hidden.items()]


def _check(tree: Tree, nodes: Sequence[Node], links: Labels) -> None:
    """Raise ParseError for a pair that has another label in the tree than in the matrix."""
    found = matrix_of(tree, nodes, peers=False)
    for (one, other), label in links.items():
        if label in ORDER and found[one, other] != label:
            raise ParseError(
                f"the labels contradict each other: {one} and {other} are {label}, but"
                f" {found[one, other]} by the labels of other pairs"
            )
