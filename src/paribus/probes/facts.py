"""Facts of a whole node, from what was read of it: every group of facts has a parser of its own.

facts_of(archive)["cpu.cores"] is 64, or {"unknown": "denied"} where it could not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paribus.core import Facts
from paribus.probes.archive import Archive, Unknown, fact
from paribus.probes.cgroup import cgroup_facts
from paribus.probes.cpu import cpu_facts
from paribus.probes.environment import environment_facts, limits_facts
from paribus.probes.kernel import clock_facts, dmi_facts, kernel_facts
from paribus.probes.layers import layers_facts
from paribus.probes.load import load_facts_of
from paribus.probes.memory import memory_facts
from paribus.probes.net import net_facts
from paribus.probes.pci import pci_facts
from paribus.probes.storage import storage_facts
from paribus.probes.stream import from_stream
from paribus.probes.tools import libraries_facts, tools_facts

GROUPS: tuple[Callable[[Archive], dict[str, Any]], ...] = (
    cpu_facts,
    memory_facts,
    kernel_facts,
    dmi_facts,
    net_facts,
    pci_facts,
    cgroup_facts,
    layers_facts,
    limits_facts,
    storage_facts,
    clock_facts,
    load_facts_of,
    tools_facts,
    libraries_facts,
)


def facts_of(archive: Archive) -> Facts:
    """Return the facts in `archive`, sorted by key; what is unknown is {"unknown": why}.

    Never raises, whatever the texts are.
    """
    found: dict[str, Any] = environment_facts(archive)
    for group in GROUPS:
        found |= group(archive)
    found |= {"rdma.count": 0, "gpu.count": 0}
    if archive.holds("/sys/class/infiniband/"):
        from paribus.probes.rdma import rdma_facts

        found |= rdma_facts(archive)
    reported = archive.tools.get("nvidia-smi", Unknown.ABSENT) is not Unknown.ABSENT
    if reported or archive.holds("/proc/driver/nvidia/", "/sys/module/nvidia/", "/sys/class/drm/"):
        from paribus.probes.gpu import gpu_facts

        found |= gpu_facts(archive)
    return {key: fact(found[key]) for key in sorted(found)}


def facts_from_stream(text: str) -> Facts:
    """Return the facts of the one node whose answer to script() is `text`.

    Raises ParseError that names what is wrong with the answer.
    """
    return facts_of(from_stream(text))
