"""Signs that a tree was made up by a hypervisor or written for one: it shows no hardware."""

from __future__ import annotations

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
