"""What the benchmarks around applications have in common: inputs that ship, and parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from paribus.benchmarks._tool import count, figure


def shipped(name: str) -> str:
    """Return the text of an input that ships with us, in the folder inputs."""
    return (files("paribus.benchmarks") / "inputs" / name).read_text(encoding="utf-8")


def word(value: Any) -> str:
    """Return a text that is not empty, such as a path; raises ValueError for anything else."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write it in quotes")
    return value


def absolute(value: Any) -> str:
    """Return an absolute path: a launch has a directory of its own, where no other is found."""
    path = word(value)
    if not path.startswith("/"):
        raise ValueError("write an absolute path, such as '/home/me/input'")
    return path


def words(value: Any) -> list[str]:
    """Return a list of texts, such as more arguments of a program."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError('write a list of texts, such as ["-sf", "omp"]')
    return list(value)


def near(one: float, other: float, share: float) -> bool:
    """Return whether two figures differ by at most `share` of the second."""
    return abs(one - other) <= share * abs(other)


def inverse(ns_per_day: float, hours_per_ns: float) -> bool:
    """Return whether two speeds with three decimals are the same: their product is 24 hours."""
    slack = 24 * 1e-3 + 6e-4 * (ns_per_day + hours_per_ns)
    return abs(ns_per_day * hours_per_ns - 24) <= slack


def found(text: str, mark: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return how `pattern` matches the lines that hold `mark`, from their beginning.

    Ten times as fast as to search for the pattern itself, for most lines do not hold the mark.
    """
    matches: list[re.Match[str]] = []
    at = text.find(mark)
    while at >= 0:
        if match := pattern.match(text, text.rfind("\n", 0, at) + 1):
            matches.append(match)
        end = text.find("\n", at)
        at = text.find(mark, end) if end >= 0 else -1
    return matches


def first(text: str, mark: str, pattern: re.Pattern[str], at: int = 0) -> re.Match[str] | None:
    """Return how `pattern` matches the first line from `at` on that holds `mark` and is matched."""
    at = text.find(mark, at)
    while at >= 0:
        if match := pattern.match(text, text.rfind("\n", 0, at) + 1):
            return match
        end = text.find("\n", at)
        at = text.find(mark, end) if end >= 0 else -1
    return None


def columns(text: str, pattern: re.Pattern[str]) -> dict[str, list[str]]:
    r"""Return what each named group of a pattern of lines found, from the first line to the last.

    Lines of many kinds cost little more than those of one. The pattern has the form `\n(?:A|B|C)`:
    from the end of a line it sees at the next character that this line is of no kind. It has
    two groups or more, all with names, and none is ever empty.
    """
    rows = pattern.findall("\n" + text)
    every = zip(*rows, strict=True) if rows else ((),) * pattern.groups
    return {
        name: list(filter(None, column))
        for name, column in zip(pattern.groupindex, every, strict=True)
    }


def counts(words: Sequence[str]) -> list[int]:
    """Return the whole numbers that `words` are; raises ParseError for anything else."""
    whole = "".join(words)
    return list(map(int if whole.isascii() and whole.isdigit() else count, words))


def figures(words: Sequence[str]) -> list[float]:
    """Return the numbers above zero that `words`, which have decimals, are; raises ParseError."""
    values = list(map(float, words))
    sound = not values or 0 < min(values) <= max(values) < math.inf
    return values if sound and "".join(words).isascii() else list(map(figure, words))
