"""Memory: how much, in how many NUMA nodes, in which pages, with which policies."""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import (
    about,
    all_known,
    chosen,
    count_of,
    fields,
    number,
    one_or_list,
    read_all,
    scalar,
)

_MM = "/sys/kernel/mm/"
_NODE = "/sys/devices/system/node/"
_EDAC = "/sys/devices/system/edac/mc/"
_FILES = {
    "memory.khugepaged_defrag": _MM + "transparent_hugepage/khugepaged/defrag",
    "memory.zero_page": _MM + "transparent_hugepage/use_zero_page",
    "memory.ksm": _MM + "ksm/run",
    "memory.numa_balancing": "/proc/sys/kernel/numa_balancing",
    **{
        f"memory.vm.{name}": f"/proc/sys/vm/{name}"
        for name in (
            *("swappiness", "zone_reclaim_mode", "overcommit_memory", "overcommit_ratio"),
            *("max_map_count", "compaction_proactiveness", "dirty_ratio"),
            *("dirty_background_ratio", "min_free_kbytes"),
        )
    },
}
_CHOICES = {
    "memory.transparent_hugepage": _MM + "transparent_hugepage/enabled",
    "memory.transparent_hugepage_defrag": _MM + "transparent_hugepage/defrag",
    "memory.transparent_hugepage_shmem": _MM + "transparent_hugepage/shmem_enabled",
}


def memory_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of the memory; sizes in KiB."""
    facts = read_all(archive, _FILES)
    facts |= {key: chosen(archive.read(path)) for key, path in _CHOICES.items()}
    info = archive.read("/proc/meminfo")
    facts["memory.total_kib"] = about(_kib(info, "MemTotal"), 3)
    facts["memory.swap_kib"] = _kib(info, "SwapTotal")
    facts["memory.hugepage_kib"] = _kib(info, "Hugepagesize")
    for size in archive.names(_MM + "hugepages/hugepages-*/nr_hugepages"):
        pages = archive.read(f"{_MM}hugepages/hugepages-{size}/nr_hugepages")
        facts[f"memory.hugepages.{size}"] = number(pages)
    return facts | _numa(archive) | _modules(archive)


def _kib(info: str | Unknown, name: str) -> int | float | Unknown:
    if isinstance(info, Unknown):
        return info
    for key, value in fields(info):
        if key.split()[-1:] == [name]:
            return number(value.removesuffix("kB"))
    return Unknown.ABSENT


def _numa(archive: Archive) -> dict[str, Any]:
    nodes = archive.names(_NODE + "node*/cpulist")
    if not nodes:
        return {"numa.nodes": Unknown.ABSENT}
    return {
        "numa.nodes": len(nodes),
        "numa.cpus": all_known(count_of(archive.read(f"{_NODE}node{n}/cpulist")) for n in nodes),
        "numa.memory_balance": _balance(
            [_kib(archive.read(f"{_NODE}node{n}/meminfo"), "MemTotal") for n in nodes]
        ),
        "numa.distance": all_known(scalar(archive.read(f"{_NODE}node{n}/distance")) for n in nodes),
    }


def _balance(sizes: list[int | float | Unknown]) -> Any:
    """Return each node's memory divided by the mean, to 0.1: all 1.0 where it is even.

    No sizes: a hypervisor gives and takes pages, and firmware keeps some for itself.
    """
    known = [size for size in sizes if not isinstance(size, Unknown)]
    if len(known) < len(sizes) or sum(known) <= 0:
        return next((size for size in sizes if isinstance(size, Unknown)), Unknown.UNREADABLE)
    return [round(len(known) * size / sum(known), 1) for size in known]


def _modules(archive: Archive) -> dict[str, Any]:
    """Return what EDAC, readable by all, says of the memory modules; speeds need root (tools)."""
    controllers = archive.names(_EDAC + "*/mc_name")
    dimms: list[str] = []
    kinds = []
    for controller in controllers:
        for dimm in archive.names(f"{_EDAC}{controller}/*/dimm_mem_type"):
            base = f"{_EDAC}{controller}/{dimm}/"
            dimms.append(base)
            kinds.append(scalar(archive.read(base + "dimm_mem_type")))
    if not controllers:
        return dict.fromkeys(("memory.modules", "memory.kind", "memory.ecc"), Unknown.ABSENT)
    return {
        "memory.controller": one_or_list(
            scalar(archive.read(f"{_EDAC}{c}/mc_name")) for c in controllers
        ),
        "memory.modules": len(dimms),
        "memory.kind": one_or_list(kinds),
        "memory.ecc": one_or_list(scalar(archive.read(base + "dimm_edac_mode")) for base in dimms),
    }
