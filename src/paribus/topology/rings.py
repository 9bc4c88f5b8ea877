"""Rings of GPUs for an all-reduce: the order that NCCL would take, and the best one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from paribus.topology.flows import Network, slowest

_MOST_STEPS = 20_000
"""Of a search for a ring over direct links: most are found within as many as there are GPUs."""


def ring_rate(network: Network, order: Sequence[str]) -> float:
    """Return GB/s at which a ring turns: of its slowest part while all parts are in use."""
    following = [*order[1:], order[0]]
    routes = [network.peer(a, b) for a, b in zip(order, following, strict=True)]
    return slowest(routes, network.capacity)


def nccl_order(network: Network) -> list[str]:
    """Return the order of a ring as NCCL builds it: always on to the GPU with most bandwidth.

    Then to one with fewest links on the way, then to the next number (NCCL, graph/search.cc,
    ncclTopoSearchNextGpuSort). Its first choice of one ring: NCCL goes back where this is a poor
    one, and makes several rings of NVLinks.
    """
    ids = [gpu.id for gpu in network.tree.gpus]
    order = ids[:1]
    while len(order) < len(ids):
        last = order[-1]
        left = [other for other in ids if other not in order]
        routes = {other: network.peer(last, other) for other in left}
        scores = {
            other: (
                -slowest([routes[other]], network.capacity),
                len(routes[other]),
                (ids.index(other) - ids.index(last)) % len(ids),
            )
            for other in left
        }
        order.append(min(left, key=scores.__getitem__))
    return order


def best_order(network: Network) -> list[str]:
    """Return the order of the fastest ring that is known.

    Along the tree every link is passed once in each direction, and less is impossible where GPUs
    are on both sides of it. Where GPUs have direct links, a ring over the widest of them is tried.
    """
    orders = [[gpu.id for gpu in network.tree.walk() if gpu.kind == "gpu"], nccl_order(network)]
    if any(peer.direct for peer in network.tree.peers):
        orders += [ring for ring in [_widest(network)] if ring]
    return max(orders, key=lambda order: ring_rate(network, order))


def _widest(network: Network) -> list[str]:
    """Return a ring whose narrowest pair is as wide as possible; [] where none is found soon."""
    ids = [gpu.id for gpu in network.tree.gpus]
    rates = {
        (a, b): slowest([network.peer(a, b)], network.capacity) for a, b in permutations(ids, 2)
    }
    for floor in sorted(set(rates.values()), reverse=True):
        if ring := _ring_above(ids, {pair for pair, rate in rates.items() if rate >= floor}):
            return ring
    return []


def _ring_above(ids: list[str], pairs: set[tuple[str, str]]) -> list[str]:
    steps = 0
    order = ids[:1]

    def extended() -> bool:
        nonlocal steps
        steps += 1
        if len(order) == len(ids):
            return (order[-1], order[0]) in pairs
        for other in ids:
            if steps < _MOST_STEPS and other not in order and (order[-1], other) in pairs:
                order.append(other)
                if extended():
                    return True
                order.pop()
        return False

    return order if extended() else []
