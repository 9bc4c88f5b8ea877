"""progress.json: what a `paribus run` does now, for whoever watches its directory.

Each state replaces the one before, whole. While `paribus run` lives it holds progress.lock, which
ends with it, whatever ends it. Nothing of a study rests on these files.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

NAME, DRAFT, LOCK = "progress.json", "progress.draft", "progress.lock"
FILES = (NAME, DRAFT, LOCK)


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds progress.lock, on its machine."""

    pid: int
    host: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What a study does: a sentence; its exit code once it has ended.

    `waits`: it is in a queue as a job of its own, and no process of it is there yet.
    """

    text: str
    code: int | None = None
    waits: bool = False


def write_standing(directory: Path, standing: Standing) -> None:
    """Replace the state in `directory`. Raises OSError."""
    draft = directory / DRAFT
    draft.write_text(json.dumps(asdict(standing)) + "\n", encoding="utf-8")
    draft.replace(directory / NAME)


def read_standing(directory: Path) -> Standing | None:
    """Return the state in `directory`, None where there is none that can be read."""
    try:
        table = json.loads((directory / NAME).read_bytes())
        text, code, waits = table["text"], table["code"], table["waits"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    known = isinstance(text, str) and (code is None or type(code) is int)
    return Standing(text, code, waits is True) if known else None


def alive(directory: Path) -> bool:
    """Return whether the `paribus run` of `directory` lives, on whichever machine."""
    with suppress(OSError):
        lock = os.open(directory / LOCK, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    return False


def read_holder(directory: Path) -> Holder | None:
    """Return who took the lock of `directory` last, None where that is not known."""
    try:
        pid, host = (directory / LOCK).read_text(encoding="utf-8").split()
        return Holder(int(pid), host)
    except (OSError, ValueError):
        return None


class Board:
    """Keeps the state of the study in `directory` for as long as a `paribus run` lives.

    A context manager: `code` is the exit code to say at its end, unless an exception has one.
    Where the directory cannot be written to, which the study finds out itself, nothing is said.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.code = 0
        self._lock: int | None = None

    def __enter__(self) -> Board:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            interrupted = isinstance(error, KeyboardInterrupt)
            self.code = 130 if interrupted else int(getattr(error, "exit_code", 1))
        said = " ".join(str(error).split()) if error else ""
        self._write(Standing(said or ("interrupted" if error else "ended"), self.code))
        self._close()

    def open(self) -> None:
        """Begin, or begin anew, in the directory that is there now; where none is, say nothing."""
        self._close()
        try:
            lock = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return
        self._lock = lock
        for _ in range(10):
            # Whoever watches holds it for a moment.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        with suppress(OSError):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        self.say("preparing")

    def say(self, text: str) -> None:
        """Say what the study does now."""
        self._write(Standing(text))

    def _write(self, standing: Standing) -> None:
        if self._lock is not None:
            with suppress(OSError):
                write_standing(self.directory, standing)

    def _close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
