"""Starts of Paribus at once, with pauses at whatever they do in one directory.

An audit hook sees each file that is opened, linked, renamed or removed there, each directory and
each lock: whatever the order in which a start does these, a pause falls between any two.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

_STARTS = multiprocessing.get_context("fork")
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a start ended: its exit code, what it printed on stderr, and its steps in `there`."""

    code: int
    errors: str
    steps: int


def _carry_out(
    words: Sequence[str], folder: Path, there: str, pause: Callable[[int], None], answer: Any
) -> None:
    """Start Paribus in `folder`, and call `pause` with the number of each step before it."""
    steps = 0

    def hook(event: str, details: tuple[Any, ...]) -> None:
        nonlocal steps
        if event.partition(".")[0] not in ("open", "os", "fcntl", "sqlite3", "shutil"):
            return
        if event == "fcntl.flock":
            about = os.readlink(f"/proc/self/fd/{details[0]}")
        else:
            about = " ".join(str(one) for one in details[:2])
        if there in about:
            steps += 1
            pause(steps)

    os.chdir(folder)
    said = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(said):
        from paribus.cli import dispatch

        sys.addaudithook(hook)
        code = dispatch(words)
    answer.send(Ended(code, said.getvalue(), steps))


def _start(*arguments: Any) -> tuple[Any, Any]:
    ours, theirs = _STARTS.Pipe()
    process = _STARTS.Process(target=_carry_out, args=(*arguments, theirs))
    process.start()
    theirs.close()
    return process, ours


def one_after_pause(
    first: Sequence[str], second: Sequence[str], folder: Path, there: str, step: int
) -> tuple[Ended, Ended]:
    """Return how two starts ended, the first of which stopped before its `step` for the second."""
    reached, go_on = _STARTS.Event(), _STARTS.Event()

    def pause(number: int) -> None:
        if number == step:
            reached.set()
            go_on.wait(LIMIT_S)

    process, answer = _start(first, folder, there, pause)
    while not reached.wait(0.01) and process.is_alive():
        pass
    other, its_answer = _start(second, folder, there, lambda _: None)
    its_end = its_answer.recv()
    other.join(LIMIT_S)
    go_on.set()
    end = answer.recv()
    process.join(LIMIT_S)
    return end, its_end


def all_at_once(starts: Sequence[Sequence[str]], folder: Path, there: str, seed: int) -> list[Ended]:
    """Return how starts ended that begin at one barrier and pause for random times."""
    barrier = _STARTS.Barrier(len(starts))

    def pausing(draw: random.Random) -> Callable[[int], None]:
        def pause(number: int) -> None:
            if number == 1:
                barrier.wait(LIMIT_S)
            time.sleep(draw.choice((0.0, 0.0, draw.uniform(0, 0.03))))

        return pause

    running = [
        _start(words, folder, there, pausing(random.Random(f"{seed} {i}")))
        for i, words in enumerate(starts)
    ]
    ends = [answer.recv() for _, answer in running]
    for process, _ in running:
        process.join(LIMIT_S)
    return ends
