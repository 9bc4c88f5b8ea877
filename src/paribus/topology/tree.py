"""The PCIe tree of a server, the same from all sources: sockets, bridges, switches, devices.

Socket -> host bridge -> root port -> switch -> GPU: each is a Node with its children.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paribus.core import ParseError

Kind = Literal[
    "host-bridge", "root-port", "switch", "card-bridge", "gpu", "nic", "nvme", "nvswitch"
]
"""A switch is its upstream port with all of its downstream ports. A card-bridge is a bridge on a
card: it joins no slots, and so is no switch."""

DEVICES = ("gpu", "nic", "nvme", "nvswitch")
BRIDGES = ("switch", "card-bridge")
PeerKind = Literal["nvlink", "xgmi", "c2c"]
NVSWITCH = "nvswitch"
"""The other end of links to the NVSwitches of a server, which join each GPU with all others."""

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
MOST_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Link:
    """The PCIe link above a node: GT/s per lane and lanes, now and at most; None: unknown.

    `rate`: GB/s in each direction, from a source that has only that.
    """

    speed: float | None = None
    width: int | None = None
    speed_most: float | None = None
    width_most: int | None = None
    rate: float | None = None

    @property
    def generation(self) -> int | None:
        """The generation of PCIe that `speed` belongs to."""
        return _GENERATIONS.get(self.speed) if self.speed else None

    @property
    def generation_most(self) -> int | None:
        """The generation of PCIe that `speed_most` belongs to."""
        return _GENERATIONS.get(self.speed_most) if self.speed_most else None

    @property
    def gbs(self) -> float | None:
        """GB/s (10^9 B/s) in each direction after line coding, before packet headers.

        Line coding is 8b/10b up to 5 GT/s and 128b/130b from 8 GT/s on (PCI Express Base
        Specification, 4.2.1 and 4.2.2).
        """
        if self.speed is None or self.width is None:
            return self.rate
        return self.speed * self.width / 8 * (0.8 if self.speed < 8 else 128 / 130)


@dataclass(frozen=True, slots=True)
class Node:
    """A bridge or a device. `key`: its UUID, GUID or serial number; `model`: "vendor:device", hex.

    `numa`: its NUMA node, of host bridges only. `redirects`: whether ACS of a port of this switch
    sends traffic between its devices through the root complex; None if unknown.
    """

    kind: Kind
    address: str = ""
    name: str = ""
    model: str = ""
    key: str = ""
    link: Link = Link()
    numa: int | None = None
    redirects: bool | None = None
    children: tuple[Node, ...] = ()

    @property
    def id(self) -> str:
        """Its address, or its name where the source has no addresses."""
        return self.address or self.name

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, each before its children."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending += reversed(node.children)


@dataclass(frozen=True, slots=True)
class Socket:
    """A processor package with its NUMA nodes and host bridges; `package` is None if unknown."""

    package: int | None = None
    numa: tuple[int, ...] = ()
    bridges: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Peer:
    """`count` links beside PCIe between two devices; `b` may be NVSWITCH, or "cpu0" for a package.

    `gbs`: GB/s of all of them together in each direction, None if unknown.
    """

    a: str
    b: str
    kind: PeerKind
    count: int
    gbs: float | None = None

    @property
    def direct(self) -> bool:
        """Whether both ends are devices: not NVSwitches, nor a processor."""
        return self.b != NVSWITCH and not self.b.startswith("cpu")


@dataclass(frozen=True, slots=True)
class Tree:
    """A server as `source` shows it.

    `virtual`: the sign by which it is not real hardware ("hypervisor", "product", "addresses",
    "labels"), "" for none. `lacks`: codes of what this source does not show; words.py has them.
    """

    source: str
    sockets: tuple[Socket, ...]
    peers: tuple[Peer, ...] = ()
    virtual: str = ""
    lacks: tuple[str, ...] = ()
    product: str = ""

    @property
    def by_numa(self) -> bool:
        """Whether its sockets are NUMA nodes, several of which may be one processor."""
        return "packages" in self.lacks

    def walk(self) -> Iterator[Node]:
        """Yield all nodes, each before its children."""
        for socket in self.sockets:
            for bridge in socket.bridges:
                yield from bridge.walk()

    def mapped(self, change: Callable[[Node], Node]) -> Tree:
        """Return the tree with `change` applied to each node, from the top down."""

        def changed(node: Node) -> Node:
            new = change(node)
            return replace(new, children=tuple(map(changed, new.children)))

        sockets = (replace(s, bridges=tuple(map(changed, s.bridges))) for s in self.sockets)
        return replace(self, sockets=tuple(sockets))

    def devices(self, *kinds: str) -> list[Node]:
        """Return the devices of these kinds, GPUs in the order of their names."""
        found = [node for node in self.walk() if node.kind in kinds]
        return sorted(found, key=lambda node: (DEVICES.index(node.kind), _natural(node.name)))

    @property
    def gpus(self) -> list[Node]:
        """The GPUs and other accelerators, in the order of their names."""
        return self.devices("gpu")

    def above(self) -> dict[str, tuple[Node, ...]]:
        """Return the nodes above each device, by its id, from its host bridge down."""
        found: dict[str, tuple[Node, ...]] = {}
        pending: list[tuple[Node, tuple[Node, ...]]]
        pending = [(bridge, ()) for socket in self.sockets for bridge in socket.bridges]
        while pending:
            node, upper = pending.pop()
            if node.kind in DEVICES:
                found[node.id] = upper
            pending += [(child, (*upper, node)) for child in node.children]
        return found

    def socket_of(self) -> dict[str, Socket]:
        """Return the socket of each device, by its id."""
        return {
            node.id: socket
            for socket in self.sockets
            for bridge in socket.bridges
            for node in bridge.walk()
            if node.kind in DEVICES
        }


def _natural(name: str) -> tuple[str, int]:
    digits = name[len(name.rstrip("0123456789")) :]
    return name.removesuffix(digits), int(digits[:9] or -1)


def finished(tree: Tree) -> Tree:
    """Return `tree` with a name for each device, and checked.

    GPUs are numbered in the order of their addresses, as nvidia-smi does it. Raises ParseError
    where two nodes have the same address, or a link beside PCIe has an end that does not exist.
    """
    seen: set[str] = set()
    for count, node in enumerate(tree.walk()):
        if node.address in seen:
            raise ParseError(f"two devices have the address {node.address}")
        seen |= {node.address} - {""}
        if count > MOST_NODES:
            raise ParseError(f"more than {MOST_NODES:,} devices and bridges")
    names = _names([node for node in tree.walk() if node.kind in DEVICES])
    tree = tree.mapped(
        lambda node: replace(
            node,
            name=names.get(id(node), node.name),
            children=tuple(sorted(node.children, key=place_of)),
        )
    )
    ids = {node.id for node in tree.walk() if node.kind in DEVICES}
    cpus = {f"cpu{socket.package}" for socket in tree.sockets}
    for peer in tree.peers:
        if peer.a not in ids or peer.b not in ids | cpus | {NVSWITCH}:
            raise ParseError(f"a link from {peer.a} to {peer.b} leads to no device")
        if peer.a == peer.b:
            raise ParseError(f"a link leads from {peer.a} to itself")
    return tree


def _names(devices: Sequence[Node]) -> dict[int, str]:
    """Return a name for each device without one, by the object's identity."""
    named: dict[int, str] = {}
    for kind in DEVICES:
        alike = [node for node in devices if node.kind == kind]
        taken = {node.name for node in alike if node.name}
        if len(taken) < sum(bool(node.name) for node in alike):
            raise ParseError(f"two devices have one name among {', '.join(sorted(taken))[:120]}")
        free = (f"{kind.upper()}{n}" for n in range(2 * len(alike)))
        fresh = (name for name in free if name not in taken)
        for node in sorted(alike, key=lambda node: bus_order(node.address)):
            named[id(node)] = node.name or next(fresh)
    return named


def bus_order(address: str) -> tuple[int, ...]:
    """Return the key by which addresses are sorted: domain, bus, device and function as numbers."""
    parts = address.replace(".", ":").split(":") if _ADDRESS.fullmatch(address) else ()
    return tuple(int(part, 16) for part in parts)


def by_socket(
    bridges: Iterable[Node],
    owners: Mapping[int, int],
    packages: Iterable[int] = (),
    placed: Mapping[str, int] | None = None,
) -> tuple[Socket, ...]:
    """Return the sockets with their host bridges.

    `owners`: the package of each NUMA node; `packages`: further packages; `placed`: the package of
    host bridges, by address, where it is known otherwise. Bridges without a known package are at a
    socket without a number, unless there is only one package.
    """
    known = sorted({*packages, *owners.values()})
    at: dict[int | None, list[Node]] = {package: [] for package in known}
    for bridge in bridges:
        package = (placed or {}).get(bridge.address)
        if package is None and bridge.numa is not None:
            package = owners.get(bridge.numa)
        at.setdefault(known[0] if len(known) == 1 else package, []).append(bridge)
    return tuple(
        Socket(
            package,
            tuple(sorted(node for node, owner in owners.items() if owner == package)),
            tuple(sorted(bridges, key=place_of)),
        )
        for package, bridges in at.items()
    )


def place_of(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the key by which siblings are sorted: address, and that of the first device below."""
    below = (inner.address for inner in node.walk() if inner.kind in DEVICES)
    first = min((bus_order(address) for address in below), default=())
    return (bus_order(node.address) if node.kind != "host-bridge" else (), first)
