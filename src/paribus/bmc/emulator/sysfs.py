"""The PCIe tree of the emulated server, as files of /sys and /proc in a directory."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

GPU, NIC, BRIDGE = ("0x030200", "10de", "1db6"), ("0x020000", "15b3", "1017"), "0x060400"
"""Class, vendor and device: Tesla V100 PCIe 32 GB, ConnectX-5 (pci.ids), and any bridge."""

_PORT, _SWITCH = ("8086", "2030"), ("10b5", "9797")
"""Vendor and device: a root port of a Xeon Scalable, a PEX 9797 switch (pci.ids)."""

_HOSTS = {"Host0a": (0, 0x17), "Host0b": (0, 0x3A), "Host1a": (1, 0xAE)}
"""The x16 ports of the processors: socket, and the bus of the port's host bridge."""

_NICS = {0: 0x5D, 1: 0xD7}
_CORES = 16


def write_tree(root: Path, wires: Mapping[str, Sequence[int]]) -> None:
    """Write the files of a server under `root`: `wires` are the GPUs below each port.

    GPUs 0 to 3 hang at switch 0, the others at switch 1, which hangs below switch 0 where both are
    at one port. What stood at `root` is replaced in one step.
    """
    fresh = root.with_name(root.name + ".new")
    remove_tree(fresh)
    for socket in (0, 1):
        _processor(fresh, socket)
        bridge = f"pci0000:{_NICS[socket]:02x}"
        _device(fresh, bridge, f"0000:{_NICS[socket]:02x}:00.0", (BRIDGE, *_PORT), socket)
        port = f"{bridge}/0000:{_NICS[socket]:02x}:00.0"
        _device(fresh, port, f"0000:{_NICS[socket] + 1:02x}:00.0", NIC, socket)
    for host, gpus in wires.items():
        socket, bus = _HOSTS[host]
        at = f"pci0000:{bus:02x}"
        root_port = f"0000:{bus:02x}:00.0"
        _device(fresh, at, root_port, (BRIDGE, *_PORT), socket)
        near, far = [n for n in gpus if n < 4], [n for n in gpus if n >= 4]
        next_bus, inner = bus + 1, f"{at}/{root_port}"
        if near:
            next_bus, inner = _switch(fresh, inner, next_bus, near, socket, uplink=bool(far))
        if far:
            _switch(fresh, inner, next_bus, far, socket)
    remove_tree(root)
    fresh.rename(root)


def remove_tree(root: Path) -> None:
    """Remove what is at `root`: the server is off, so no operating system shows anything."""
    if root.exists():
        gone = root.with_name(root.name + ".gone")
        root.rename(gone)
        shutil.rmtree(gone)


def uuid_of(gpu: int) -> str:
    """Return the UUID of a GPU, which stays with it wherever it is wired to."""
    return f"GPU-00000000-0000-4000-8000-{gpu:012d}"


def _switch(
    root: Path, at: str, bus: int, gpus: Sequence[int], socket: int, *, uplink: bool = False
) -> tuple[int, str]:
    """Write a switch with its GPUs below `at`; return the next bus and its port for an uplink."""
    upper = f"0000:{bus:02x}:00.0"
    _device(root, at, upper, (BRIDGE, *_SWITCH), socket)
    ports = f"{at}/{upper}"
    last = ports
    following = bus + 2
    for slot, gpu in enumerate([*gpus, None] if uplink else gpus):
        port = f"0000:{bus + 1:02x}:{slot:02x}.0"
        _device(root, ports, port, (BRIDGE, *_SWITCH), socket)
        last = f"{ports}/{port}"
        if gpu is not None:
            address = f"0000:{following:02x}:00.0"
            _device(root, last, address, GPU, socket)
            _write(
                root / "proc/driver/nvidia/gpus" / address / "information",
                f"Model: \t\t Tesla V100-PCIE-32GB\nGPU UUID: \t {uuid_of(gpu)}\n",
            )
            following += 1
    return following, last


def _device(root: Path, at: str, address: str, what: Sequence[str], socket: int) -> None:
    place = root / "sys/devices" / at / address
    code, vendor, device = what
    for name, text in (
        ("class", code),
        ("vendor", f"0x{vendor}"),
        ("device", f"0x{device}"),
        ("numa_node", str(socket)),
        ("local_cpulist", _cpus(socket)),
        ("current_link_speed", "8.0 GT/s PCIe"),
        ("max_link_speed", "8.0 GT/s PCIe"),
        ("current_link_width", "16"),
        ("max_link_width", "16"),
    ):
        _write(place / name, text + "\n")
    link = root / "sys/bus/pci/devices" / address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../devices/{at}/{address}")


def _processor(root: Path, socket: int) -> None:
    _write(root / f"sys/devices/system/node/node{socket}/cpulist", _cpus(socket) + "\n")
    for cpu in range(socket * _CORES, (socket + 1) * _CORES):
        place = root / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        _write(place, f"{socket}\n")


def _cpus(socket: int) -> str:
    return f"{socket * _CORES}-{(socket + 1) * _CORES - 1}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
