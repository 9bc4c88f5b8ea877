"""The queues of the schedulers on this machine, with this user's jobs, for the workbench."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from paribus.launch.local import capture
from paribus.schedulers.allocations import BUSY, POLL_S
from paribus.schedulers.dialect import Job, without_log
from paribus.schedulers.known import present

ANSWER_S = 10.0
"""Seconds that a scheduler may take to list its queue: a page waits for it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The jobs of this user in one scheduler; `error`: why they cannot be listed."""

    title: str
    jobs: tuple[Job, ...]
    error: str = ""


@dataclass
class Queues:
    """The queues, kept for all pages; a scheduler is asked no more often than a study asks it."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _newest: tuple[Queue, ...] = ()
    _until: float = 0.0

    def newest(self) -> tuple[Queue, ...]:
        """Return the queue of each scheduler that is here."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._until:
                self._newest = tuple(queues())
                ended, (least, most) = time.monotonic(), POLL_S
                self._until = ended + min(most, max(least, BUSY * (ended - begun)))
            return self._newest


def queues() -> list[Queue]:
    """Return the queue of each scheduler that is here."""
    found = []
    for dialect in present():
        answer = capture(dialect.queue(), timeout_s=ANSWER_S)
        try:
            if answer.exit_code != 0:
                raise ValueError(" ".join(without_log(answer.stderr).split())[:300] or "no answer")
            jobs = dialect.read_queue(answer.stdout)
        except ValueError as error:
            found.append(Queue(dialect.TITLE, (), str(error)))
        else:
            found.append(Queue(dialect.TITLE, tuple(jobs.values())))
    return found
