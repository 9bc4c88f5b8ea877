"""The RDMA port that an arm names: its facts on each node, and whether messages took it."""

from __future__ import annotations

from paribus.core import Adapter, Benchmark, Carried, Facts, UserError
from paribus.core.facts import OF_ADAPTER, OF_OTHERS
from paribus.judge.transport import WITHOUT_MESSAGES
from paribus.probes.adapter import adapter_facts, ports

QUIET, QUIET_PER_S = 4096, 1024
"""The most bytes, and bytes a second, of a port that ranks do not use: the fabric's management."""

BESIDES = 1 << 20
"""Bytes on other networks that show that messages took these: launchers need less."""

MEASURES = frozenset({"network", "point to point", "collective", "one-sided"})
"""Layers whose programs do nothing but exchange messages."""


def with_adapter(adapter: Adapter, node: str, facts: Facts, place: str) -> Facts:
    """Return `facts` of a node with those of the arm's port there.

    Raises UserError if the node has no such port, or it is not active.
    """
    found = adapter_facts(facts, adapter.device, adapter.port, adapter.gid_index)
    if not found:
        known = ", ".join(ports(facts)) or "none: its driver is not loaded, or it shows none here"
        fix = f"name one of its RDMA ports ({known})"
        raise UserError(f"{node} has no RDMA port {adapter}", place=place, fix=fix)
    state = found.get("adapter.state")
    if isinstance(state, str) and "ACTIVE" not in state:
        fix = "bring the port up (cable, subnet manager, `rdma link`), or name another"
        raise UserError(f"{adapter} of {node} is not active ({state})", place=place, fix=fix)
    return {**facts, **found}


def counted(adapter: Adapter, carried: Carried) -> Facts:
    """Return the facts OF_ADAPTER and OF_OTHERS of the host where the arm's port counted least.

    None for a launch on one host; unknown if the adapter of a host does not count.
    """
    if len(carried) < 2:
        return {}
    port = str(adapter)
    if any(port not in networks for networks in carried.values()):
        return {OF_ADAPTER: {"unknown": "unsupported"}}
    networks = min(carried.values(), key=lambda one: one[port])
    others = sum(grown for name, grown in networks.items() if name != port)
    return {OF_ADAPTER: networks[port], OF_OTHERS: others}


def astray(adapter: Adapter, carried: Carried, benchmark: Benchmark, seconds: float) -> str:
    """Return a sentence if the messages of a launch did not take the arm's port, "" if they did.

    They did not if the port counted no more than an unused one does. As a program that computes
    may have few messages to send, another network of that host must then have carried many. ""
    where an adapter does not count.
    """
    found = counted(adapter, carried)
    by_port, others = found.get(OF_ADAPTER), found.get(OF_OTHERS)
    if not (isinstance(by_port, int) and isinstance(others, int)):
        return ""
    if benchmark.layer in WITHOUT_MESSAGES or by_port > QUIET + QUIET_PER_S * seconds:
        return ""
    if benchmark.layer not in MEASURES and others < BESIDES:
        return ""
    port = str(adapter)
    host, networks = min(carried.items(), key=lambda one: one[1][port])
    most = sorted(((grown, name) for name, grown in networks.items() if name != port), reverse=True)
    beside = f", {most[0][1]} {most[0][0]:,} B" if most else ""
    return (
        f"the messages did not take {port}: on {host} it counted {by_port:,} B during the"
        f" launch{beside}"
    )
