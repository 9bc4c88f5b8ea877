"""Signs that a tree was made up by a hypervisor or written for one: it shows no hardware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from paribus.topology.tree import Node

_VENDORS = ("QEMU", "Amazon EC2", "Google", "VMware, Inc.", "Xen", "innotek GmbH", "OpenStack")
_PRODUCTS = ("Virtual Machine", "KVM", "HVM domU", "Bochs", "CloudStack KVM Hypervisor")
# As DMI states them for guests of these (systemd, src/basic/virt.c, and Microsoft's for Hyper-V).


def of_product(vendor: str, product: str) -> str:
    """Return "product" where the names of vendor and product are those of a hypervisor's guest."""
    return "product" if vendor in _VENDORS or product in _PRODUCTS else ""


def of_addresses(nodes: list[Node]) -> str:
    """Return "addresses" for a bridge at ffff:ff, or a GPU on bus 0 without a root port.

    Clouds write the former into files for NCCL; the latter is how Hyper-V hands over a device, each
    in a domain of its own.
    """
    made = any(n.address.startswith("ffff:ff:") for n in nodes)
    handed = any(n.kind == "gpu" and n.address[-7:-5] == "00" for n in nodes)
    return "addresses" if made or handed else ""


def of_labels(
    gpus: Sequence[str], links: Mapping[tuple[str, str], str], numa: Mapping[str, int]
) -> str:
    """Return "labels" where all GPUs are joined by SYS, also those of one NUMA node.

    SYS is a path from one NUMA node to another: hypervisors print it who show each device alone.
    """
    pairs = list(combinations(gpus, 2))
    far = all(links.get(pair) == "SYS" for pair in pairs)
    near = any(one in numa and numa[one] == numa.get(other) for one, other in pairs)
    return "labels" if far and near else ""
