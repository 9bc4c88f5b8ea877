"""Which facts must be equal, and which are expected to differ: the tables beside this file.

classes.toml gives each fact of a platform a class, a reason and what it is likely to move; facts
that a tool's output gives are classed by its Reader. factors.toml names the facts that each
shipped factor changes. A fact that no row matches must be equal: a new one is never passed over.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from paribus.audit.hypervisors import named_after
from paribus.core import Row, matches
from paribus.readers.known import facts_of


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

    The rows of the tool that the key names go before those of classes.toml.
    """
    key = named_after(key)  # what holds for a machine holds for the one below it
    every = (*facts_of(key), *rows())
    return next((row for row in every if matches(key, row.keys)), UNCLASSED)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("paribus.audit").joinpath(name).read_text(encoding="utf-8"))
