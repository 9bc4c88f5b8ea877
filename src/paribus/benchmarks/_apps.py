"""What the benchmarks around applications have in common: inputs that ship, and parameters."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any


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
