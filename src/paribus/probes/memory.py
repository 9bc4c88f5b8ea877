"""Memory: how much, in how many NUMA nodes, in which pages, with which policies.

memory_facts(archive) returns {"memory.total_kib": 263000000, "numa.nodes": 2, ...}.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import (
    about,
    all_known,
    chosen,
    common,
    fields,
    number,
    one_or_list,
    ranges,
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
    """Return the number in a line such as "MemTotal: 123 kB" or "Node 0 MemTotal: 123 kB"."""
    if isinstance(info, Unknown):
        return info
    for key, value in fields(info):
        if key.split()[-1:] == [name]:
            return number(value.removesuffix("kB"))
    return Unknown.ABSENT


def _numa(archive: Archive) -> dict[str, Any]:
    """Return number, processors, balance and distances of the NUMA nodes of the processors.

    Nodes that the NVIDIA driver makes of GPUs' memory are counted by `numa.gpu_nodes` alone.
    """
    names = archive.names(_NODE + "node*/cpulist")
    if not names:
        return {"numa.nodes": Unknown.ABSENT}
    gpus = _gpu_nodes(archive)
    sizes = {n: _kib(archive.read(f"{_NODE}node{n}/meminfo"), "MemTotal") for n in names}
    cpus = _cpus_of_nodes(archive, names)
    if isinstance(gpus, Unknown) or isinstance(cpus, Unknown):
        why = gpus if isinstance(gpus, Unknown) else cpus
        return dict.fromkeys(("numa.nodes", *_OF_NODES), why)
    kept = [n for n in names if n not in gpus and (cpus[n] or sizes[n] != 0)]
    kib = all_known(sizes[n] for n in kept)
    return {
        "numa.nodes": kib if isinstance(kib, Unknown) else sum(size > 0 for size in kib),
        "numa.cpus": [cpus[n] for n in kept],
        "numa.memory_balance": _balance([sizes[n] for n in kept]),
        "numa.distance": all_known(_distances(archive, n, names, kept) for n in kept),
        **({"numa.gpu_nodes": len(gpus)} if gpus else {}),
    }


_OF_NODES = ("numa.cpus", "numa.memory_balance", "numa.distance")


def _gpu_nodes(archive: Archive) -> set[str] | Unknown:
    """Return the numbers of the nodes that are a GPU's memory, as the NVIDIA driver states them."""
    base = "/proc/driver/nvidia/gpus/"
    texts = all_known(
        archive.read(f"{base}{gpu}/numa_status") for gpu in archive.names(base + "*/numa_status")
    )
    if isinstance(texts, Unknown):
        return texts
    return {dict(fields(text)).get("Node", "") for text in texts} - {"", "-1"}


def _cpus_of_nodes(archive: Archive, names: Sequence[str]) -> dict[str, int] | Unknown:
    """Return how many processors of each node are online; UNREADABLE where two nodes share one."""
    lists = {n: ranges(archive.read(f"{_NODE}node{n}/cpulist")) for n in names}
    online = ranges(archive.read("/sys/devices/system/cpu/online"))
    known = all_known(lists.values())
    if isinstance(known, Unknown):
        return known
    spans = sorted(span for found in known for span in found)
    if any(later[0] <= earlier[1] for earlier, later in pairwise(spans)):
        return Unknown.UNREADABLE
    within = spans if isinstance(online, Unknown) else online
    return {n: common(found, within) for n, found in zip(names, known, strict=True)}


def _distances(archive: Archive, node: str, names: Sequence[str], kept: Sequence[str]) -> Any:
    """Return the distances from `node` to the nodes in `kept`, as the kernel writes them: "10 21".

    `names` are all nodes, of which the kernel's line has one number each.
    """
    text = archive.read(f"{_NODE}node{node}/distance")
    if isinstance(text, Unknown):
        return text
    row = text.split()
    if len(row) != len(names):
        return Unknown.UNREADABLE
    return scalar(" ".join(cell for n, cell in zip(names, row, strict=True) if n in kept))


def _balance(sizes: list[int | float | Unknown]) -> Any:
    """Return each node's memory divided by the mean, to 0.1: [1.0, 1.0] where it is even.

    Sizes would differ between equal machines: hypervisors give and take pages, and firmware keeps
    some for itself.
    """
    known = [size for size in sizes if not isinstance(size, Unknown)]
    if len(known) < len(sizes) or sum(known) <= 0:
        return next((size for size in sizes if isinstance(size, Unknown)), Unknown.UNREADABLE)
    return [round(len(known) * size / sum(known), 1) for size in known]


def _modules(archive: Archive) -> dict[str, Any]:
    """Return the facts of the memory modules that EDAC states, which all may read.

    Their speeds are in tools.py: only root may read those.
    """
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
