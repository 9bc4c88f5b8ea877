"""What to know about a tree before it is measured: shares of links, and warnings as codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paribus.topology.tree import Link, Node, Tree

Code = Literal["virtual", "narrow", "far-adapter", "redirect"]


@dataclass(frozen=True, slots=True)
class Warned:
    """What is wrong with which nodes; `values` are figures for its sentence."""

    code: Code
    nodes: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """An uplink that several GPUs have in common, and GB/s in each direction: of all, of each."""

    node: Node
    gpus: int
    gbs: float | None

    @property
    def each(self) -> float | None:
        """GB/s that are left for each GPU while all of them use the link."""
        return None if self.gbs is None else self.gbs / self.gpus


def shares_of(tree: Tree) -> list[Share]:
    """Return the uplinks of switches with more than one GPU below, the upper first."""
    found = []
    for node in tree.walk():
        gpus = sum(inner.kind == "gpu" for inner in node.walk())
        if node.kind == "switch" and gpus > 1:
            found.append(Share(node, gpus, node.link.gbs))
    return found


def warnings_of(tree: Tree) -> list[Warned]:
    """Return what makes measurements on this server say something else than one expects."""
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
    """Return GPUs whose socket has no adapter while another socket has one as fast as any."""
    sockets = tree.socket_of()
    fast = [nic for nic in tree.devices("nic") if _rate(nic.link) >= 4]
    at = {id(sockets[nic.id]) for nic in fast}
    far = tuple(gpu.name for gpu in tree.gpus if at and id(sockets[gpu.id]) not in at)
    return [Warned("far-adapter", far, (", ".join(nic.name for nic in fast),))] if far else []


def _rate(link: Link) -> float:
    """Return GB/s; of an adapter whose link is not given as much as one of a cluster has.

    Four lanes of generation 3 have 3.9 GB/s: what is slower is a port for administration.
    """
    rate = link.gbs
    return 4.0 if rate is None else rate + 0.1
