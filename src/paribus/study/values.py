"""Values of a study file: what TOML gave in, a checked value out, ValueError with the mend."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from paribus.model import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = ("median", "p99", "p25", "min")


def text(value: Any) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError('write a text in quotes, such as "..."')
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(item) for item in items(value))


def endpoints(value: Any) -> tuple[Endpoint, ...]:
    """Return the endpoints named, the one that decides first."""
    names = texts([value] if isinstance(value, str) else value)
    if not names or len(set(names)) < len(names) or not set(names) <= set(ENDPOINTS):
        raise ValueError(f"list some of {', '.join(ENDPOINTS)}; the first decides")
    return names  # type: ignore[return-value]


def items(value: Any) -> list[Any]:
    """Return a list."""
    if not isinstance(value, list):
        raise ValueError("write a list: [...]")
    return value


def table(value: Any) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise ValueError("write a table")
    return value


def environment(value: Any) -> Mapping[str, str]:
    """Return environment variables by name."""
    for key, one in table(value).items():
        if not isinstance(one, str):
            raise ValueError(f'write the value of {key} as text: {key} = "{one}"')
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or "\0" in one:
            raise ValueError(f"{key!r} cannot be an environment variable")
    return dict(value)


def commands(value: Any) -> tuple[tuple[str, ...], ...]:
    """Return commands, each split into words as a shell does."""
    lines = [value] if isinstance(value, str) else items(value)
    found = tuple(tuple(shlex.split(text(line))) for line in lines)
    if not all(found):
        raise ValueError("an empty command")
    return found


def confidence(value: Any) -> float:
    """Return a confidence for which the looks are calibrated."""
    if value not in (0.90, 0.95, 0.99):
        raise ValueError("use 0.90, 0.95 or 0.99: the looks are calibrated for these")
    return float(value)


def one_of(*words: Any) -> Callable[[Any], Any]:
    """Return a reader of one of `words`."""

    def read(value: Any) -> Any:
        if value not in words:
            raise ValueError("use one of " + ", ".join(f'"{word}"' for word in words))
        return value

    return read


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"use a whole number from {low} to {high}")
        return value

    return read
