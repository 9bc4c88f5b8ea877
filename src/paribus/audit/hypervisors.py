"""Facts of the machines that guests run on: beside those of the guest, under keys of their own."""

from __future__ import annotations

from collections.abc import Mapping

from paribus.core import Facts, matches

BELOW = "hypervisor."
"""Begins the keys of what was read on the hypervisor of a guest."""

READ = ("cpu.", "memory.", "numa.", "machine.", "os.", "load.", "layers.machine")
"""Facts that a machine has whoever asks; others are those of the login, or of the guest's links."""


def is_below(key: str) -> bool:
    """Return whether a fact is one of the machine below a guest."""
    return key.startswith(BELOW)


def named_after(key: str) -> str:
    """Return the fact of any machine that `key` is, of the one below a guest too."""
    return key.removeprefix(BELOW)


def of_hypervisor(facts: Facts) -> dict[str, object]:
    """Return what the facts of a hypervisor add to those of its guests."""
    return {f"{BELOW}{key}": value for key, value in facts.items() if matches(key, READ)}


def with_own(nodes: Mapping[str, Facts], others: Mapping[str, Facts]) -> Mapping[str, Facts]:
    """Return `nodes`, to be compared with `others`: a node that is no guest is its own hypervisor.

    So the machines below the guests are compared with those that the physical arm has.
    """
    if _named(nodes) or not _named(others):
        return nodes
    return {name: {**facts, **of_hypervisor(facts)} for name, facts in nodes.items()}


def _named(nodes: Mapping[str, Facts]) -> bool:
    return any(map(is_below, set().union(*nodes.values())))
