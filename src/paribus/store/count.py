"""launches.count: how many rows launches.db has, kept outside of it.

It shows what SQLite cannot: that the write-ahead log was lost, cut or damaged (SQLite then reads an
earlier state, without an error), that an older copy lies in its place, that the last pages are
gone. The file is written after each transaction and not synced, so it is never ahead of the
database; after a loss of power it may be behind, or empty, and then proves nothing.
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
"""Bytes of the file, always the same, so that overwriting it needs no space."""

MOST_BYTES = 4096
"""The most bytes of one that is read: that of another version may be longer."""


@dataclass(frozen=True, slots=True)
class Count:
    """The rows of launches, those of them that are void, and the rows of gathered."""

    launches: int = 0
    void: int = 0
    gathered: int = 0


def read_count(directory: Path) -> Count:
    """Return the counts of `directory`; zeros where the file is missing or damaged.

    Raises StoreError if it is no regular file, or cannot be read.
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
