"""Sentences about the nodes that a scheduler lent the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import count
from paribus.words import lists
from paribus.words.lists import listed

MOST_NAMED = 5
"""Sets of nodes, and benchmarks, that a sentence names."""


def said(_: Sequence[str], figures: Mapping[str, Any]) -> str:
    """Return how many allocations each arm had, on which nodes, and what verdicts are about."""
    arms = [
        f"{lists.arm(name)} {count(several, 'allocation')} ({listed(one['nodes'], MOST_NAMED)})"
        for name, one in figures["arms"].items()
        if (several := one["allocations"])
    ]
    if figures["same"]:
        return f"Within each allocation all arms had the same nodes: {'; '.join(arms)}."
    text = f"The arms had different nodes: {'; '.join(arms)}. The verdicts are about these nodes."
    if not figures["others"]:
        return (
            f"{text} What other nodes of the same kind would give is open: that takes"
            f" {figures['fewest']} allocations or more, each on other nodes."
        )
    return f"{text} For other nodes of the same kind: {'; '.join(map(_other, figures['others']))}."


def _other(one: Mapping[str, Any]) -> str:
    return (
        f"{one['benchmark']}, {lists.arm(one['arm'])} {one['word']}, {one['ratio']:.3f}"
        f" [{one['low']:.3f}, {one['high']:.3f}] ({one['allocations']} pairs of node sets)"
    )


def fix(figures: Mapping[str, Any]) -> str:
    """Return what can be done where the arms had different nodes."""
    if figures["same"] or figures["others"]:
        return ""
    return (
        "If both arms can use the same nodes, give them the same `scheduler`, and same_nodes = true"
        f" in [plan]. For a verdict on other nodes: allocations = {figures['fewest']} in [plan]."
    )
