"""Which facts must be equal, and which are expected to differ: the tables beside this file.

classes.toml gives each fact of a platform a class, a reason and what it is likely to move; facts
that a tool's output gives are classed by its Reader. factors.toml names the facts that each
shipped factor changes. A fact that no row matches must be equal: a new one is never ignored.
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


@dataclass(frozen=True, slots=True)
class Factor:
    """What a shipped factor changes: patterns of keys, and why.

    `left_open`: facts by which software chooses for itself at each level where no arm sets them.
    """

    name: str
    explains: tuple[str, ...]
    reason: str
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
    """Return the row that decides about the fact `key`; UNCLASSED where no row matches.

    A row that names the whole key goes before those of the tool whose name the key begins with, and
    these before the other rows of classes.toml.
    """
    key = named_after(key)  # what holds for a machine holds for the one below it
    if own := next((row for row in rows() if key in row.keys), None):
        return own
    every = (*facts_of(key), *rows())
    return next((row for row in every if matches(key, row.keys)), UNCLASSED)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("paribus.audit").joinpath(name).read_text(encoding="utf-8"))
