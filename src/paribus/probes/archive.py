"""What was read of a machine, before it means anything: texts of files and outputs of tools.

An Archive comes from the stream that facts.sh prints on a node, or from a directory or tar file
with the same contents. In place of a text that could not be read stands the reason, an Unknown:
archive.read("/proc/loadavg") is "0.10 0.20 0.15 1/345 12345", or Unknown.ABSENT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from paribus.core import natural
from paribus.probes.variables import SECRET, kept

MOST_BYTES = 16 << 20
"""A longer answer of a node is refused; facts.sh stops at half of it."""

FILE_BYTES = 1 << 20
"""A file with more bytes is unknown (CUT)."""

QUERY = (
    "name,driver_version,vbios_version,pstate,clocks.max.sm,clocks.max.mem,clocks.applications.gr,"
    "clocks.applications.mem,power.limit,ecc.mode.current,persistence_mode,mig.mode.current,"
    "compute_mode,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max,memory.total,memory.used,clocks.sm,clocks.mem,clocks_event_reasons.active,"
    "ecc.errors.uncorrected.volatile.total,pci.bus_id,temperature.gpu,utilization.gpu,"
    "remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,"
    "remapped_rows.failure"
)
"""Fields of `nvidia-smi --query-gpu` that are asked for, as its --help-query-gpu names them."""

DEVICE_CLASSES = "^0x(02|03|0108|0604|0b40|12)"
"""Classes of PCI devices that are read: network, display, NVMe, bridge, coprocessor, accelerator
(PCI Code and ID Assignment Specification)."""

DEVICE_FILES = (
    "class vendor device subsystem_vendor subsystem_device current_link_speed current_link_width "
    "max_link_speed max_link_width numa_node"
)
"""Files that are read in the directory of each such device."""


class Unknown(Enum):
    """Why there is no value. None is equal to anything, itself included, when arms are compared."""

    ABSENT = "absent"
    DENIED = "denied"
    UNSUPPORTED = "unsupported"
    CUT = "cut"
    TIMED_OUT = "timed out"
    REDACTED = "redacted"
    UNREADABLE = "unreadable"


def unknown(value: object) -> bool:
    """Return whether `value`, of Facts, is {"unknown": why}."""
    return isinstance(value, Mapping) and "unknown" in value


def fact(value: Any) -> Any:
    """Return `value` as it stands in Facts: an Unknown as {"unknown": why}."""
    return {"unknown": value.value} if isinstance(value, Unknown) else value


def files_of(text: str) -> dict[str, str]:
    """Return the text of each file by its path, from lines PATH:LINE as `grep -H` prints them."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        # Zones of powercap have a colon in their names, and none in their texts.
        split = line.rpartition if line.startswith("/sys/class/powercap/") else line.partition
        path, _, rest = split(":")
        found.setdefault(path, []).append(rest)
    return {path: "\n".join(lines) for path, lines in found.items()}


@dataclass(frozen=True, slots=True)
class Archive:
    """What was read of one machine. `read` and `tool` never raise."""

    files: Mapping[str, str | Unknown]  # texts by path
    tools: Mapping[str, tuple[int, str] | Unknown] = field(default_factory=dict)  # status, output
    links: Mapping[str, str] = field(default_factory=dict)  # where links of /sys lead, by path
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)  # lines of sections by name
    host: str = ""

    def read(self, path: str) -> str | Unknown:
        """Return the text of a file, or why there is none.

        Without surrounding white space, and without the NUL that Linux 5.15 and others write behind
        lists of processors.
        """
        text = self.files.get(path, Unknown.ABSENT)
        return text if isinstance(text, Unknown) else text.strip("\0").strip()

    def text(self, path: str) -> str:
        """Return the text of a file, "" if it is unknown: for files with many facts in them."""
        text = self.read(path)
        return "" if isinstance(text, Unknown) else text

    def tool(self, name: str) -> str | Unknown:
        """Return what a tool printed, or why that is not known; a failure is not an output."""
        status, text = self._tool(name)
        if isinstance(status, Unknown):
            return status
        if status == 137:
            return Unknown.TIMED_OUT
        if status != 0:
            return Unknown.DENIED if "ermission denied" in text else Unknown.UNSUPPORTED
        return text

    def _tool(self, name: str) -> tuple[int | Unknown, str]:
        found = self.tools.get(name, Unknown.ABSENT)
        return (found, "") if isinstance(found, Unknown) else found

    def matches(self, pattern: str) -> list[tuple[str, ...]]:
        """Return what stands for each `*` of `pattern` in the paths of the archive, sorted.

        With `/gpu/*/*` the path /gpu/A/address gives ("A", "address"): a `*` stands for a part of
        one name. Paths whose text is unknown count too, except for those that are ABSENT.
        """
        start = pattern.partition("*")[0]
        wanted = re.compile(re.escape(pattern).replace(r"\*", "([^/*]+)"))
        found = {
            match.groups()
            for path, text in self.files.items()
            if path.startswith(start)
            and text is not Unknown.ABSENT
            and (match := wanted.fullmatch(path))
        }
        return sorted(found, key=lambda names: [natural(name) for name in names])

    def holds(self, *starts: str) -> bool:
        """Return whether some path that is not ABSENT begins as one of `starts`."""
        present = (path for path, text in self.files.items() if text is not Unknown.ABSENT)
        return any(path.startswith(starts) for path in present)

    def names(self, pattern: str) -> list[str]:
        """Return what stands for the one `*`: ["eth0", "lo"] for `/sys/class/net/*/mtu`."""
        return [names[0] for names in self.matches(pattern)]


# --- what is asked for -----------------------------------------------------------------------


@cache
def patterns() -> tuple[str, ...]:
    """Return the shell patterns of the paths that are read, in order."""
    found = []
    for line in (Path(__file__).parent / "paths.txt").read_text().splitlines():
        directory, *names = line.split("#")[0].split() or [""]
        found += [directory + name for name in names] if names else [directory] * bool(directory)
    return tuple(found)


@cache
def script() -> str:
    """Return the text of the shell script whose output `from_stream` reads: `sh -s NONCE`."""
    text = (Path(__file__).parent / "facts.sh").read_text()
    paths = " \\\n".join(f"        {pattern}" for pattern in patterns())
    for mark, value in (
        ("@PATHS@", paths),
        ("@QUERY@", QUERY),
        ("@KEPT@", " ".join(kept())),
        ("@SECRET@", "|".join(SECRET)),
        ("@CLASSES@", DEVICE_CLASSES),
        ("@DEVICE@", DEVICE_FILES),
    ):
        text = text.replace(mark, value)
    return text
