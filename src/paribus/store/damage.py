"""The errors of SQLite as StoreErrors with cause and next step, and a list of what is lost."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from paribus.border.inputs import NO_PATH
from paribus.core import StoreError
from paribus.store import bounded

FAILS = (sqlite3.Error, MemoryError, UnicodeDecodeError, OverflowError)
"""What the module sqlite3 raises for a bad database: the last three for absurd sizes and texts."""

RESTORE = (
    "restore the directory from a copy; `paribus report DIR --salvage` reports from what is whole,"
    " and what each launch printed is in logs/"
)
ABSENT = (errno.ENOENT, errno.ENOTDIR)
"""The errno values that mean that a file is not there."""

_KEPT = "then continue with --resume: every stored launch is kept"


@dataclass(slots=True)
class Lost:
    """The rows of a database that are damaged or missing, by their ids (from 1)."""

    # The number in the plan of each lost launch, by row; None where not even that can be read.
    launches: dict[int, int | None] = field(default_factory=dict)
    gathered: list[int] = field(default_factory=list)
    whole: int = 0  # the number of launches that are whole
    unvoided: int = 0  # at most so many of these had been void, and their mark is lost
    counted: bool = True  # the number of rows is known, so that no loss goes unnoticed

    def __bool__(self) -> bool:
        return bool(self.launches or self.gathered or self.unvoided)


def damaged(path: Path, what: str) -> StoreError:
    """Return the error for a damaged database; `what` names the damage: "row 7 of launches"."""
    return StoreError(f"damaged: {what}", place=str(path), fix=RESTORE)


@contextmanager
def converted(path: Path) -> Iterator[None]:
    """Turn an error of SQLite in the context into a StoreError about the database `path`."""
    try:
        yield
    except FAILS as error:
        raise store_error(error, path) from error


@contextmanager
def passed_over(*others: type[Exception]) -> Iterator[None]:
    """Ignore errors of SQLite, and `others`, in the context, but not a signal."""
    caught: tuple[type[Exception], ...] = (*FAILS, *others)
    try:
        yield
    except caught as error:
        _demand_no_signal(error)


def _demand_no_signal(error: Exception) -> None:
    """Raise KeyboardInterrupt if the error of SQLite was caused by a signal."""
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT" and not bounded.was_late():
        raise KeyboardInterrupt from error


def store_error(error: Exception, path: Path, where: str = "") -> StoreError:
    """Return the StoreError for an `error` that SQLite raised on the database `path`.

    `where` names the row. Raises KeyboardInterrupt if a signal caused the error.
    """
    _demand_no_signal(error)
    name, text = getattr(error, "sqlite_errorname", ""), str(error)
    if name.startswith("SQLITE_FULL"):
        return no_space(path.parent)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        fix = "check the permissions of the directory, or choose another with --out"
        beside = (path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))
        if barred := [one for one in beside if one.exists() and not os.access(one, os.R_OK)]:
            text = f"{barred[0].name} beside it may not be read"
    elif name.startswith("SQLITE_IOERR"):
        fix = f"check the disk and the limit of file sizes (ulimit -f), {_KEPT}"
    elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        fix = f"end the program that holds it, {_KEPT}"
    elif name.startswith("SQLITE_INTERRUPT"):
        text = f"a row takes more than {bounded.MOST_S:g} s of computing"
        fix = f"is it a Paribus study directory? If it is, {RESTORE}"
    elif name.startswith("SQLITE_NOTADB"):
        fix = f"is it a Paribus study directory? If its beginning is damaged, {RESTORE}"
    elif name.startswith("SQLITE_CONSTRAINT"):
        fix = "is it a Paribus study directory?"
    else:
        what = text or type(error).__name__
        return damaged(path, f"{where}: {what}" if where else what)
    return StoreError(f"cannot be used: {text}", place=str(path), fix=fix)


def unreadable(error: OSError, path: Path) -> StoreError:
    """Return the error for a file of a study directory that cannot be read, as `error` says."""
    fix = "make it readable, restore it from a copy, or ask for the directory anew where it comes"
    fix = "name another directory" if error.errno in NO_PATH else f"{fix} from"
    return StoreError(f"cannot be read: {error.strerror}", place=str(path), fix=fix)


def nothing_whole(path: Path, error: StoreError | OSError) -> StoreError:
    """Return the error for a database of which nothing can be salvaged, because of `error`."""
    place, cause = str(path), str(error)
    if isinstance(error, OSError):
        place, cause = str(error.filename or path), str(error.strerror)
    elif isinstance(error, StoreError):
        cause = error.cause
    return StoreError(
        f"nothing in it can be salvaged: {cause}",
        place=place,
        fix="restore the directory from a copy; what each launch printed is in logs/",
    )


def no_space(directory: Path) -> StoreError:
    """Return the error for a full disk."""
    return StoreError(
        "no space is left for the launches",
        place=str(directory),
        fix=f"free some space, {_KEPT}",
    )
