"""The search for studies in the folders that are served; each study gets an id.

A request names an id and never a path, so that nothing else can be asked for.
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
"""Directory entries that one search looks at: a home directory must not take minutes."""


@dataclass(frozen=True, slots=True)
class Found:
    """A directory with a study (`measured`), or with a report that `paribus compare` wrote.

    `ident`: the id, from its path; `name`: its path below the folder that is served. A study that
    waits in a queue, or is made ready, has no plan yet.
    """

    ident: str
    name: str
    path: Path
    measured: bool


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: the studies by id, sorted by name.

    `stopped`: the folder at which MOST_ENTRIES ended it, None if it is whole. `screens`:
    directories that `paribus screen` made.
    """

    found: Mapping[str, Found]
    stopped: Path | None = None
    screens: tuple[Path, ...] = ()


T = TypeVar("T")


class Kept(Generic[T]):
    """A cache with a value for each study, made again when what it is made of has changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, T]] = {}

    def made(self, found: Found, of: object, make: Callable[[Found], T]) -> T:
        """Return the value of a study; `make` makes it unless the last one was made from `of`."""
        kept = self._kept.get(found.ident)
        if kept is None or kept[0] != of:
            kept = self._kept[found.ident] = of, make(found)
        return kept[1]

    def forget(self, left: Mapping[str, Found]) -> None:
        """Drop the values of studies that are not in `left`."""
        self._kept = {ident: one for ident, one in self._kept.items() if ident in left}


def find(folders: Sequence[Path]) -> Search:
    """Return the studies and screens in `folders`, down to DEPTH levels below.

    Links to directories are not followed. A directory that cannot be read is left out. After
    MOST_ENTRIES no folder is opened, but the directories seen until then are still checked.
    """
    found, screens, left, stopped = [], [], MOST_ENTRIES, None
    # Only these are resolved: below them no link is followed.
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
    """Return "study" or "report" for a directory with one, even an unreadable one, else "".

    A study without a plan counts as long as it waits or is made ready.
    """
    plan, verdict, progress = (
        os.path.lexists(f"{folder}/{name}")
        for name in ("plan.json", "verdict.json", "progress.json")
    )
    if plan or (progress and waits(folder)):
        return "study"
    return "report" if verdict else ""


def check(folders: Sequence[Path]) -> None:
    """Raise UserError for a folder that does not exist."""
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
    """Return whether the study in a directory without a plan is in a queue, or being made ready.

    True where that cannot be read: the page of the study then shows the error.
    """
    try:
        standing = read_standing(directory)
        return bool(standing and standing.code is None and (standing.job or alive(directory)))
    except StoreError:
        return True


STAMPED = ("plan.json", "launches.count", "launches.db", "accepted.json", "verdict.json")
"""The files that a report is made of."""


def stamp(found: Found) -> tuple[tuple[int, int], ...]:
    """Return the modification time (ns) and size of each of STAMPED; (0, 0) for a missing file."""
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
    """Yield the content of a file in pieces of 256 KiB, and close it."""
    with file:
        while data := file.read(1 << 18):
            yield data


def by_name(found: Mapping[str, Found], name: str) -> Found | None:
    """Return the study whose directory is called `name`, None where there is none."""
    return next((one for one in found.values() if one.path.name == name), None)
