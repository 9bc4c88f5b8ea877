"""The table [parts] of a study file: which changes belong together, their names and needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paribus.border import Place, fields
from paribus.core import Asked, Keys

TABLE = ("together", "names", "needs")


def parts_of(top: Place, folder: Path) -> Asked:
    """Return the table [parts], checked; the design finds out whether its keys change.

    `together`: groups of keys that are switched as one change; `names`: the name of a change by one
    of its keys; `needs`: by key, others that it needs switched before.
    """
    place = top.within("parts", top.table["parts"])
    place.only(TABLE)
    groups: list[list[str]] = place.read("together", _groups, [])
    names: dict[str, str] = place.read("names", _texts, {})
    needs: dict[str, list[str]] = place.read("needs", _needs, {})
    twice = [key for group in groups for key in group]
    for key in dict.fromkeys(twice):
        if twice.count(key) > 1:
            place.refuse("together", None, f"{key} is in two groups", "leave it in one")
    found = {"together": groups, "names": names, "needs": needs}
    return Asked({"parts": {key: value for key, value in found.items() if value}})


def _groups(value: Any) -> list[list[str]]:
    """Return groups of keys. One of a single key keeps it out of groups that Paribus forms."""
    groups = [list(fields.texts(one)) for one in fields.items(value)]
    if not all(groups):
        raise ValueError('name keys in each: [["mpi", "env.LD_LIBRARY_PATH"]]')
    return groups


def _texts(value: Any) -> dict[str, str]:
    return {key: fields.text(one) for key, one in fields.table(value).items()}


def _needs(value: Any) -> dict[str, list[str]]:
    return {key: list(fields.texts(one)) for key, one in fields.table(value).items()}


KEYS = Keys(study=parts_of)
