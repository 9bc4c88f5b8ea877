"""PCI Express: the links of the devices that matter, the shape of the tree, access control."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.devices import Device, irq_facts, numbered
from paribus.probes.values import number, scalar

_PCI = "/sys/bus/pci/devices/"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST_BRIDGE = re.compile(r"/(pci[0-9a-f]{4,8}:[0-9a-f]{2})/")
# PCI base and sub classes (PCI Code and ID Assignment Specification).
_KINDS = {"0x0108": "nvme", "0x0b40": "coprocessor", "0x12": "accelerator"}
_OTHERS = {"0x02": "network", "0x03": "display"}


def addresses(path: str) -> list[str]:
    """Return the PCI addresses on a device's path in /sys/devices, the root port first."""
    return _ADDRESS.findall(path)


def link(archive: Archive, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return hardware and settings of the last PCI device on `path`; ({}, {}) without one.

    `pci.bridges` is how many are above it: 1 is a root port, 3 a switch below one. `pci.path_width`
    is the narrowest current link between it and the processor, in lanes.
    """
    chain = addresses(path)
    if not chain:
        return {}, {}
    base = f"{_PCI}{chain[-1]}/"
    hardware = {
        "pci.id": _identifier(archive, chain[-1]),
        "pci.bridges": len(chain) - 1,
        "pci.width_most": _width(archive.read(base + "max_link_width")),
        "pci.speed_most": _speed(archive.read(base + "max_link_speed")),
    }
    widths = [_width(archive.read(f"{_PCI}{address}/current_link_width")) for address in chain]
    known = [width for width in widths if isinstance(width, int) and width > 0]
    settings = {
        "pci.width": widths[-1],
        "pci.speed": _speed(archive.read(base + "current_link_speed")),
        "pci.path_width": min(known) if known else widths[-1],
        "numa_node": number(archive.read(base + "numa_node")),
    }
    return hardware, settings


def pci_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of NVMe disks and accelerators, and of the whole tree of PCI devices.

    Network interfaces and GPUs have their own modules; here they are only counted.
    """
    devices = []
    counts: Counter[str] = Counter()
    for address in archive.names(_PCI + "*/class"):
        kind = _kind(archive.text(f"{_PCI}{address}/class"))
        counts[kind] += 1
        if kind in _KINDS.values():
            hardware, settings = link(archive, archive.links.get(_PCI + address, address))
            irqs = irq_facts(archive, address)
            devices.append(Device(f"pci.{kind}", hardware, settings, {"address": address}, irqs))
    del counts[""]
    return {
        **numbered(devices),
        **_tree(archive),
        "pci.devices": dict(sorted(counts.items())) or Unknown.ABSENT,
        "pci.acs": _access_control(archive),
    }


def _kind(code: str) -> str:
    """Return the kind of device with the class `code`: "nvme" for "0x010802", "" for a bridge."""
    table = _KINDS | _OTHERS
    return next((kind for start, kind in table.items() if code.startswith(start)), "")


# Bits of the ACS control register (PCI Express Base Specification, 7.7.11): source validation,
# translation blocking, request and completion redirect, upstream forwarding, egress control.
_CONTROLS = ("SV", "TB", "RR", "CR", "UF", "EC", "DT")


def _access_control(archive: Archive) -> dict[str, int] | Unknown:
    """Return how many bridges have which access controls on: {"SV RR CR UF": 4, "none": 2}.

    Redirects (RR, CR) send traffic between GPUs through the processor.
    """
    found: Counter[str] = Counter()
    bridges = [line.split(" ") for line in archive.lists.get("bridges", ())]
    for words in bridges:
        if words[-1] == "denied":
            return Unknown.DENIED
        control = _extended_capability(words[-1] if len(words) == 2 else "", 0x000D)
        if control is not None:
            found[
                " ".join(n for bit, n in enumerate(_CONTROLS) if control >> bit & 1) or "none"
            ] += 1
    return dict(sorted(found.items())) if bridges else Unknown.ABSENT


def redirects(archive: Archive) -> dict[str, bool]:
    """Return whether each bridge redirects, by its address, of those whose controls can be read.

    Requests (RR) or completions (CR) between devices below it then pass the root complex.
    """
    found = {}
    for line in archive.lists.get("bridges", ()):
        address, _, space = line.partition(" ")
        control = None if space == "denied" else _extended_capability(space, 0x000D)
        if control is not None:
            found[address] = bool(control & 0b1100)
    return found


def _extended_capability(space: str, wanted: int) -> int | None:
    """Return the 16 bits at offset 6 of the capability `wanted`; None where a device lacks it.

    `space` is the configuration space from 0x100 on, in hex, lowest byte first.
    """
    try:
        data = bytes.fromhex(space)
    except ValueError:
        return None
    at = 0x100
    for _ in range(64):  # a list that runs in a circle ends here
        header = int.from_bytes(data[at - 0x100 : at - 0xFC], "little")
        if header & 0xFFFF == wanted:
            return int.from_bytes(data[at - 0xFA : at - 0xF8], "little")
        at = header >> 20
        if at < 0x100:
            return None
    return None


def _tree(archive: Archive) -> dict[str, Any]:
    """Return a hash of the tree's shape (what hangs below what), without any number of a bus."""
    below: dict[str, set[str]] = {}
    for address in archive.names(_PCI + "*/class"):
        path = archive.links.get(_PCI + address, address)
        # Two host bridges are two ways to the processor, often of two sockets.
        chain = [*_HOST_BRIDGE.findall(path), *addresses(path)]
        for upper, lower in zip(["", *chain], chain, strict=False):
            below.setdefault(upper, set()).add(lower)
    shapes: dict[str, str] = {}
    pending = [""]  # a stack of our own: an archive cannot make it too deep
    visited = set()
    while pending:
        if (at := pending[-1]) not in visited:
            visited.add(at)
            pending += [child for child in below.get(at, ()) if child not in visited]
            continue
        pending.pop()
        inner = ",".join(sorted(shapes.get(child, "") for child in below.get(at, ())))
        device = _identifier(archive, at) if at else "root"
        if isinstance(device, Unknown) and device is not Unknown.ABSENT:
            return {"pci.shape": device}
        whole = f"{'' if isinstance(device, Unknown) else device}({inner})"
        shapes[at] = hashlib.sha256(whole.encode()).hexdigest()[:12]
    return {"pci.shape": shapes[""] if below else Unknown.ABSENT}


def _identifier(archive: Archive, address: str) -> str | Unknown:
    """Return "vendor:device subsystem-vendor:subsystem-device", the latter where there is one."""
    base = f"{_PCI}{address}/"
    vendor, device = archive.read(base + "vendor"), archive.read(base + "device")
    if isinstance(vendor, Unknown) or isinstance(device, Unknown):
        return vendor if isinstance(vendor, Unknown) else device
    board = [archive.text(base + f"subsystem_{part}") for part in ("vendor", "device")]
    pairs = [[vendor, device], *([board] if board[0] else [])]
    return " ".join(":".join(part.removeprefix("0x") for part in pair) for pair in pairs)


def _speed(text: str | Unknown) -> Any:
    """Return the speed as the kernel writes it: "16.0 GT/s PCIe"; UNSUPPORTED for "Unknown"."""
    speed = scalar(text)
    return Unknown.UNSUPPORTED if str(speed).lower().startswith("unknown") else speed


def _width(text: str | Unknown) -> Any:
    """Return the lanes; UNSUPPORTED for 0 or 255, which devices without a link state."""
    width = number(text)
    return Unknown.UNSUPPORTED if width in (0, 255) else width
