"""The RDMA port that an arm uses, among all ports of a node: its own facts, under one name.

Of a node with two ports, adapter_facts(facts, "mlx5_1", 1, None) copies what stands under rdma.1
and returns it under adapter.: two arms with different ports have facts of the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paribus.core import Facts
from paribus.probes.archive import Unknown, fact

_PREFIX = "rdma."
_OF_NODE = ("name", "port", "net.name", "gid_types")
_OF_INTERFACE = ("mtu", "driver", "firmware", "speed", "pfc", "ets", "priorities", "trust", "ecn")


def ports(facts: Facts) -> list[str]:
    """Return the RDMA ports of a node as DEVICE:PORT, sorted."""
    return sorted(f"{facts[f'{base}.name']}:{facts[f'{base}.port']}" for base in _bases(facts))


def adapter_facts(facts: Facts, device: str, port: int, gid_index: int | None) -> dict[str, Any]:
    """Return the facts of port `port` of `device` under adapter.; {} where the node lacks it.

    A port of RoCE also has the facts of its network interface, under adapter.net.
    `adapter.gid_type` is the type of `gid_index`, or the list of all types if that is None.
    """
    for base in _bases(facts):
        if (facts[f"{base}.name"], facts[f"{base}.port"]) == (device, port):
            break
    else:
        return {}
    start = f"{base}."
    ours = {key.removeprefix(start): facts[key] for key in facts if key.startswith(start)}
    types = ours.get("gid_types")
    by_index = types if isinstance(types, dict) and "unknown" not in types else {}
    absent = fact(Unknown.ABSENT)
    if gid_index is None:
        gid_type = sorted(set(by_index.values())) or absent
    else:
        gid_type = by_index.get(str(gid_index), absent)
    found = {
        f"adapter.{key}": value
        for key, value in ours.items()
        if key not in _OF_NODE and not key.startswith("counter.")
    }
    return {**found, "adapter.gid_type": gid_type, **_interface(facts, ours.get("net.name"))}


def _bases(facts: Facts) -> Iterator[str]:
    """Yield "rdma.0", "rdma.1", ...: how the keys of each port of the node begin."""
    count = facts.get("rdma.count")
    for number in range(count if isinstance(count, int) else 0):
        if f"{_PREFIX}{number}.name" in facts:
            yield f"{_PREFIX}{number}"


def _interface(facts: Facts, name: Any) -> dict[str, Any]:
    """Return the facts of the network interface `name`, from which a port has its packets' size."""
    for key, value in facts.items():
        if key.startswith("net.") and key.endswith(".name") and value == name and name:
            base = key.removesuffix("name")
            known = [prop for prop in _OF_INTERFACE if base + prop in facts]
            return {f"adapter.net.{prop}": facts[base + prop] for prop in known}
    return {}
