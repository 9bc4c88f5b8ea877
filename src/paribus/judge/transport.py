"""What carries the messages between ranks in each arm, and whether the arms differ in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paribus.audit.audit import explained_by
from paribus.core import Arm, Carrier, Facts, Notice, NoticeName, arm_at, matches, nodes_of_ranks
from paribus.core.facts import OF_ADAPTER, OF_OTHERS
from paribus.plan import Plan

TAKEN = "mpi.transport_taken"
"""The fact of a launch with the transport that its ranks saw."""

ASKED = "mpi.transport"
"""The fact of a launch with the transport that the study asks for."""

KINDS: Mapping[str, frozenset[str]] = {
    "memory": frozenset({"memory"}),
    "one host": frozenset({"memory"}),
    "loopback": frozenset({"tcp"}),
    "network": frozenset({"tcp"}),
    "tcp": frozenset({"tcp"}),
    "hosts": frozenset({"tcp", "rdma"}),
    "rdma": frozenset({"rdma"}),
}
"""The kinds of transport that each way of a Carrier may be. On one host MPI uses shared memory."""

WITHOUT_MESSAGES = frozenset({"memory", "start-up", "storage", "gpu"})
"""Layers of benchmarks whose figures do not depend on messages between ranks."""


def carriers(plan: Plan, facts: Mapping[str, Mapping[str, Sequence[Facts]]]) -> tuple[Carrier, ...]:
    """Return the transport of each benchmark of several ranks, in each arm.

    `facts` are those of good launches, by benchmark and arm. The first of these that is known
    counts: what the ranks saw; the arm's adapter, if it carried more than all other networks; ranks
    on several hosts; the transport that the study asks for.
    """
    return tuple(
        _carrier(
            selection.label, arm_at(arm, selection), selection.ranks, facts.get(selection.label, {})
        )
        for selection in plan.study.benchmarks
        for arm in plan.study.arms
        if selection.ranks > 1
    )


def _carrier(label: str, arm: Arm, ranks: int, facts: Mapping[str, Sequence[Facts]]) -> Carrier:
    launches = facts.get(arm.name, ())
    seen = {way for one in launches if isinstance(way := one.get(TAKEN), str)}
    if seen:
        return Carrier(label, arm.name, tuple(sorted(seen)), "ranks")
    if launches and all(map(_by_adapter, launches)):
        return Carrier(label, arm.name, ("rdma",), "adapters")
    if arm.hosts and (nodes := len(set(nodes_of_ranks(arm.hosts, ranks, arm.ranks_per_host)))) > 1:
        return Carrier(label, arm.name, ("hosts",), "placement", nodes)
    in_hosts = arm.container is not None and arm.container.each == "host" and arm.ranks_per_host
    hosts = -(-ranks // arm.ranks_per_host) if in_hosts else 1
    if hosts > 1:
        return Carrier(label, arm.name, ("hosts",), "placement", hosts)
    if arm.transport != "auto":
        asked = "memory" if arm.transport == "shm" else "tcp"
        return Carrier(label, arm.name, (asked,), "study", hosts)
    return Carrier(label, arm.name, ("one host",), "placement", hosts)


def _by_adapter(launch: Facts) -> bool:
    by_port, others = launch.get(OF_ADAPTER), launch.get(OF_OTHERS)
    return isinstance(by_port, int) and isinstance(others, int) and by_port > others


def differing(
    plan: Plan, found: Iterable[Carrier], facts: Mapping[str, Mapping[str, Sequence[Facts]]]
) -> list[Notice]:
    """Return a warning for each arm whose ranks cannot use the transport of the reference's.

    None if the factor, or a key that the study explains, is the transport; none for a benchmark
    without a good launch (with `facts`) in one of the arms.
    """
    if matches(ASKED, explained_by(plan.study)):
        return []
    by_label: dict[str, dict[str, Carrier]] = {}
    for one in found:
        by_label.setdefault(one.benchmark, {})[one.arm] = one
    reference, *others = (arm.name for arm in plan.study.arms)
    alike: dict[tuple[Carrier, Carrier], list[str]] = {}  # benchmarks by equal pairs
    for label, by_arm in by_label.items():
        if plan.layers.get(label) in WITHOUT_MESSAGES:
            continue
        for arm in others:
            if not all(facts.get(label, {}).get(name) for name in (reference, arm)):
                continue
            pair = by_arm[reference], by_arm[arm]
            if not _kinds(pair[0]) & _kinds(pair[1]):
                plain = tuple(Carrier("", one.arm, one.ways, one.source, one.hosts) for one in pair)
                alike.setdefault((plain[0], plain[1]), []).append(label)
    return [
        Notice(NoticeName.TRANSPORTS_DIFFER, "warning", tuple(labels), _figures(*pair))
        for pair, labels in alike.items()
    ]


def _kinds(one: Carrier) -> frozenset[str]:
    return frozenset().union(*(KINDS.get(way, frozenset({way})) for way in one.ways))


def _figures(reference: Carrier, arm: Carrier) -> dict[str, object]:
    return {
        "reference": reference.arm,
        "arm": arm.arm,
        "transports": {
            one.arm: {"ways": list(one.ways), "source": one.source, "hosts": one.hosts}
            for one in (reference, arm)
        },
    }
