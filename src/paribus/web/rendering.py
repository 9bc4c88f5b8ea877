"""Reports as HTML, made in a process of its own that yields to everything else.

Judging a study takes CPU time, and the study may be measuring on this very machine: the process
has the scheduling class SCHED_IDLE (sched(7)), so that a launch never waits for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from paribus.core import ParibusError, Point


@dataclass(frozen=True, slots=True)
class Rendered:
    """The report of a study: its title, the HTML of its body, and the CPU seconds it took.

    Where it cannot be made, `error` has the reason, to be shown under `heading`, and `body` is "".
    `line`: the time line of `points`, which are all launches (`lookup.launches`). `colours`: those
    of the arms.
    """

    title: str
    body: str
    cpu_s: float
    error: str = ""
    heading: str = "Not possible"
    points: tuple[Point, ...] = ()
    line: str = ""
    colours: Mapping[str, str] = field(default_factory=dict)


def workers() -> ProcessPoolExecutor:
    """Return the pool in which reports are made: one process, started when it is needed."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_yield_to_all)


def _yield_to_all() -> None:
    """Make this process run only when no other wants its core, as measurements may go on."""
    import signal

    import numpy  # noqa: F401 - loaded before reports are made, and not counted as theirs

    import paribus.judge.conclude
    import paribus.report.html  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it, when it ends itself
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def rendered(path: Path, *, measured: bool, running: bool = False) -> Rendered:
    """Return the report of a study directory (`measured`), or of a stored report, at `path`.

    `running`: the study is running now.
    """
    from paribus.judge.conclude import judged
    from paribus.report import html, lookup, track
    from paribus.report.markup import join
    from paribus.report.stored import read_report

    begun = time.process_time()
    if measured and not (path / "plan.json").exists():
        reason = "The study is made ready, or waits for a scheduler."
        return Rendered(path.name, "", 0.0, reason, heading="Not begun yet")
    try:
        judgement = judged(path) if measured else read_report(path)
        figures = html.Figures()
        body = html.body(judgement, figures, running=running)
    except (ParibusError, OSError) as error:
        return Rendered(path.name, "", time.process_time() - begun, str(error))
    whole = join(body, figures.data())
    line = track.figure(judgement, linked=True)
    took = time.process_time() - begun
    points = tuple(lookup.launches(judgement))
    colours = track.colours(judgement)
    question = judgement.study.question
    return Rendered(question, whole, took, points=points, line=line, colours=colours)


def compared(places: Mapping[Path, str]) -> Rendered:
    """Return studies of one question side by side; `places`: the link of each, by its directory."""
    from paribus.logs import change_page, change_printed
    from paribus.logs.studies import compare_studies

    begun = time.process_time()
    try:
        change = compare_studies(tuple(places))
        names = (one.name for one in change_printed.studies(change))
        body = change_page.body(change, dict(zip(names, places.values(), strict=True)))
    except (ParibusError, OSError) as error:
        return Rendered("", "", time.process_time() - begun, str(error))
    return Rendered(change.first.plan.study.question, body, time.process_time() - begun)
