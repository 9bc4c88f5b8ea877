"""The energy that each NVIDIA GPU here has taken since its driver was loaded, in mJ: from NVML.

Needs Python alone: nodes that have one execute this file as it is. nvidia-smi has no field for this
counter. Source: nvml.h, nvmlDeviceGetTotalEnergyConsumption (Volta and later).
"""

from __future__ import annotations

import ctypes


def gpu_energy() -> dict[str, int | None]:
    """Return the counter of each GPU by its UUID, None where it has none; {} without a driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return {}
    if nvml.nvmlInit_v2():
        return {}
    found: dict[str, int | None] = {}
    number = ctypes.c_uint()
    if nvml.nvmlDeviceGetCount_v2(ctypes.byref(number)):
        number.value = 0
    for index in range(number.value):
        gpu, uuid, used = ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.c_ulonglong()
        failed = (
            nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(gpu))
            or nvml.nvmlDeviceGetUUID(gpu, uuid, len(uuid))
            or nvml.nvmlDeviceGetTotalEnergyConsumption(gpu, ctypes.byref(used))
        )
        name = uuid.value.decode(errors="replace") or str(index)
        found[name] = None if failed else used.value
    nvml.nvmlShutdown()
    return found


if __name__ == "__main__":
    for name, used in gpu_energy().items():
        print(f"/gpu/{name}:{'' if used is None else used}")
