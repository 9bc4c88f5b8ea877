"""The emulated server: which GPUs are wired to which port of a processor, and its power.

Its operating system is a directory with the files of /sys that `paribus topology` reads, which is
there while the server is on. Two sockets, 8 GPUs behind two PCIe switches, one NIC per socket.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

GPU, NIC, BRIDGE = ("0x030200", "10de", "1db6"), ("0x020000", "15b3", "1017"), "0x060400"
"""Class, vendor and device: Tesla V100 PCIe 32 GB, ConnectX-5 (pci.ids), and any bridge."""

_PORT, _SWITCH = ("8086", "2030"), ("10b5", "9797")
"""Vendor and device: a root port of a Xeon Scalable, a PEX 9797 switch (pci.ids)."""

_HOSTS = {"Host0a": (0, 0x17), "Host0b": (0, 0x3A), "Host1a": (1, 0xAE)}
"""The x16 ports of the processors: socket, and the bus of the port's host bridge."""

_NICS = {0: 0x5D, 1: 0xD7}
"""By socket, the bus of the host bridge that its NIC is below."""

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
    """Write a switch with its GPUs below `at`, from number `bus` on.

    Return the next free bus and the path of its last port, which with `uplink` has no GPU: the
    other switch hangs there.
    """
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
    """Write the files of a PCIe device below `at`; `what` is its class, vendor and device."""
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
    """Write the files of a socket and its cores."""
    _write(root / f"sys/devices/system/node/node{socket}/cpulist", _cpus(socket) + "\n")
    for cpu in range(socket * _CORES, (socket + 1) * _CORES):
        place = root / f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        _write(place, f"{socket}\n")


def _cpus(socket: int) -> str:
    return f"{socket * _CORES}-{(socket + 1) * _CORES - 1}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


HOSTS = ("Host0a", "Host0b", "Host1a")
GPUS = tuple(f"GPU{n}" for n in range(8))
SHAPES = {"Balance": "Host1a", "Common": "Host0b", "Cascade": "Host0a"}
"""The port of the processors that the uplink of switch 1 leads to, by the shape that it makes."""

ATTRIBUTE = "PcieTopology"
"""The BIOS attribute that names a shape, in the dialect that has one."""


class Hardware:
    """A server with 8 GPUs behind two PCIe switches.

    By port of the processors, `zones` are the endpoints that its BMC believes to be there, `wires`
    those that the switches connect, which the operating system finds when it boots: the two are the
    same unless a fault makes the BMC lie. `settings` take effect at the next boot. `moves` logs the
    changes, such as "+Host0a/GPU4". `root` holds the files of /sys, and is not there while the
    server is off.
    """

    def __init__(self, root: Path, shape: str = "Balance", boot_s: float = 0.0) -> None:
        self.root = root
        self.boot_s = boot_s
        self.power = "Off"
        self.shape = shape
        self.settings: dict[str, str] = {}
        self.zones: dict[str, list[str]] = {}
        self.wires: dict[str, list[str]] = {}
        self.moves: list[str] = []
        self._boot: threading.Timer | None = None
        self._form(shape)
        self._booted()

    def _form(self, shape: str) -> None:
        """Make zones and wires those of a shape."""
        self.zones = {host: [host] for host in HOSTS}
        self.zones["Host0a"] += GPUS[:4]
        self.zones[SHAPES[shape]] += GPUS[4:]
        self.wires = {host: list(ends) for host, ends in self.zones.items()}
        self.shape = shape

    def add(self, zone: str, endpoint: str, *, wired: bool = True) -> None:
        """Assign a GPU to the port of a zone; without `wired` the BMC only believes it."""
        self.zones[zone].append(endpoint)
        self.zones[zone].sort(key=lambda name: (name not in HOSTS, name))
        if wired:
            for ends in self.wires.values():
                ends[:] = [end for end in ends if end != endpoint]
            self.wires[zone].append(endpoint)
        self.moves.append(f"+{zone}/{endpoint}")

    def remove(self, zone: str, endpoint: str, *, wired: bool = True) -> None:
        """Take a GPU from the port of a zone; without `wired` the BMC only believes it."""
        self.zones[zone].remove(endpoint)
        if wired and endpoint in self.wires[zone]:
            self.wires[zone].remove(endpoint)
        self.moves.append(f"-{zone}/{endpoint}")

    def set_shape(self, shape: str) -> None:
        """Wire the switches as `shape` has it."""
        self._form(shape)
        self.moves.append(f"={shape}")

    def start(self) -> None:
        """Power on: what is set for the next boot takes effect, and the tree is enumerated."""
        if self.power == "Off":
            self.power = "PoweringOn" if self.boot_s else "On"
            if self.boot_s:
                self._boot = threading.Timer(self.boot_s, self._booted)
                self._boot.daemon = True
                self._boot.start()
            else:
                self._booted()

    def _booted(self) -> None:
        """Be on: with the settings in effect, and the tree as it is wired."""
        if shape := self.settings.pop(ATTRIBUTE, ""):
            self.set_shape(shape)
        gpus = {h: [int(end[3:]) for end in ends if end in GPUS] for h, ends in self.wires.items()}
        write_tree(self.root, {host: sorted(below) for host, below in gpus.items()})
        self.power = "On"

    def stop(self) -> None:
        """Power off at once: no operating system is there any more."""
        if self._boot:
            self._boot.cancel()
        self.power = "Off"
        remove_tree(self.root)
