"""Starts of Paribus at once, with pauses at whatever they do in one place.

    python pausing.py < TASKS > ENDS

An audit hook sees each file that is opened, linked, renamed or removed, each directory, each lock
and database whose name contains the place: in whatever order a start does these, a pause falls
between any two. Processes are forked, because most of a start is imports.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from processes import ran

_FORKED = multiprocessing.get_context("fork")
_EVENTS = ("open", "os", "fcntl", "sqlite3", "shutil")
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Task:
    """Starts in `folder`, as command lines of `paribus`.

    The first stops before its `step` in `place` until the others, one after the other, have ended.
    With `step` 0 all begin at one barrier, and pause for times that are drawn by `seed`.
    """

    folder: str
    place: str
    starts: Sequence[Sequence[str]]
    step: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a start ended: its exit code, and what it said on stderr."""

    code: int
    errors: str


def ended(tasks: Sequence[Task]) -> list[list[Ended]]:
    """Return how the starts of each task ended."""
    text = json.dumps([asdict(task) for task in tasks])
    done = ran([sys.executable, __file__], input=text, code=0)
    return [[Ended(**one) for one in ends] for ends in json.loads(done.stdout)]


def _start(task: Task, words: Sequence[str], pause: Callable[[int], None]) -> tuple[Any, Any]:
    ours, theirs = _FORKED.Pipe()
    process = _FORKED.Process(target=_execute, args=(task, words, pause, theirs))
    process.start()
    theirs.close()
    return process, ours


def _execute(task: Task, words: Sequence[str], pause: Callable[[int], None], end: Any) -> None:
    from paribus.__main__ import main

    steps = 0

    def hook(event: str, details: tuple[Any, ...]) -> None:
        nonlocal steps
        if event.partition(".")[0] not in _EVENTS:
            return
        if event == "fcntl.flock":
            about = str(Path(f"/proc/self/fd/{details[0]}").readlink())
        else:
            about = " ".join(str(one) for one in details[:2])
        if task.place in about:
            steps += 1
            pause(steps)

    os.chdir(task.folder)
    said = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(said):
        sys.addaudithook(hook)
        code = main(words)
    end.send({"code": code, "errors": said.getvalue()})


def _one_stops(task: Task) -> list[Any]:
    reached, go_on = _FORKED.Event(), _FORKED.Event()

    def stop(number: int) -> None:
        if number == task.step:
            reached.set()
            go_on.wait(LIMIT_S)

    first, its_end = _start(task, task.starts[0], stop)
    while not reached.wait(0.01) and first.is_alive():
        pass
    ends = []
    for words in task.starts[1:]:
        other, end = _start(task, words, lambda _: None)
        ends.append(end.recv())
        other.join(LIMIT_S)
    go_on.set()
    ends.insert(0, its_end.recv())
    first.join(LIMIT_S)
    return ends


def _all_at_once(task: Task) -> list[Any]:
    barrier = _FORKED.Barrier(len(task.starts))

    def pausing(draw: random.Random) -> Callable[[int], None]:
        def pause(number: int) -> None:
            if number == 1:
                barrier.wait(LIMIT_S)
            time.sleep(draw.choice((0.0, 0.0, draw.uniform(0.0, 0.03))))

        return pause

    running = [
        _start(task, words, pausing(random.Random(f"{task.seed} {i}")))
        for i, words in enumerate(task.starts)
    ]
    ends = [end.recv() for _, end in running]
    for process, _ in running:
        process.join(LIMIT_S)
    return ends


def _main() -> None:
    import numpy  # noqa: F401  # once, for all starts
    import pyarrow  # noqa: F401

    import paribus.cli.ab
    import paribus.cli.outputs
    import paribus.cli.run
    import paribus.report.html
    import paribus.report.terminal  # noqa: F401

    tasks = [Task(**one) for one in json.load(sys.stdin)]
    print(json.dumps([_one_stops(one) if one.step else _all_at_once(one) for one in tasks]))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    _main()
