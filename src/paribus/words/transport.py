"""Sentences about the transport between ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.words import lists
from paribus.words.lists import listed

WAYS: Mapping[str, str] = {
    "memory": "shared memory",
    "loopback": "TCP over loopback",
    "network": "network",
    "rdma": "RDMA",
    "tcp": "TCP",
}
SOURCES: Mapping[str, str] = {
    "ranks": "seen by the ranks",
    "adapters": "counted by the adapters",
    "study": "set by the study",
}


def way(ways: Sequence[str], source: str, hosts: int) -> str:
    """Return the transport of a Carrier in words, and how it is known.

    >>> way(["memory"], "ranks", 0), way(["hosts"], "placement", 2)
    ('shared memory (seen by the ranks)', 'between 2 hosts, network')
    >>> way(["one host"], "placement", 1)
    'within one host, shared memory possible'
    """
    if source == "placement":
        return (
            f"between {hosts} hosts, network"
            if hosts > 1
            else "within one host, shared memory possible"
        )
    said = listed([WAYS.get(one, one) for one in ways], last=" or ")
    return f"{said} ({SOURCES[source]})" if source in SOURCES else "not known"


def differ(labels: Sequence[str], figures: Mapping[str, Any]) -> str:
    """Return the sentence on two arms whose ranks use different transports."""
    arms = "; ".join(
        f"{lists.arm(arm)} {way(**found)}" for arm, found in figures["transports"].items()
    )
    return (
        f"{listed(labels, 5)}: the transport between ranks differs ({arms}). The ratio compares"
        " these transports, not the factor alone."
    )


FIX = (
    "Put all ranks of a host in one container (leave `ranks_per_host` out), or give both arms the"
    ' same `transport`. If the transport is the question, set factor = "transport".'
)
