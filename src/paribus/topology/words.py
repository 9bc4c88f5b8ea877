"""Sentences about the tree of a server: its shape, warnings, differences, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from paribus.core import count, grouped
from paribus.topology.diff import Difference, folded
from paribus.topology.predict import Beside
from paribus.topology.shape import Shape
from paribus.topology.tree import Link, Node, Tree

Code = Literal["virtual", "narrow", "far-adapter", "redirect"]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning: its code, the nodes concerned, and values for its sentence."""

    code: Code
    nodes: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """An uplink that so many GPUs share: that of the switch `node`; its GB/s in each direction."""

    node: Node
    gpus: int
    gbs: float | None

    @property
    def each(self) -> float | None:
        """GB/s for each GPU while all of them use the link."""
        return None if self.gbs is None else self.gbs / self.gpus


def shares_of(tree: Tree) -> list[Share]:
    """Return the uplinks of switches with more than one GPU below, from the top down."""
    found = []
    for node in tree.walk():
        gpus = sum(inner.kind == "gpu" for inner in node.walk())
        if node.kind == "switch" and gpus > 1:
            found.append(Share(node, gpus, node.link.gbs))
    return found


def warnings_of(tree: Tree) -> list[Warned]:
    """Return warnings of what may surprise in measurements on this server."""
    found = [Warned("virtual", (), (tree.virtual,))] if tree.virtual else []
    for node in tree.walk():
        # A root port with more lanes than the card below it can use is no fault.
        now, most = node.link.width, node.link.width_most
        if node.kind != "root-port" and now and most and now < most:
            found.append(Warned("narrow", (node.name or node.address,), (str(now), str(most))))
        if node.redirects and sum(inner.kind == "gpu" for inner in node.walk()) > 1:
            found.append(Warned("redirect", (node.address,)))
    return [*found, *_far(tree)]


def _far(tree: Tree) -> list[Warned]:
    """Return a warning for GPUs at sockets without a fast adapter, where another socket has one."""
    sockets = tree.socket_of()
    fast = [nic for nic in tree.devices("nic") if _rate(nic.link) >= 4]
    at = {id(sockets[nic.id]) for nic in fast}
    far = tuple(gpu.name for gpu in tree.gpus if at and id(sockets[gpu.id]) not in at)
    return [Warned("far-adapter", far, (", ".join(nic.name for nic in fast),))] if far else []


def _rate(link: Link) -> float:
    """Return the GB/s of an adapter's link, plus 0.1 for rounding; 4 if it is not known.

    Four lanes of generation 3 have 3.9 GB/s: slower adapters are for administration.
    """
    rate = link.gbs
    return 4.0 if rate is None else rate + 0.1


_LACKS = {
    "peers": "This source does not show NVLink and other links beside PCIe.",
    "packages": "This source has NUMA nodes and no sockets: several may be one socket.",
    "host-bridges": "This source has no host bridges: PHB may be NODE.",
    "paths": "NVLink labels hide how these GPUs hang together over PCIe.",
    "addresses": "A matrix has no addresses and no widths of links.",
}
_MEANINGS = {
    "Balance": "each socket has its own tree of switches",
    "Common": "several trees of switches at one socket",
    "Cascade": "a switch below a switch, in one tree",
    "one switch": "one switch joins all GPUs",
    "direct": "no switch joins two GPUs",
    "NVSwitch": "NVSwitches join all GPUs",
    "mixed": "no common shape",
    "virtual": "virtual, not verifiable",
    "unknown": "the source hides the shape",
    "no GPU": "",
}


def of_shape(tree: Tree, shape: Shape) -> str:
    """Return the shape of a tree in one sentence."""
    name, parts = shape_parts(tree, shape)
    return f"{name}: {parts}." if parts else f"{name}."


def shape_parts(tree: Tree, shape: Shape) -> tuple[str, str]:
    """Return a shape's name with its meaning, and its numbers of GPUs, sockets, trees, levels."""
    if not shape.gpus:
        return "No GPU", ""
    parts = [
        count(shape.gpus, "GPU"),
        count(shape.sockets, "NUMA node" if tree.by_numa else "socket") + " with GPUs",
        count(shape.trees, "PCIe tree"),
        count(shape.depth, "level") + " of switches between GPUs",
    ]
    # A tree that a hypervisor shows is not called by the name of a profile.
    name = "Virtual" if shape.name == "virtual" else shape.name
    meaning = "not verifiable" if shape.name == "virtual" else _MEANINGS[shape.name]
    return f"{name} ({meaning})", ", ".join(parts)


def of_socket(tree: Tree, number: int) -> str:
    """Return the name of the socket at a place in a tree: "socket 0", "NUMA node 1"."""
    socket = tree.sockets[number]
    if tree.by_numa:
        return f"NUMA node {', '.join(map(str, socket.numa)) or '?'}"
    return f"socket {'?' if socket.package is None else socket.package}"


def of_lacks(tree: Tree) -> list[str]:
    """Return sentences on what the source of a tree does not show."""
    return [_LACKS[code] for code in tree.lacks]


def of_warning(one: Warned) -> str:
    """Return the sentences of a warning, with what to do."""
    nodes = folded(one.nodes)
    if one.code == "virtual":
        signs = {
            "hypervisor": "the processor states a hypervisor",
            "product": "the machine names itself a virtual one",
            "addresses": "its addresses are none of hardware",
            "labels": "SYS stands between GPUs of one NUMA node",
        }
        return (
            f"This tree is virtual, not verifiable: {signs.get(one.values[0], one.values[0])}."
            " Links and places in it are claims; measure them."
        )
    if one.code == "narrow":
        return (
            f"{nodes} has {one.values[0]} of {one.values[1]} lanes. Reseat the card or look for a"
            " slot that is wired with all lanes."
        )
    if one.code == "redirect":
        return (
            f"ACS of the switch {nodes} redirects: traffic between its GPUs passes the processor."
            " Switch ACS off in the firmware, or keep it alike in all arms."
        )
    verb = "is" if len(one.nodes) == 1 else "are"
    return (
        f"{nodes} {verb} at another socket than each network adapter ({one.values[0]}): traffic to"
        " other hosts crosses the link between sockets."
    )


_KINDS = {
    "host-bridge": "host bridge",
    "root-port": "root port",
    "card-bridge": "bridge of a card",
}


def of_node(node: Node) -> str:
    """Return the name of a device, or the kind of a bridge."""
    return node.name or _KINDS.get(node.kind, node.kind)


def of_link(link: Link) -> str:
    """Return a link as generation, lanes and GB/s: "Gen3 x16, 15.8 GB/s"."""
    return ", ".join(link_parts(link))


def link_parts(link: Link) -> list[str]:
    """Return the known ones of "Gen3 x16" and "15.8 GB/s"."""
    parts = [
        f"Gen{link.generation}" if link.generation else "",
        f"x{link.width}" if link.width else "",
    ]
    named = " ".join(part for part in parts if part)
    rate = f"{link.gbs:.1f} GB/s" if link.gbs else ""
    return [part for part in (named, rate) if part]


_WHAT = {
    "socket": "socket {before} -> socket {after}",
    "tree": "PCIe tree with {before} -> with {after}",
    "switch": "switch with {before} -> with {after}",
    "depth": "{before} -> {after} switches above",
    "width": "{before} -> {after} lanes",
    "speed": "PCIe generation {before} -> {after}",
}


def of_difference(found: Difference) -> Iterator[str]:
    """Yield a sentence for each difference, or one that says that there is none."""
    if not found:
        yield "The trees are alike: every device hangs where it did."
    if found.gone:
        yield f"Only in the first: {folded(found.gone)}."
    if found.new:
        yield f"Only in the second: {folded(found.new)}."
    by_devices = grouped((moved.devices, moved) for moved in found.moved)
    for devices, changes in by_devices.items():
        texts = [_WHAT[c.what].format(before=c.before, after=c.after) for c in changes]
        yield f"{folded(devices)}: {'; '.join(texts)}."
    for before, after, pairs in found.pairs:
        yield f"{count(pairs, 'pair')} of GPUs: {before} -> {after}."
    for one, other, before_count, after_count in found.links:
        yield f"Links beside PCIe between {one} and {other}: {before_count} -> {after_count}."


def of_prediction(source: str) -> str:
    """Return the sentence on how the figures of a prediction are made."""
    return (
        "Predicted, not measured: max-min fair flows over the capacities of the links, from"
        f" {source}. Latency and protocols are not in it."
    )


_HOLDS = {"yes": "holds", "tie": "holds by less than 1 %", "no": "does not hold"}


def of_beside(one: Beside) -> str:
    """Return a published ordering with the predicted ones, and whether it holds in each."""
    ways = ("with links of a processor that both directions share", "with links for each direction")
    texts = [
        f"{way}, predicted {predicted}: {_HOLDS[holds]}"
        for way, predicted, holds in zip(ways, one.predicted, one.holds, strict=True)
    ]
    best = " best" if one.published.isalnum() else ""
    return f"published {one.published}{best}; {'; '.join(texts)}."


def of_window() -> str:
    """Return the title of the map of the best trees."""
    return "Shortest training step, predicted, not measured (circle: the model itself)"
