"""Words of tools as numbers: each that is none is refused with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from paribus.readers.text import refuse

_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+")


def figure(word: str, line: int = 0) -> float:
    """Return the number above zero that `word` is; raises ParseError for anything else."""
    if not (_FIGURE.fullmatch(word) and 0 < (value := float(word)) < math.inf):
        refuse(f"expected a figure above zero, got {word[:40]!r}", line)
    return value


def count(word: str, line: int = 0) -> int:
    """Return the whole number that `word` is; raises ParseError for anything else."""
    if not (word.isascii() and word.isdigit()):
        refuse(f"expected a whole number, got {word[:40]!r}", line)
    return int(word)


def counts(words: Sequence[str]) -> list[int]:
    """Return the whole numbers that `words` are; raises ParseError for anything else."""
    return list(map(count, words))


def figures(words: Sequence[str]) -> list[float]:
    """Return the numbers above zero that `words` are; raises ParseError for anything else."""
    return list(map(figure, words))


def near(one: float, other: float, share: float) -> bool:
    """Return whether two figures differ by at most `share` of the second."""
    return abs(one - other) <= share * abs(other)


def inverse(ns_per_day: float, hours_per_ns: float) -> bool:
    """Return whether two speeds with three decimals are the same: their product is 24 hours."""
    slack = 24 * 1e-3 + 6e-4 * (ns_per_day + hours_per_ns)
    return abs(ns_per_day * hours_per_ns - 24) <= slack
