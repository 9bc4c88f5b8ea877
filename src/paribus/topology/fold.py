"""From PCI bridges as the bus lists them to root ports, switches and devices.

A switch is several bridges on the bus, an upstream port with downstream ports below it; here it is
one node. Also the signs by which a tree is one that a hypervisor made up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from paribus.topology.tree import DEVICES, Kind, Link, Node

_VENDORS = ("QEMU", "Amazon EC2", "Google", "VMware, Inc.", "Xen", "innotek GmbH", "OpenStack")
_PRODUCTS = ("Virtual Machine", "KVM", "HVM domU", "Bochs", "CloudStack KVM Hypervisor")
# DMI of guests of these hypervisors (systemd, src/basic/virt.c; Microsoft's for Hyper-V).


def of_product(vendor: str, product: str) -> str:
    """Return "product" if vendor and product of DMI are those of a virtual machine, else ""."""
    return "product" if vendor in _VENDORS or product in _PRODUCTS else ""


def of_addresses(nodes: list[Node]) -> str:
    """Return "addresses" for a bridge at ffff:ff, or a GPU on bus 0, else "".

    Clouds write the former into files for NCCL; Hyper-V passes each device through on bus 0 of a
    domain of its own.
    """
    made = any(n.address.startswith("ffff:ff:") for n in nodes)
    handed = any(n.kind == "gpu" and n.address[-7:-5] == "00" for n in nodes)
    return "addresses" if made or handed else ""


def of_labels(
    gpus: Sequence[str], links: Mapping[tuple[str, str], str], numa: Mapping[str, int]
) -> str:
    """Return "labels" where all pairs of GPUs have the label SYS, even on one NUMA node, else "".

    SYS is a path between NUMA nodes; it appears there under hypervisors that hide the bridges.
    """
    pairs = list(combinations(gpus, 2))
    far = all(links.get(pair) == "SYS" for pair in pairs)
    near = any(one in numa and numa[one] == numa.get(other) for one, other in pairs)
    return "labels" if far and near else ""


# PCI base and sub classes (PCI Code and ID Assignment Specification) to kinds of devices.
_CLASSES: dict[str, Kind] = {
    "02": "nic",
    "0108": "nvme",
    "0302": "gpu",
    "0380": "gpu",
    "0b40": "gpu",
    "12": "gpu",
}
_MAKERS = {"1022": "1002"}
"""Vendor ids of the same maker: AMD has one for processors and one from ATI."""

_GRAPHICS = ("10de", "1002")
"""Vendors whose VGA controllers are GPUs; others are consoles of a BMC or a hypervisor."""


@dataclass(slots=True)
class Raw:
    """A bridge or device on the bus, with those below it; `code`: four hex digits of its class."""

    address: str
    code: str = "0604"
    model: str = ""
    name: str = ""
    key: str = ""
    link: Link = field(default_factory=Link)
    redirects: bool | None = None
    below: list[Raw] = field(default_factory=list)

    @property
    def bridge(self) -> bool:
        """Whether this is a bridge to another bus."""
        return self.code == "0604"


def kind_of(code: str, model: str, *, integrated: bool = False) -> Kind | None:
    """Return the kind of device of a class code and a model ("vendor:device"); None for others.

    `integrated`: it has no root port above it.
    """
    vendor = model[:4]
    if code == "0300":
        computes = vendor in _GRAPHICS or (vendor == "8086" and not integrated)
        return "gpu" if computes else None
    if code == "0680" and vendor == "10de":
        return "nvswitch"
    return next((kind for start, kind in _CLASSES.items() if code.startswith(start)), None)


def host_bridge(address: str, numa: int | None, below: list[Raw]) -> Node:
    """Return the host bridge with all that is `below` it; without devices it has no children.

    A bridge directly below it is a root port. Deeper ones are switches: the upstream port, and
    below it the downstream ports. Bridges without a device of a known kind are left out.
    """
    ports = []
    for raw in below:
        if raw.bridge:
            inner = _folded(raw.below)
            if inner:
                ports.append(_node("root-port", raw, inner))
        elif kind := kind_of(raw.code, raw.model, integrated=True):
            ports.append(_node(kind, raw))
    return Node("host-bridge", address, numa=numa, children=tuple(ports))


def _folded(below: list[Raw]) -> tuple[Node, ...]:
    """Return the nodes below a port: switches, card-bridges and devices."""
    nodes = []
    for raw in below:
        if not raw.bridge:
            kind = kind_of(raw.code, raw.model)
            nodes += [_node(kind, raw)] if kind else []
            continue
        inner: list[Node] = []
        for port in raw.below:
            inner += _folded(port.below if port.bridge else [port])
        if inner:
            nodes.append(switch(raw, tuple(inner)))
    return tuple(nodes)


def switch(raw: Raw, inner: tuple[Node, ...]) -> Node:
    """Return the switch, or card-bridge, whose upstream port is `raw`."""
    redirects = [raw.redirects, *(port.redirects for port in raw.below if port.bridge)]
    known = [value for value in redirects if value is not None]
    kind: Kind = "card-bridge" if _of_card(raw.model, inner) else "switch"
    return replace(_node(kind, raw, inner), redirects=any(known) if known else None)


def _of_card(model: str, inner: tuple[Node, ...]) -> bool:
    """Return whether a bridge belongs to a card: its devices share one slot, and its vendor."""
    slots = {node.address.rpartition(".")[0] for node in inner}
    if len(slots) != 1 or not all(node.kind in DEVICES for node in inner):
        return False
    vendors = {_MAKERS.get(text[:4], text[:4]) for text in (model, *(n.model for n in inner))}
    return len(vendors - {"", "0000"}) < 2 or model[:4] in ("", "0000")


def _node(kind: Kind, raw: Raw, inner: tuple[Node, ...] = ()) -> Node:
    named = raw.name if kind in DEVICES else ""
    return Node(kind, raw.address, named, raw.model, raw.key, raw.link, children=inner)
