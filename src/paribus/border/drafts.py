"""The cache of what Paribus builds: where it is, and how an entry appears there whole, or not.

An entry, such as a compiled kernel, is made in a draft, a directory `.draft-*` beside it, and
renamed once it is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paribus.border.inputs import as_error
from paribus.border.trust import home, make_directory
from paribus.core import UserError

_PREFIX = ".draft-"


def cache_directory() -> Path:
    """Return where Paribus keeps what it can make again: $PARIBUS_CACHE, else the user's cache.

    Raises UserError where the user has no home.
    """
    if chosen := os.environ.get("PARIBUS_CACHE"):
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or home() / ".cache"
    return Path(base).absolute() / "paribus"


@contextmanager
def draft_of(target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a path to make the new `target` at, and a directory for other files on the way.

    At the end what was made is renamed to `target`. Two processes may make the same thing at once:
    each has a draft of its own, and it does not matter whose stays. A draft is locked while its
    maker lives; drafts of makers that were killed are removed. Raises UserError if the cache
    cannot be written.
    """
    fix = "set PARIBUS_CACHE to a directory with space that you may write to"
    with as_error(UserError, target.parent, fix, "the cache cannot be written"):
        make_directory(target.parent)
        work, lock = _begin(target.parent)
        try:
            yield work / "made", work
            try:
                (work / "made").rename(target)
            except OSError:
                if not target.exists():
                    raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
            os.close(lock)


def _begin(folder: Path) -> tuple[Path, int]:
    """Return a new draft in `folder` and the descriptor that locks it; remove abandoned drafts."""
    # While the folder is locked, no other process takes the new draft for an abandoned one.
    turn = _lock(folder, fcntl.LOCK_EX)
    try:
        for abandoned in folder.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                free = _lock(abandoned, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(abandoned, ignore_errors=True)
                os.close(free)
        work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
        return work, _lock(work, fcntl.LOCK_EX)
    finally:
        os.close(turn)


def _lock(directory: Path, how: int) -> int:
    """Return the descriptor of `directory`, locked; raises OSError where another process has it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
