"""The environment report of a cluster as data: schema paribus.cluster/1 (docs/clusters.md)."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from paribus.cluster.answers import Answer
from paribus.cluster.mpi import named
from paribus.cluster.preflight import Preflight

SCHEMA = "paribus.cluster/1"


def to_json(found: Preflight) -> dict[str, Any]:
    """Return everything that the preflight found."""
    links = found.links
    return {
        "schema": SCHEMA,
        "fine": found.fine,
        "seconds": round(found.seconds, 3),
        "network": found.network,
        "findings": [asdict(one) for one in found.findings],
        "nodes": [_node(one, found) for one in found.answers],
        "links": {
            "pairs": links.pairs,
            "tried": links.tried,
            "closed": [asdict(one) for one in links.closed],
            "ssh": [
                {"source": source, "target": target, "works": works}
                for (source, target), works in links.ssh.items()
            ],
            "homes": {name: list(seen) for name, seen in links.homes.items()},
        },
    }


def _node(one: Answer, found: Preflight) -> dict[str, Any]:
    interface = found.chosen.get(one.name)
    return {
        "name": one.name,
        "answered": one.answered,
        "failure": one.failure,
        "address": str(interface.address.ip) if interface else "",
        "interface": interface.name if interface else "",
        "cores": cores(one),
        "memory_bytes": memory(one),
        "mpi": named(one) if one.answered else "",
        "clock_offset_s": None if math.isnan(one.offset_s) else round(one.offset_s, 6),
        "clock_error_s": None if math.isnan(one.offset_error_s) else round(one.offset_error_s, 6),
        "connect_s": round(one.connect_s, 6),
        "trip_s": round(one.trip_s, 6),
        "facts": {key: list(values) for key, values in one.facts.items()},
    }


def cores(one: Answer) -> int:
    """Return how many cores a shell of a node may use: 0 where it did not say.

    Hardware threads by threads of a core, as the first core has them.
    """
    cpus = one.one("cpus")
    if not cpus.isdecimal():
        return 0
    siblings = 0
    for part in filter(None, one.one("siblings").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            siblings += int(last or first) - int(first) + 1
    return max(1, int(cpus) // max(1, siblings))


def memory(one: Answer) -> int:
    """Return a node's memory in bytes, 0 where it did not say."""
    said = one.one("memory")
    return int(said) * 1024 if said.isdecimal() else 0
