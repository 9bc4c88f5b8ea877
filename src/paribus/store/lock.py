"""The lock of a study directory: its holder is the only one that writes there.

It is flock(2) on a file in the directory, which the kernel drops with the process, whatever ends
it. NFS turns it into a lock at the server, so that it holds between hosts too, unless the mount
says `nolock` or `local_lock`. Where a file system has no locks, no study is written.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from paribus.border import open_own, open_regular
from paribus.core import StoreError
from paribus.store.damage import ABSENT, unreadable

NAME = "lock"
LOOKED_S = 0.1
"""Seconds for which `held`, which only looks, may hold the lock itself."""

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class AtWorkError(StoreError):
    """Another process holds the lock of a study directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(
            "another Paribus is at work in this directory",
            place=str(directory),
            fix="wait for it, or end it, then use --resume",
        )


class Lock:
    """The lock of `directory`, held from `take` to `release`; `made`: `take` made the directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made = False
        self._file: int | None = None

    def take(self, wait_s: float = 0.0) -> Lock:
        """Take the lock and return it; the directory is made if it is missing.

        Raises AtWorkError if another process still holds it after `wait_s` seconds, and StoreError
        if it cannot be taken.
        """
        end = time.monotonic() + max(wait_s, LOOKED_S)
        while not self._taken():
            if time.monotonic() > end:
                raise AtWorkError(self.directory)
            time.sleep(0.01)
        return self

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _taken(self) -> bool:
        """Try to take the lock once; return whether that succeeded."""
        path = self.directory / NAME
        Path.cwd()  # raises if the working directory has been removed
        try:
            self.made = _make(self.directory) or self.made
        except OSError as error:
            raise _unwritable(self.directory, error) from error
        try:
            file = open_own(path, os.O_RDWR)
        except FileNotFoundError:
            return False  # removed meanwhile
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have removed the file, and perhaps there is another.
            if os.path.samestat(os.fstat(file), path.stat()):
                self._file, file = file, -1
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError as error:
            path.unlink(missing_ok=True)
            if self.made:
                self.directory.rmdir()
            raise _unlockable(self.directory, error) from error
        finally:
            if file >= 0:
                os.close(file)
        return self._file is not None


def at_work(directory: Path) -> bool:
    """Return whether a process holds the lock of `directory`; raises StoreError."""
    try:
        return held(directory / NAME)
    except OSError as error:
        raise _unlockable(directory, error) from error


def held(lock: Path) -> bool:
    """Return whether a process, on whichever machine, holds the lock on the file `lock`.

    Raises StoreError if it is no file or cannot be opened, OSError if files cannot be locked there.
    """
    try:
        file = open_regular(lock)
    except OSError as error:
        if error.errno in ABSENT:
            return False
        raise unreadable(error, lock) from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _make(directory: Path) -> bool:
    """Return whether the directory was made: False where it was there."""
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        if directory.is_symlink():
            directory.stat()  # raises where it leads nowhere
        return False
    return True


def _unwritable(place: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot write here: {error.strerror}",
        place=str(place),
        fix="choose another directory with --out",
    )


def _unlockable(directory: Path, error: OSError) -> StoreError:
    if error.errno not in _NO_LOCKS:
        cause, fix = f"cannot be locked: {error.strerror}", "choose another directory with --out"
    else:
        cause = f"files cannot be locked here ({error.strerror}), so two studies could mix"
        fix = (
            "choose a directory on another file system with --out, or mount this one with locks"
            " (NFS: a lock service at the server; Lustre: -o flock)"
        )
    return StoreError(cause, place=str(directory), fix=fix)
