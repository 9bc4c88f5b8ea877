"""UUIDs of GPUs and NVLinks, by NVML, added to the tree of this machine."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from paribus.topology.tree import NVSWITCH, Peer, Tree, finished

_MOST_LINKS = 18
_SWITCH = 2
"""nvmlIntNvLinkDeviceType_t: 0 is a GPU, 1 a bridge to a processor, 2 an NVSwitch."""


def with_nvml(tree: Tree) -> Tree:
    """Return `tree` with UUIDs and NVLinks, unchanged where the library or a GPU is missing."""
    if not tree.gpus:
        return tree
    try:
        import pynvml
    except ImportError:
        return tree
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            return joined(tree, pynvml)
        finally:
            pynvml.nvmlShutdown()
    return tree


def joined(tree: Tree, nvml: Any) -> Tree:
    """Return `tree` with the UUIDs and NVLinks that the library `nvml` lists."""
    keys: dict[str, str] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(nvml.nvmlDeviceGetCount()):
        gpu = nvml.nvmlDeviceGetHandleByIndex(number)
        address = _address(nvml.nvmlDeviceGetPciInfo(gpu).busId)
        keys[address] = _text(nvml.nvmlDeviceGetUUID(gpu))
        for other in _others(gpu, nvml):
            counts[address, other] += 1
    ids = {gpu.id for gpu in tree.gpus}
    peers = tuple(
        Peer(one, other, "nvlink", count)
        for (one, other), count in counts.items()
        # A link between GPUs is listed at both ends.
        if one in ids and (other == NVSWITCH or (other in ids and one < other))
    )

    keyed = tree.mapped(lambda node: replace(node, key=keys.get(node.address, node.key)))
    lacks = tuple(code for code in tree.lacks if code != "peers")
    return finished(replace(keyed, peers=peers, lacks=lacks))


def _others(gpu: Any, nvml: Any) -> list[str]:
    """Return the other end of each active NVLink of a GPU."""
    found = []
    for link in range(_MOST_LINKS):
        try:
            if not nvml.nvmlDeviceGetNvLinkState(gpu, link):
                continue
            switch = nvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, link) == _SWITCH
            remote = nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId
        except nvml.NVMLError:  # this GPU has no link of this number
            continue
        found.append(NVSWITCH if switch else _address(remote))
    return found


def _address(bus_id: Any) -> str:
    """Return an address as in /sys, with four digits for the domain; NVML has eight."""
    return _text(bus_id).lower()[-12:]


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
