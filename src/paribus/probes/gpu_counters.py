"""What NVIDIA GPUs here count by themselves, read before and after a launch: from NVML.

Needs Python 3.7 alone: nodes that have one execute this file as it is, and print a value a line, as
`grep -H` prints a file. There pathlib and typing would double the time of a start.

Nothing is read while a launch goes on. Units are those of nvml.h: energy since the driver was
loaded (mJ), time in which clocks were lowered (ns, by cause), and, of the driver's own buffers,
what other processes used since a moment (%) and the lowest SM clock (MHz).
"""

from __future__ import annotations

import ctypes
import sys
import time
from ctypes import CDLL, byref, c_char, c_int64, c_uint, c_uint32, c_ulonglong, c_void_p

THROTTLED = {
    "throttled_power_ns": 74,  # NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP
    "throttled_sync_boost_ns": 76,
    "throttled_heat_ns": 269,  # SW_THERM_SLOWDOWN
    "throttled_heat_hardware_ns": 270,  # HW_THERM_SLOWDOWN
    "throttled_power_brake_ns": 271,  # HW_POWER_BRAKE_SLOWDOWN
}
"""Fields of NVML by the facts, named for what lowers the clock; older drivers lack three."""

_SM_CLOCK = 5  # NVML_PROCESSOR_CLK_SAMPLES
_MOST_PROCESSES, _MOST_SAMPLES = 256, 1024


class _Field(ctypes.Structure):
    _fields_ = (
        *(("field", c_uint32), ("scope", c_uint32), ("at", c_int64), ("latency", c_int64)),
        *(("kind", c_uint32), ("failed", c_uint32), ("value", c_ulonglong)),
    )


class _Process(ctypes.Structure):
    _fields_ = (("pid", c_uint), ("memory", c_ulonglong), ("part", c_uint), ("of_part", c_uint))


class _Used(ctypes.Structure):
    _fields_ = (
        *(("pid", c_uint), ("at", c_ulonglong), ("sm", c_uint), ("memory", c_uint)),
        *(("encoder", c_uint), ("decoder", c_uint)),
    )


class _Place(ctypes.Structure):
    _fields_ = (
        *(("old", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint)),
        *(("kind", c_uint), ("of_card", c_uint), ("address", c_char * 32)),
    )


class _Sample(ctypes.Structure):
    _fields_ = (("at", c_ulonglong), ("value", c_ulonglong))


_opened: list[list[tuple[CDLL, str, str, c_void_p]]] = []


def _gpus() -> list[tuple[CDLL, str, str, c_void_p]]:
    """Return NVML and each GPU with UUID and address. It stays open: that takes longest."""
    if not _opened:
        _opened.append(_open())
    return _opened[0]


def _open() -> list[tuple[CDLL, str, str, c_void_p]]:
    try:
        nvml = CDLL("libnvidia-ml.so.1")
    except OSError:
        return []
    number, found = c_uint(), []
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(byref(number)):
        return []
    for index in range(number.value):
        gpu, uuid = c_void_p(), ctypes.create_string_buffer(96)
        if not nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(gpu)):
            nvml.nvmlDeviceGetUUID(gpu, uuid, len(uuid))
            name = uuid.value.decode(errors="replace") or str(index)
            found.append((nvml, name, _address(nvml, gpu), gpu))
    return found


def _address(nvml: CDLL, gpu: c_void_p) -> str:
    """Return where a GPU is, as sysfs has it: NVML writes the domain with eight digits."""
    place = _Place()
    known = hasattr(nvml, "nvmlDeviceGetPciInfo_v3")
    if not known or nvml.nvmlDeviceGetPciInfo_v3(gpu, byref(place)):
        return ""
    return bytes(place.address).decode(errors="replace").lower()[-12:]


def gpu_counters(since_s: float | None = None) -> dict[str, int | str | None]:
    """Return the counters by the paths of docs/facts.md; {} without a driver.

    An energy that a GPU does not count is None; what else it does not show is left out.
    `since_s`, seconds since 1970, is when the launch began that has ended now.
    """
    found: dict[str, int | str | None] = {}
    for nvml, name, address, gpu in _gpus():
        used = c_ulonglong()
        failed = nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, byref(used))
        found[f"/gpu/{name}"] = None if failed else used.value
        if address:
            found[f"/gpu/{name}/address"] = address
        reported = _throttled(nvml, gpu)
        if since_s is not None:
            since = c_ulonglong(int(1e6 * since_s))
            reported.append(("others_percent", _others(nvml, gpu, since)))
            reported.append(("clock_least_mhz", _least(nvml, gpu, since)))
        found.update({f"/gpu/{name}/{key}": value for key, value in reported if value is not None})
    return found


def _throttled(nvml: CDLL, gpu: c_void_p) -> list[tuple[str, int | None]]:
    asked = (_Field * len(THROTTLED))(*(_Field(field) for field in THROTTLED.values()))
    if nvml.nvmlDeviceGetFieldValues(gpu, len(asked), asked):
        return []
    causes = {field: cause for cause, field in THROTTLED.items()}
    return [(causes[one.field], one.value) for one in asked if not one.failed]


def _others(nvml: CDLL, gpu: c_void_p, since: c_ulonglong) -> int | None:
    """Return the percentage of the GPU's time that processes used which are there now.

    The launch has ended: none of them is its own. What ended meanwhile is not seen.
    """
    there, number = (_Process * _MOST_PROCESSES)(), c_uint(_MOST_PROCESSES)
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu, byref(number), there):
        return None
    pids = {one.pid for one in there[: number.value] if not _shares(one.pid)}
    used, number = (_Used * _MOST_PROCESSES)(), c_uint(_MOST_PROCESSES)
    if not pids:
        return 0
    if nvml.nvmlDeviceGetProcessUtilization(gpu, used, byref(number), since):
        return None
    of_each = {one.pid: one.sm for one in used[: number.value] if one.pid in pids}
    return min(100, int(sum(of_each.values())))


def _shares(pid: int) -> bool:
    """Return whether a process is the server of MPS, to which the launch's own use may count."""
    try:
        return _text(f"/proc/{pid}/comm").startswith("nvidia-cuda-mps")
    except OSError:
        return False


def _text(path: str) -> str:
    with open(path, errors="replace") as file:  # noqa: PTH123 - without pathlib
        return file.read()


def _least(nvml: CDLL, gpu: c_void_p, since: c_ulonglong) -> int | None:
    """Return the lowest SM clock in MHz that the driver has noted since."""
    noted, number, kind = (_Sample * _MOST_SAMPLES)(), c_uint(_MOST_SAMPLES), c_uint()
    if nvml.nvmlDeviceGetSamples(gpu, _SM_CLOCK, since, byref(kind), byref(number), noted):
        return None
    clocks = [int(one.value) & 0xFFFFFFFF for one in noted[: number.value]]
    return min(clocks) if clocks else None


if __name__ == "__main__":
    began = None
    if len(sys.argv) > 1 and sys.argv[1]:
        uptime = float(_text("/proc/uptime").split()[0])
        began = time.time() - uptime + float(sys.argv[1])
    for path, value in gpu_counters(began).items():
        print(f"{path}:{'' if value is None else value}")
