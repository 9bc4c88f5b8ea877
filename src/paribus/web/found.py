"""The studies that a server shows: what lies in its folders, each under an id.

A request names an id and never a path: what is not found here cannot be asked for.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from paribus.border import is_directory, open_regular, printable
from paribus.core import StoreError, UserError
from paribus.store.watched import alive, read_standing

DEPTH = 4
"""Levels below a folder in which studies are looked for."""

MOST_ENTRIES = 50_000
"""Directory entries looked at in one search: a home directory by mistake must not take minutes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A directory with a study (`measured`), or with what `paribus compare` wrote.

    A study that waits in a queue, or is made ready, has no plan yet.
    """

    ident: str
    name: str
    path: Path
    measured: bool


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found, by id, in the order of the names, and where it `stopped` early.

    `screens`: directories that `paribus screen` made.
    """

    found: Mapping[str, Found]
    stopped: Path | None = None
    screens: tuple[Path, ...] = ()


T = TypeVar("T")


class Kept(Generic[T]):
    """What is made of studies: of each once, until what it is made of changes."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, T]] = {}

    def made(self, found: Found, of: object, make: Callable[[Found], T]) -> T:
        """Return what `make` gave of a study when it stood as `of` says."""
        kept = self._kept.get(found.ident)
        if kept is None or kept[0] != of:
            kept = self._kept[found.ident] = of, make(found)
        return kept[1]

    def forget(self, left: Mapping[str, Found]) -> None:
        """Drop what is not in `left` any more."""
        self._kept = {ident: one for ident, one in self._kept.items() if ident in left}


def find(folders: Sequence[Path]) -> Search:
    """Return what is in `folders`, their own studies before those of folders below.

    Links to directories are not followed. A directory that cannot be read is left out. Whether
    a directory is a study is asked of all that are known, however many entries others have.
    """
    found, screens, left, stopped = [], [], MOST_ENTRIES, None
    # Below a folder there are no links to resolve.
    known = deque((folder.resolve(), folder.resolve(), DEPTH) for folder in folders)
    while known:
        folder, top, depth = known.popleft()
        if kind := what_is(folder):
            found.append(_found(folder, top, measured=kind == "study"))
        elif os.path.lexists(f"{folder}/screen.json"):
            screens.append(folder)
        elif depth and stopped is None:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        stopped = folder
                        break
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        known.append((Path(entry.path), top, depth - 1))
    by_name = sorted(found, key=lambda one: one.name)
    return Search({one.ident: one for one in by_name}, stopped, tuple(screens))


def what_is(folder: Path) -> str:
    """Return "study" or "report" for a directory with one, else ""; whether it can be read or not.

    A study that waits has no plan yet; one that was stopped before it had one is none any more.
    """
    plan, verdict, progress = (
        os.path.lexists(f"{folder}/{name}")
        for name in ("plan.json", "verdict.json", "progress.json")
    )
    if plan or (progress and waits(folder)):
        return "study"
    return "report" if verdict else ""


def check(folders: Sequence[Path]) -> None:
    """Raise UserError for a folder that is not there."""
    for folder in folders:
        if not is_directory(folder):
            raise UserError(
                "is not a directory",
                place=printable(str(folder)),
                fix="give folders of studies, or study directories",
            )


def _found(path: Path, top: Path, *, measured: bool) -> Found:
    ident = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    name = path.name if path == top else str(path)[len(str(top)) :].lstrip("/")
    return Found(ident, printable(name or str(path)), path, measured)


def waits(directory: Path) -> bool:
    """Return whether the study of a directory without a plan is made ready, or in a queue.

    It may be, where that cannot be read: whoever shows it says why.
    """
    try:
        standing = read_standing(directory)
        return bool(standing and standing.code is None and (standing.job or alive(directory)))
    except StoreError:
        return True


STAMPED = ("plan.json", "launches.count", "launches.db", "accepted.json", "verdict.json")
"""The files that a report is made of."""


def stamp(found: Found) -> tuple[tuple[int, int], ...]:
    """Return what changes when a report would: times and sizes of its files."""
    return tuple(_stamp(f"{found.path}/{name}") for name in STAMPED)


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def read_part(path: Path, most: int, *, tail: bool = False) -> tuple[bytes, int]:
    """Return at most `most` bytes of a regular file, its first or its last, and its whole size.

    Raises OSError as `open_own`.
    """
    file, size = open_own(path)
    with file:
        file.seek(max(0, size - most) if tail else 0)
        return file.read(most), size


def open_own(path: Path) -> tuple[BinaryIO, int]:
    """Return a regular file of a study, open, and its size.

    Neither it nor its directory may be a link: a study that came from somebody else must not show
    other files of the user. Raises OSError.
    """
    if path.is_symlink() or path.parent.is_symlink():
        raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path))
    file = os.fdopen(open_regular(path), "rb")
    return file, os.fstat(file.fileno()).st_size


def parts(file: BinaryIO) -> Iterator[bytes]:
    """Yield what a file holds, little of it in memory at a time, and close it."""
    with file:
        while data := file.read(1 << 18):
            yield data


def by_name(found: Mapping[str, Found], name: str) -> Found | None:
    """Return the study whose directory is called `name`, None where there is none."""
    return next((one for one in found.values() if one.path.name == name), None)
