"""progress.json: what a `paribus run` does now, for those who watch its directory.

Each state replaces the file as a whole. `paribus run` holds progress.lock as long as it lives; the
kernel drops the lock with the process. No result of a study depends on these files.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from paribus.border import open_anew, open_own
from paribus.core import exit_code

NAME, DRAFT, LOCK = "progress.json", "progress.draft", "progress.lock"
FILES = (NAME, DRAFT, LOCK)


@dataclass(frozen=True, slots=True)
class Effect:
    """The headline of an arm in one benchmark; `ratio`, `low` and `high` are None without figures.

    `better` is the direction of its metric: "lower" or "higher".
    """

    benchmark: str
    arm: str
    word: str
    reason: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    better: str = "lower"


@dataclass(frozen=True, slots=True)
class Doing:
    """The launch that a study is at."""

    number: int
    block: int
    benchmark: str
    arm: str
    since: float  # its start, in seconds since the epoch
    blocks: Mapping[str, int]  # complete blocks of each benchmark
    look: int = 0  # the number of blocks at the next look, 0 without one
    look_s: float | None = None  # seconds until then, None if not known
    elapsed_s: float = 0.0
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a study."""

    text: str  # a sentence on what it does
    code: int | None = None  # the exit code once it has ended
    job: str = ""  # its number in a queue, while it waits there and no process of it lives yet
    effects: tuple[Effect, ...] = ()  # so far
    planned: int = 0  # the most launches, 0: without an end, or not known
    failures: int = 0  # launches that gave nothing usable
    doing: Doing | None = None  # None before and after the launches


def write_standing(directory: Path, standing: Standing) -> None:
    """Replace the state in `directory`. Raises OSError."""
    draft = directory / DRAFT
    with open_anew(draft, encoding="utf-8") as file:
        file.write(json.dumps(asdict(standing)) + "\n")
    draft.replace(directory / NAME)


def _in_one_line(error: BaseException | None) -> str:
    """Return the message of an error with its next step in one line; "" for none."""
    lines = str(error or "").splitlines()
    return "; ".join(" ".join(one.split()) for one in lines).replace(":; ", ": ")


class Board:
    """Writes the state of the study in `directory` as long as a `paribus run` lives.

    A context manager: at its end the state gets the exit code `code`, or that of the exception.
    Where the directory cannot be written, this is silent: the study itself reports that.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.code = 0
        self._lock: int | None = None
        self._last = Standing("")

    def __enter__(self) -> Board:
        self.open()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.code = exit_code(error)
        text = _in_one_line(error) or ("interrupted" if error else "ended")
        self._write(replace(self._last, text=text, code=self.code, doing=None))
        self._close()

    def open(self) -> None:
        """Take the lock and write the first state; do nothing if there is no directory yet."""
        self._close()
        try:
            lock = open_own(self.directory / LOCK, os.O_RDWR)
        except OSError:
            return
        self._lock = lock
        for _ in range(10):
            # One who watches (lock.held) holds it for a moment.
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        with suppress(OSError):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        self.say("preparing")

    def say(
        self,
        text: str,
        effects: Sequence[Effect] = (),
        planned: int = 0,
        failures: int = 0,
        doing: Doing | None = None,
    ) -> None:
        """Write a new state: a sentence and figures, as in Standing."""
        self._last = Standing(text, None, "", tuple(effects), planned, failures, doing)
        self._write(self._last)

    def wait(self, text: str) -> None:
        """Write what the study waits for; effects and figures of the last state stay."""
        self._write(replace(self._last, text=text, doing=None))

    def _write(self, standing: Standing) -> None:
        if self._lock is not None:
            with suppress(OSError):
                write_standing(self.directory, standing)

    def _close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
