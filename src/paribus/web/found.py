"""The studies that a server shows: what lies in its folders, each under an id.

A request names an id and never a path: what is not found here cannot be asked for.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.errors import UserError
from paribus.inputs import is_directory, open_regular
from paribus.outside import printable
from paribus.records.standing import alive, read_standing

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


def find(folders: Sequence[Path]) -> dict[str, Found]:
    """Return what is in `folders`, by id, in the order of the names.

    Links to directories are not followed. A directory that cannot be read is left out.
    """
    left = [MOST_ENTRIES]
    found = [one for folder in folders for one in _below(folder, folder, DEPTH, left)]
    return {one.ident: one for one in sorted(found, key=lambda one: one.name)}


def check(folders: Sequence[Path]) -> None:
    """Raise UserError for a folder that is not there."""
    for folder in folders:
        if not is_directory(folder):
            raise UserError(
                "is not a directory",
                place=printable(str(folder)),
                fix="give folders of studies, or study directories",
            )


def _below(folder: Path, top: Path, depth: int, left: list[int]) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            listed = []
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    return
                listed.append(entry)
    except OSError:
        return
    names = {entry.name for entry in listed}
    if "plan.json" not in names and "progress.json" in names and waits(folder):
        yield _found(folder, top, measured=True)
        return
    if kind := names & {"plan.json", "verdict.json"}:
        yield _found(folder, top, measured="plan.json" in kind)
        return
    if depth:
        for entry in listed:
            if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), top, depth - 1, left)


def _found(path: Path, top: Path, *, measured: bool) -> Found:
    whole = path.resolve()
    ident = hashlib.sha256(os.fsencode(whole)).hexdigest()[:16]
    name = path.name if path == top else str(path.relative_to(top))
    return Found(ident, printable(name or str(whole)), whole, measured)


def waits(directory: Path) -> bool:
    """Return whether the study of a directory without a plan is made ready, or in a queue."""
    standing = read_standing(directory)
    return bool(standing and standing.code is None and (standing.job or alive(directory)))


STAMPED = ("plan.json", "launches.count", "launches.db", "accepted.json", "verdict.json")
"""The files that a report is made of."""


def stamp(found: Found) -> tuple[tuple[int, int], ...]:
    """Return what changes when a report would: times and sizes of its files."""
    return tuple(_stamp(found.path / name) for name in STAMPED)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def read_part(path: Path, most: int, *, tail: bool = False) -> tuple[bytes, int]:
    """Return at most `most` bytes of a regular file, its first or its last, and its whole size.

    A link is not followed: a study that came from somebody else must not show other files of the
    user. Raises OSError.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path))
    with os.fdopen(open_regular(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most) if tail else 0)
        return file.read(most), size


def by_name(found: Mapping[str, Found], name: str) -> Found | None:
    """Return the study whose directory is called `name`, None where there is none."""
    return next((one for one in found.values() if one.path.name == name), None)
