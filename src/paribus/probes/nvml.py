"""GPUs of this machine by NVML, where there is no nvidia-smi (`pip install '.[gpu]'`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from paribus.probes.archive import Archive, Unknown


def with_nvml(archive: Archive) -> Archive:
    """Return `archive` with what NVML says in place of nvidia-smi's output, if that is absent.

    Returns it unchanged where the library, the driver or a GPU is missing.
    """
    if archive.tools.get("nvidia-smi", Unknown.ABSENT) is not Unknown.ABSENT:
        return archive
    rows = gpu_rows()
    if not rows:
        return archive
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return replace(archive, tools={**archive.tools, "nvidia-smi": (0, buffer.getvalue())})


def gpu_rows() -> list[dict[str, str]]:
    """Return a row for each GPU with the columns and units of `nvidia-smi --query-gpu`: "80 W".

    [] where there is no library or driver.
    """
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        count = pynvml.nvmlDeviceGetCount()
        return [_row(pynvml, pynvml.nvmlDeviceGetHandleByIndex(n)) for n in range(count)]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _row(nvml: Any, gpu: Any) -> dict[str, str]:
    def asked(read: Callable[[], Any], unit: str = "") -> str:
        try:
            value = read()
        except nvml.NVMLError:
            return "[N/A]"
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        return f"{text} {unit}" if unit else text

    def mode(read: Callable[[], Any], words: tuple[str, ...] = ("Disabled", "Enabled")) -> str:
        value = asked(read)
        return words[int(value)] if value.isdecimal() and int(value) < len(words) else value

    no_yes = ("No", "Yes")
    computing = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
    return {
        "name": asked(lambda: nvml.nvmlDeviceGetName(gpu)),
        "driver_version": asked(nvml.nvmlSystemGetDriverVersion),
        "vbios_version": asked(lambda: nvml.nvmlDeviceGetVbiosVersion(gpu)),
        "pstate": "P" + asked(lambda: nvml.nvmlDeviceGetPerformanceState(gpu)),
        "clocks.max.sm": asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(gpu, 1), "MHz"),
        "clocks.max.memory": asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(gpu, 2), "MHz"),
        "clocks.applications.graphics": asked(
            lambda: nvml.nvmlDeviceGetApplicationsClock(gpu, 0), "MHz"
        ),
        "clocks.applications.memory": asked(
            lambda: nvml.nvmlDeviceGetApplicationsClock(gpu, 2), "MHz"
        ),
        "power.limit": asked(
            lambda: f"{nvml.nvmlDeviceGetPowerManagementLimit(gpu) / 1000:.2f}", "W"
        ),
        "ecc.mode.current": mode(lambda: nvml.nvmlDeviceGetEccMode(gpu)[0]),
        "persistence_mode": mode(lambda: nvml.nvmlDeviceGetPersistenceMode(gpu)),
        "mig.mode.current": mode(lambda: nvml.nvmlDeviceGetMigMode(gpu)[0]),
        "compute_mode": mode(lambda: nvml.nvmlDeviceGetComputeMode(gpu), computing),
        "pcie.link.gen.current": asked(lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
        "pcie.link.gen.max": asked(lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu)),
        "pcie.link.width.current": asked(lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
        "pcie.link.width.max": asked(lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)),
        "memory.total": asked(lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).total >> 20, "MiB"),
        "memory.used": asked(lambda: nvml.nvmlDeviceGetMemoryInfo(gpu).used >> 20, "MiB"),
        "clocks.current.sm": asked(lambda: nvml.nvmlDeviceGetClockInfo(gpu, 1), "MHz"),
        "clocks.current.memory": asked(lambda: nvml.nvmlDeviceGetClockInfo(gpu, 2), "MHz"),
        "remapped_rows.correctable": asked(lambda: nvml.nvmlDeviceGetRemappedRows(gpu)[0]),
        "remapped_rows.uncorrectable": asked(lambda: nvml.nvmlDeviceGetRemappedRows(gpu)[1]),
        "remapped_rows.pending": mode(lambda: nvml.nvmlDeviceGetRemappedRows(gpu)[2], no_yes),
        "remapped_rows.failure": mode(lambda: nvml.nvmlDeviceGetRemappedRows(gpu)[3], no_yes),
        "processes": asked(lambda: len(nvml.nvmlDeviceGetComputeRunningProcesses(gpu))),
        "clocks_throttle_reasons.active": asked(
            lambda: f"0x{nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu):016x}"
        ),
        "ecc.errors.uncorrected.volatile.total": asked(
            lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 0)
        ),
        "pci.bus_id": asked(lambda: nvml.nvmlDeviceGetPciInfo(gpu).busId),
        "temperature.gpu": asked(lambda: nvml.nvmlDeviceGetTemperature(gpu, 0)),
        "utilization.gpu": asked(lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu, "%"),
    }
