"""How a fact of a platform is judged: its class, why, and what a difference is likely to move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, get_args

OF_ADAPTER, OF_OTHERS = "load.during.adapter_bytes", "load.during.other_bytes"
"""Facts of a launch: bytes through the arm's RDMA port, on the host with the fewest; and bytes
over all other networks."""

Class = Literal["identical", "covaries", "volatile", "identity"]

CLASSES: tuple[Class, ...] = get_args(Class)


@dataclass(frozen=True, slots=True)
class Row:
    """How the facts with these keys are judged: a row of audit/classes.toml, or of a Reader."""

    keys: tuple[str, ...]  # patterns, as `matches` takes them
    kind: Class
    reason: str  # why a difference matters
    # By layer of benchmarks, how likely a difference is to move a figure: 0 (not known to) to 3
    # (nearly always); "other" stands for every layer that is not named.
    moves: Mapping[str, int] = field(default_factory=dict)
    follows: tuple[str, ...] = ()  # of a fact that covaries: a difference of these explains it
    notable: float | None = None  # of a volatile fact: typical values further apart are reported
    hidden: bool = False  # whether a fact that is absent may be there, but out of sight

    def likely(self, layers: Iterable[str]) -> int:
        """Return how likely this fact is to move a benchmark of any of `layers`: 0 to 3."""
        other = self.moves.get("other", 0)
        return max((self.moves.get(layer, other) for layer in layers), default=other)


def of_tool(*keys: str, reason: str, follows: tuple[str, ...] = ()) -> Row:
    """Return the row for facts that a tool's output gives: identical, or following from others."""
    return Row(keys, "covaries" if follows else "identical", reason, {"other": 3}, follows)


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


TREE = "pci.tree"
"""The fact that holds the PCIe tree of a node with GPUs, in one line."""
