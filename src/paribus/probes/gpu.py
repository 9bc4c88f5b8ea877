"""GPUs: from nvidia-smi or the driver's files on a node, from NVML on this machine.

gpu_facts(archive) returns {"gpu.count": 8, "gpu.0.model": "NVIDIA H100 ...", ...}. What changes by
itself (temperature, clocks of the moment, throttling) is under gpu.N.now.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

from paribus.probes.archive import Archive, Unknown, fact
from paribus.probes.devices import Device, numbered
from paribus.probes.pci import addresses, link
from paribus.probes.values import fields, scalar

# Columns of nvidia-smi (as its header prints them, without units) to properties.
_HARDWARE = {"name": "model", "memory.total": "memory", "vbios_version": "vbios"}
_SETTINGS = {
    "driver_version": "driver",
    "clocks.max.sm": "clock_most_sm",
    "clocks.max.memory": "clock_most_memory",
    "clocks.applications.graphics": "clock_set_sm",
    "clocks.applications.memory": "clock_set_memory",
    "power.limit": "power_limit",
    "ecc.mode.current": "ecc",
    "persistence_mode": "persistence",
    "mig.mode.current": "mig",
    "compute_mode": "compute_mode",
    "pcie.link.gen.max": "pcie_generation_most",
    "pcie.link.width.max": "pcie_width_most",
    "pcie.link.width.current": "pcie_width",
}
_NOW = {
    "pstate": "now.pstate",
    "pcie.link.gen.current": "now.pcie_generation",
    "clocks.current.sm": "now.clock_sm",
    "clocks.current.memory": "now.clock_memory",
    "memory.used": "now.memory_used",
    "processes": "now.processes",
    "remapped_rows": "now.remapped_rows",
    "clocks_throttle_reasons.active": "now.throttle_reasons",
    "clocks_event_reasons.active": "now.throttle_reasons",
    "ecc.errors.uncorrected.volatile.total": "now.ecc_uncorrected",
    "temperature.gpu": "now.temperature_c",
    "utilization.gpu": "now.utilization",
}


def gpu_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of every GPU under gpu.N, and how they are wired."""
    devices = _from_smi(archive) or _from_driver(archive)
    facts = {"gpu.count": 0, **numbered([*devices, *_from_drm(archive)])}
    version = archive.read("/sys/module/nvidia/version")
    if not isinstance(version, Unknown):
        facts["gpu.kernel_driver"] = version
    links = _wiring(archive.tool("nvidia-topology"))
    return facts | ({"gpu.links": links} if links else {})


def gpu_device(row: Mapping[str, Any], archive: Archive) -> Device:
    """Return the GPU that `row` describes, by the names of nvidia-smi's columns."""
    address = _address(row.get("pci.bus_id"))
    path = archive.links.get(f"/sys/bus/pci/devices/{address}", address)
    hardware, settings = link(archive, path)
    hardware |= _window(archive, path)
    now: dict[str, Any] = {}
    for table, into in ((_HARDWARE, hardware), (_SETTINGS, settings), (_NOW, now)):
        for column, key in table.items():
            if column in row:
                into[key] = row[column]
    return Device("gpu", hardware, settings, {"address": address}, now)


def _from_smi(archive: Archive) -> list[Device]:
    """Return the GPUs that nvidia-smi printed, with their processes and remapped rows."""
    rows = _rows(archive.tool("nvidia-smi"))
    if not rows or "name" not in rows[0]:
        return []
    users = archive.tool("nvidia-processes")
    busy = Counter(_address(row.get("gpu_bus_id")) for row in _rows(users))
    remapped = {
        _address(row.get("gpu_bus_id")): row for row in _rows(archive.tool("nvidia-remapped"))
    }
    for row in rows:
        address = _address(row.get("pci.bus_id"))
        if users is not Unknown.ABSENT:
            row["processes"] = users if isinstance(users, Unknown) else busy[address]
        counts = {**row, **remapped.get(address, {})}
        if _REMAPPED[0] in counts:
            row["remapped_rows"] = {
                name.rpartition(".")[2]: fact(counts.get(name, Unknown.ABSENT))
                for name in _REMAPPED
            }
    return [gpu_device(row, archive) for row in rows]


_REMAPPED = tuple(
    f"remapped_rows.{x}" for x in ("correctable", "uncorrectable", "pending", "failure")
)


def _rows(output: str | Unknown) -> list[dict[str, Any]]:
    """Return the rows of what nvidia-smi printed as CSV, by column; [] where that is unknown.

    Of the header "name, memory.total [MiB]" the columns are "name" and "memory.total".
    """
    if isinstance(output, Unknown):
        return []
    rows = list(csv.reader(io.StringIO(output.replace("\0", "")), skipinitialspace=True))
    head = [name.partition(" [")[0].strip() for name in (rows[0] if rows else [])]
    return [
        {name: _cell(cell) for name, cell in zip(head, row, strict=True)}
        for row in rows[1:]
        if len(row) == len(head)
    ]


def _address(bus_id: Any) -> str:
    """Return a PCI address as sysfs has it: nvidia-smi writes the domain with eight digits."""
    return str(bus_id or "").lower()[-12:]


def _window(archive: Archive, path: str) -> dict[str, Any]:
    """Return {"bar1_mib": the largest window onto the device's memory}, BAR 1 of NVIDIA's.

    From `resource`, which has start, end and flags of each region; 0x200 is memory
    (include/linux/ioport.h), and the first six regions are the BARs.
    """
    chain = addresses(path)
    text = archive.read(f"/sys/bus/pci/devices/{chain[-1]}/resource") if chain else Unknown.ABSENT
    if isinstance(text, Unknown):
        return {} if text is Unknown.ABSENT else {"bar1_mib": text}
    sizes = []
    for line in text.split("\n")[:6]:
        try:
            start, end, flags = (int(word, 16) for word in line.split())
        except ValueError:
            return {"bar1_mib": Unknown.UNREADABLE}
        if flags & 0x200:
            sizes.append((end - start + 1) >> 20)
    return {
        "bar1_mib": max(sizes, default=0) if max(sizes, default=0) < 1 << 40 else Unknown.UNREADABLE
    }


def _cell(text: str) -> Any:
    unsupported = ("[N/A]", "N/A", "[Not Supported]", "[Unknown Error]")
    return Unknown.UNSUPPORTED if text.strip() in unsupported else scalar(text.strip())


def _from_driver(archive: Archive) -> list[Device]:
    """Return the GPUs that the NVIDIA driver lists in /proc: model and firmware, no more."""
    devices = []
    base = "/proc/driver/nvidia/gpus/"
    files = ("information", "numa_status")
    for address in sorted({name for file in files for name in archive.names(f"{base}*/{file}")}):
        text = archive.read(f"{base}{address}/information")
        info = dict(fields(text)) if isinstance(text, str) else {}
        missing = text if isinstance(text, Unknown) else ""
        row = {"name": scalar(info.get("Model", missing)), "pci.bus_id": address}
        row["vbios_version"] = scalar(info.get("Video BIOS", missing))
        devices.append(gpu_device(row, archive))
    return devices


def _from_drm(archive: Archive) -> list[Device]:
    """Return the AMD GPUs, which state their firmware and modes in sysfs."""
    devices = []
    for card in archive.names("/sys/class/drm/*/device/vbios_version"):
        base = f"/sys/class/drm/{card}/device"
        path = archive.links.get(base, "")
        hardware, settings = link(archive, path)
        hardware["vbios"] = scalar(archive.read(base + "/vbios_version"))
        hardware["memory"] = scalar(archive.read(base + "/mem_info_vram_total"))
        hardware |= _window(archive, path)
        settings["compute_mode"] = scalar(archive.read(base + "/current_compute_partition"))
        settings["memory_mode"] = scalar(archive.read(base + "/current_memory_partition"))
        settings["performance"] = scalar(archive.read(base + "/power_dpm_force_performance_level"))
        devices.append(Device("gpu", hardware, settings, {"address": path.rpartition("/")[2]}))
    return devices


def _wiring(matrix: str | Unknown) -> dict[str, int]:
    """Return how many pairs of GPUs each kind of link joins: {"NV18": 28}.

    `matrix` is what `nvidia-smi topo -m` printed.
    """
    if isinstance(matrix, Unknown):
        return {}
    rows = [line.split() for line in matrix.split("\n")]
    gpus = [row for row in rows if row and row[0].startswith("GPU") and "X" in row]
    pairs = Counter(
        row[1 + column]
        for number, row in enumerate(gpus)
        for column in range(number + 1, len(gpus))
        if 1 + column < len(row)
    )
    return dict(sorted(pairs.items()))
