"""Grouping pairs by their first member, and sorting names by the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_DIGITS = re.compile("([0-9]+)")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second members of `pairs` by their first, in the order in which these appear.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key for sorting that puts log2 before log10; that of run01 is that of run1."""
    digits = [part.lstrip("0") if i % 2 else part for i, part in enumerate(_DIGITS.split(name))]
    return tuple((len(part) if i % 2 else 0, part) for i, part in enumerate(digits))
