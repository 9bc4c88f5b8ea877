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
    """The headline of an arm in one benchmark; `ratio`, `low` and `high` None without figures.

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
    """The launch that a study is at, since `since` (seconds since the epoch).

    `blocks` are those complete of each benchmark; after `look` of them the evidence is weighed, in
    `look_s` seconds. Those are 0 and None where there is no look, or its time is not known.
    """

    number: int
    block: int
    benchmark: str
    arm: str
    since: float
    blocks: Mapping[str, int]
    look: int = 0
    look_s: float | None = None
    elapsed_s: float = 0.0
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What a study does: a sentence; its exit code once it has ended.

    `job` is its number in a queue while it waits there as a job of its own, and no process of it is
    there yet; "" otherwise. `effects` are those so far, of at most `planned` launches (0: without
    an end, or not known), of which `failures` gave nothing usable. `doing` is None before and after
    the launches.
    """

    text: str
    code: int | None = None
    job: str = ""
    effects: tuple[Effect, ...] = ()
    planned: int = 0
    failures: int = 0
    doing: Doing | None = None


def write_standing(directory: Path, standing: Standing) -> None:
    """Replace the state in `directory`. Raises OSError."""
    draft = directory / DRAFT
    with open_anew(draft, encoding="utf-8") as file:
        file.write(json.dumps(asdict(standing)) + "\n")
    draft.replace(directory / NAME)


class Board:
    """Keeps the state of the study in `directory` for as long as a `paribus run` lives.

    A context manager: `code` is the exit code to say at its end, unless an exception has one.
    Where the directory cannot be written to, which the study finds out itself, there is no message.
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
        said = " ".join(str(error).split()) if error else ""
        text = said or ("interrupted" if error else "ended")
        self._write(replace(self._last, text=text, code=self.code, doing=None))
        self._close()

    def open(self) -> None:
        """Begin, or begin anew, in the directory that is there now; where none is, say nothing."""
        self._close()
        try:
            lock = open_own(self.directory / LOCK, os.O_RDWR)
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

    def say(
        self,
        text: str,
        effects: Sequence[Effect] = (),
        planned: int = 0,
        failures: int = 0,
        doing: Doing | None = None,
    ) -> None:
        """Say what the study does now."""
        self._last = Standing(text, None, "", tuple(effects), planned, failures, doing)
        self._write(self._last)

    def wait(self, text: str) -> None:
        """Say what the study waits for; what it has found so far stays."""
        self._write(replace(self._last, text=text, doing=None))

    def _write(self, standing: Standing) -> None:
        if self._lock is not None:
            with suppress(OSError):
                write_standing(self.directory, standing)

    def _close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
