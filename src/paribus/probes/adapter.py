"""The RDMA port that an arm uses, among all ports of a node: its own facts, under one name."""

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
    """Return under adapter. what `facts` of a node say of one port; nothing where it has no such.

    With the interface that goes with a port of RoCE. `adapter.gid_type` is that of `gid_index`, or
    without it the types that the port has.
    """
    for base in _bases(facts):
        if (facts[f"{base}.name"], facts[f"{base}.port"]) == (device, port):
            break
    else:
        return {}
    own = {key.removeprefix(f"{base}."): value for key, value in facts.items() if _of(key, base)}
    types = own.get("gid_types")
    known = types if isinstance(types, dict) and "unknown" not in types else {}
    several = sorted(set(known.values())) or fact(Unknown.ABSENT)
    absent = fact(Unknown.ABSENT)
    of_index = several if gid_index is None else known.get(str(gid_index), absent)
    found = {
        f"adapter.{key}": value
        for key, value in own.items()
        if key not in _OF_NODE and not key.startswith("counter.")
    }
    return {**found, "adapter.gid_type": of_index, **_interface(facts, own.get("net.name"))}


def _bases(facts: Facts) -> Iterator[str]:
    count = facts.get("rdma.count")
    for number in range(count if isinstance(count, int) else 0):
        if f"{_PREFIX}{number}.name" in facts:
            yield f"{_PREFIX}{number}"


def _of(key: str, base: str) -> bool:
    return key.startswith(f"{base}.")


def _interface(facts: Facts, name: Any) -> dict[str, Any]:
    """Return what is known of the interface `name`, of which a port takes its packets' size."""
    for key, value in facts.items():
        if key.startswith("net.") and key.endswith(".name") and value == name and name:
            base = key.removesuffix("name")
            return {
                f"adapter.net.{of}": facts[base + of] for of in _OF_INTERFACE if base + of in facts
            }
    return {}
