"""accepted.json: differences that the user accepts, each with a reason, beside plan.json."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from paribus.border import MOST_TEXT, as_error, open_anew, read_json
from paribus.core import StoreError, UserError

NAME = "accepted.json"


def parse_accepted(options: Sequence[str]) -> dict[str, str]:
    """Return reasons by key from options `KEY=reason`.

    Raises UserError for one without a reason, and for a pattern: only a fact that was looked at can
    be accepted, not others that may match later.
    """
    found = {}
    for option in options:
        key, sign, reason = (part.strip() for part in option.partition("="))
        if not sign or not reason:
            raise UserError(
                "no reason is given",
                place=f"--accept {option!r}",
                fix='write --accept KEY="why this difference does not matter here"',
            )
        if not key or key.endswith(".") or set(key) & set("*?[] "):
            raise UserError(
                "is not the key of one fact",
                place=f"--accept {option!r}",
                fix="accept each fact by its full key, each with a reason",
            )
        found[key] = reason
    return found


def in_vain(
    accepted: Iterable[str], differing: Collection[str], equal: Collection[str]
) -> list[dict[str, Any]]:
    """Return the accepted keys that are not among the `differing`.

    Each has its `key`, whether it is `equal` in all arms, and the most similar key of a difference
    as `close`, "" if there is none.
    """
    return [
        {
            "key": key,
            "equal": key in equal,
            "close": next(iter(get_close_matches(key, differing, 1)), ""),
        }
        for key in accepted
        if key not in differing
    ]


def read_accepted(directory: Path) -> dict[str, str]:
    """Return the reasons of a study directory by key; raises StoreError if they cannot be read."""
    path = directory / NAME
    try:
        table = read_json(path, MOST_TEXT, "a file of reasons")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot be read: {cause}", place=str(path), fix="restore it") from error
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise StoreError("is not a table of reasons", place=str(path), fix="restore or remove it")
    return table


def add_accepted(directory: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Add `more` reasons to those of a study directory, durably, and return all."""
    accepted = {**read_accepted(directory), **more}
    if more:
        draft = directory / f"{NAME}.draft"
        fix = "make the directory writable: the reason belongs to the study"
        with as_error(StoreError, directory / NAME, fix, named=True):
            with open_anew(draft) as file:
                file.write(json.dumps(accepted, indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(directory / NAME)
    return accepted
