"""The emulated server: which GPUs are wired to which port of a processor, and its power."""

from __future__ import annotations

import threading
from pathlib import Path

from paribus.bmc.emulator.sysfs import remove_tree, write_tree

HOSTS = ("Host0a", "Host0b", "Host1a")
GPUS = tuple(f"GPU{n}" for n in range(8))
SHAPES = {"Balance": "Host1a", "Common": "Host0b", "Cascade": "Host0a"}
"""The port of the processors that the uplink of switch 1 leads to, by the shape that it makes."""

ATTRIBUTE = "PcieTopology"
"""The BIOS attribute that names a shape, in the dialect that has one."""


class Hardware:
    """A server with 8 GPUs behind two PCIe switches. `zones` are what its BMC believes.

    `wires` are what the switches do, which is what the operating system finds when it boots: the
    two are the same unless a fault makes the BMC lie. `settings` take effect at the next boot.
    `root` holds the files of /sys, and is not there while the server is off.
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
