"""launches.count: how many rows launches.db has, kept outside of it.

What SQLite cannot show: that its write-ahead log was lost, cut or damaged (it then reads an earlier
state, without a word), that an older copy was put in its place, that the last pages are gone. The
file is written after each transaction and not synced, so it is never ahead of the database: after a
loss of power it may be behind, or empty, which says nothing.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from paribus.border import open_own, read_json
from paribus.store.damage import ABSENT, unreadable
from paribus.store.rows import checksum

NAME = "launches.count"
_LENGTH = 128
"""Bytes of the file, always: overwriting it needs no space."""

MOST_BYTES = 4096
"""Bytes of one that is read: those of other versions may be longer."""


@dataclass(frozen=True, slots=True)
class Count:
    """The rows of launches, those of them that are void, and the rows of gathered."""

    launches: int = 0
    void: int = 0
    gathered: int = 0


def read_count(directory: Path) -> Count:
    """Return what was counted in `directory`; zeros where that is not known.

    Raises StoreError for what is no file, or cannot be read.
    """
    try:
        table = read_json(directory / NAME, MOST_BYTES, "a count")
        agrees = table.pop("checksum") == checksum(tuple(table.values()))
        return Count(**table) if agrees else Count()
    except (ValueError, TypeError, KeyError, AttributeError):
        return Count()
    except OSError as error:
        if error.errno in ABSENT:
            return Count()
        raise unreadable(error, directory / NAME) from error


def write_count(directory: Path, count: Count) -> None:
    """Overwrite the file in one call, so that a kill leaves the old or the new. Raises OSError."""
    table = {**asdict(count), "checksum": checksum(astuple(count))}
    text = json.dumps(table).ljust(_LENGTH - 1) + "\n"
    file = open_own(directory / NAME, os.O_WRONLY)
    try:
        os.pwrite(file, text.encode(), 0)
    finally:
        os.close(file)
