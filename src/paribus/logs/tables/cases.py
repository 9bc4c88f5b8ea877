"""Cases as a table writes them: "bytes=8, ranks=2", JSON, or any text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from paribus.core import Case, Scalar

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def read_case(text: str) -> Case:
    """Return the case that a cell names.

    "bytes=4096, ranks=2" and {"bytes": 4096, "ranks": 2} give parameters with their values;
    anything else is kept whole, as the parameter `case`.

    >>> read_case("bytes=8"), read_case("large"), read_case("")
    (Case(items=(('bytes', 8),)), Case(items=(('case', 'large'),)), Case(items=()))
    """
    if not text.strip():
        return Case()
    found = _from_json(text) if text.lstrip().startswith("{") else _from_pairs(text)
    return in_order({"case": scalar(text)} if found is None else found)


def in_order(parameters: Mapping[str, Scalar]) -> Case:
    """Return the case with its parameters sorted by name: their order makes no second case."""
    return Case(tuple(sorted(parameters.items())))


def _from_pairs(text: str) -> dict[str, Scalar] | None:
    """Return the parameters of "bytes=8, ranks=2", None for another text or a name twice."""
    parts = [part.partition("=") for part in re.split("[,;]", text)]
    found = {name.strip(): scalar(value.strip()) for name, _, value in parts}
    named = all(equals and _NAME.fullmatch(name.strip()) for name, equals, _ in parts)
    return found if named and len(found) == len(parts) else None


def _from_json(text: str) -> dict[str, Scalar] | None:
    """Return the parameters of a JSON object of scalars, None for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    flat = isinstance(found, dict) and all(
        isinstance(value, str | int | float | bool) for value in found.values()
    )
    return found if flat else None


def scalar(text: str) -> Scalar:
    """Return a whole number as int, any other text as it is."""
    return int(text) if _NUMBER.fullmatch(text) and len(text) < 19 else text


def case_key(case: Case) -> tuple[tuple[str, bool, float, str], ...]:
    """Return a key that sorts cases by their parameters, numbers by size and before texts."""
    return tuple(
        (name, False, float(value), "")
        if isinstance(value, int | float)
        else (name, True, 0.0, value)
        for name, value in case.items
    )
