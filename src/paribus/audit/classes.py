"""The class of each fact: whether it must be equal in all arms, or is expected to differ.

classes.toml gives each fact of a platform a class, a reason, and the layers of benchmarks that it
is likely to move; facts in a tool's output are classed by its Reader. factors.toml names the facts
that each shipped factor changes. A fact that no row matches must be equal, so that a new one is
never ignored.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from paribus.core import Facts, Row, matches
from paribus.readers.known import facts_of

BELOW = "hypervisor."
"""The beginning of the keys of facts that were read on the hypervisor of a guest."""

READ = ("cpu.", "memory.", "numa.", "machine.", "os.", "load.", "layers.machine")
"""Facts of a hypervisor that concern its guests; others depend on the login that reads them."""


def is_below(key: str) -> bool:
    """Return whether `key` is a fact of the hypervisor of a guest."""
    return key.startswith(BELOW)


def named_after(key: str) -> str:
    """Return the key of a fact without the prefix for a hypervisor."""
    return key.removeprefix(BELOW)


def of_hypervisor(facts: Facts) -> dict[str, object]:
    """Return the facts that those of a hypervisor add to its guests: "hypervisor.cpu.model"."""
    return {f"{BELOW}{key}": value for key, value in facts.items() if matches(key, READ)}


def with_own(nodes: Mapping[str, Facts], others: Mapping[str, Facts]) -> Mapping[str, Facts]:
    """Return `nodes`, if `others` are guests and these are not, as their own hypervisors.

    So the hypervisors of the guests of one arm are compared with the nodes of a physical arm.
    """
    if _named(nodes) or not _named(others):
        return nodes
    return {name: {**facts, **of_hypervisor(facts)} for name, facts in nodes.items()}


def _named(nodes: Mapping[str, Facts]) -> bool:
    return any(map(is_below, set().union(*nodes.values())))


@dataclass(frozen=True, slots=True)
class Factor:
    """A shipped factor of factors.toml."""

    name: str
    explains: tuple[str, ...]  # patterns of keys of the facts that it changes
    reason: str
    # Facts, with reasons, by which software may choose differently at each level if no arm sets
    # them.
    left_open: Mapping[str, str]


UNCLASSED = Row(
    keys=("*",),
    kind="identical",
    reason="no row of the table of classes names it, and what is not known is held equal",
    moves={"other": 1},
)


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of classes.toml in order: the first that matches a key decides."""
    return tuple(
        Row(
            keys=tuple(row["keys"]),
            kind=row["class"],
            reason=row["reason"],
            moves=row.get("moves", {}),
            follows=tuple(row.get("follows", ())),
            notable=row.get("notable"),
            hidden=row.get("absence") == "hidden",
        )
        for row in _table("classes.toml")["facts"]
    )


@cache
def factors() -> Mapping[str, Factor]:
    """Return the shipped factors of factors.toml by name."""
    return {
        name: Factor(name, tuple(entry["explains"]), entry["reason"], entry.get("left_open", {}))
        for name, entry in _table("factors.toml").items()
    }


@cache
def classify(key: str) -> Row:
    """Return the row that decides about the fact `key`; UNCLASSED if no row matches.

    A row that has the whole key comes before rows of the tool whose name the key begins with, and
    these before the patterns of classes.toml.
    """
    key = named_after(key)  # facts of a hypervisor have the rows of those of other machines
    if exact := next((row for row in rows() if key in row.keys), None):
        return exact
    every = (*facts_of(key), *rows())
    return next((row for row in every if matches(key, row.keys)), UNCLASSED)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("paribus.audit").joinpath(name).read_text(encoding="utf-8"))
