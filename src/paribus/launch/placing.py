"""The cores of each rank on its node, and how full nodes are. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from paribus.core import Slot


def bound(names: Sequence[str], cores: Mapping[str, Sequence[int]], each: int) -> tuple[Slot, ...]:
    """Return the slots of ranks on the nodes `names`, each bound to `each` of its node's `cores`.

    Cores are counted on every node for itself. What is left over at the end is no rank's: a rank
    has all of its cores, or none.
    """
    so_far: Counter[str] = Counter()
    slots = []
    for name in names:
        at = so_far[name] * each
        own = tuple(cores.get(name, ())[at : at + each])
        slots.append(Slot(name, own if len(own) == each else ()))
        so_far[name] += 1
    return tuple(slots)


def cores_of_ranks(slots: Sequence[Slot]) -> dict[str, tuple[int, ...]]:
    """Return the cores of all ranks by node, none where some rank is not bound."""
    if not all(slot.cores for slot in slots):
        return {}
    found: dict[str, set[int]] = {}
    for slot in slots:
        found.setdefault(slot.node, set()).update(slot.cores)
    return {node: tuple(sorted(cores)) for node, cores in found.items()}


def crowd(names: Sequence[str]) -> int:
    """Return how many ranks the fullest node has."""
    return max(Counter(names).values(), default=0)
