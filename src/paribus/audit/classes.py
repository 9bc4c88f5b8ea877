"""Which facts must be equal, and which are expected to differ: the tables beside this file.

classes.toml gives each fact a class, a reason and what it is likely to move; factors.toml names the
facts that each shipped factor changes. A fact that no row matches must be equal: a new one is
never passed over.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Class = Literal["identical", "covaries", "volatile", "identity"]

CLASSES: tuple[Class, ...] = get_args(Class)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of classes.toml.

    `moves` says by layer of benchmark how likely a difference moves a figure, 0 (not known to) to
    3 (nearly always); "other" stands for every layer that is not named. A fact that covaries is
    explained when one of those that it `follows` differs and is explained. A volatile one is
    worth a word when its typical values lie more than `notable` apart. With `hidden` the fact may
    only be out of sight where it is absent.
    """

    keys: tuple[str, ...]
    kind: Class
    reason: str
    moves: Mapping[str, int] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    notable: float | None = None
    hidden: bool = False

    def likely(self, layers: Iterable[str]) -> int:
        """Return how likely this fact is to move a benchmark of any of `layers`: 0 to 3."""
        other = self.moves.get("other", 0)
        return max((self.moves.get(layer, other) for layer in layers), default=other)


@dataclass(frozen=True, slots=True)
class Factor:
    """What a shipped factor changes: patterns of keys, and why."""

    name: str
    explains: tuple[str, ...]
    reason: str


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
        name: Factor(name, tuple(entry["explains"]), entry["reason"])
        for name, entry in _table("factors.toml").items()
    }


@cache
def classify(key: str) -> Row:
    """Return the row that decides about the fact `key`; UNCLASSED where no row matches."""
    return next((row for row in rows() if matches(key, row.keys)), UNCLASSED)


def matches(key: str, patterns: Iterable[str]) -> bool:
    """Return whether `key` is one of `patterns`.

    A pattern is a key, a prefix that ends in a dot, or has `*` for any run of characters.

    >>> matches("net.0.mtu", ["net."]), matches("net.0.mtu", ["net.*.mtu"]), matches("net", ["n"])
    (True, True, False)
    """
    return any(_match(key, pattern) for pattern in patterns)


def _match(key: str, pattern: str) -> bool:
    if "*" in pattern:
        return fnmatchcase(key, f"{pattern}*" if pattern.endswith(".") else pattern)
    return key.startswith(pattern) if pattern.endswith(".") else key == pattern


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("paribus.audit").joinpath(name).read_text(encoding="utf-8"))
