"""Check 12: stored studies in which launches fail, judged and printed like any other."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from paribus.core import (
    Arm,
    Case,
    Judgement,
    Launch,
    Outcome,
    Sample,
    Selection,
    Settings,
    State,
    Study,
    Word,
)
from paribus.judge.conclude import conclude
from paribus.plan import frozen as plans
from paribus.report.terminal import print_report
from paribus.store import Store
from validation.awkward import failures_called_different
from validation.figures import Check, Figure

TRIED = 20
"""Blocks of the constructed studies."""

Fate = Callable[[int, str], State]
"""What becomes of the launch of a block (from 1) in an arm."""


def failing(state: State, **blocks: Collection[int]) -> Fate:
    """Return the fate by which the launches of an arm end in `state` in its `blocks`."""
    return lambda block, arm: state if block in blocks.get(arm, ()) else State.OK


def constructed(fate: Fate, ratio: float) -> tuple[Judgement, str]:
    """Return judgement and printed report of a stored study whose arm b takes `ratio` times a's."""
    selection = Selection("latency", "latency", 2, {"bytes": [8]}, 60.0)
    study = Study(
        "Who fails?",
        "nothing",
        (Arm("a"), Arm("b")),
        (selection,),
        Settings(margin=0.02, blocks=TRIED, seed=12),
    )
    noise = random.Random(12)
    frozen = plans.freeze(study, {})
    with tempfile.TemporaryDirectory(prefix="paribus-validate-") as folder:
        directory = Path(folder)
        plans.write_plan(frozen, directory)
        with Store(directory, write=True) as store:
            for launch in plans.plan(frozen.study):
                store.append(launch, _outcome(launch, fate, ratio, noise))
        with Store(directory) as store:
            judgement = conclude(frozen, store)
    return judgement, _printed(judgement)


def _outcome(launch: Launch, fate: Fate, ratio: float, noise: random.Random) -> Outcome:
    state = fate(launch.block, launch.arm)
    typical = 5.0 * (ratio if launch.arm == "b" else 1.0) * noise.lognormvariate(0, 0.005)
    values = tuple(typical * noise.lognormvariate(0, 0.01) for _ in range(20))
    samples = (Sample("latency", Case.of(bytes=8), values),) if state is State.OK else ()
    error = "" if state is State.OK else "constructed to fail"
    began = float(launch.number)
    return Outcome(state, began, 1.0, 0, ("constructed",), samples, {}, error)


def _printed(judgement: Judgement) -> str:
    from rich.console import Console

    file = io.StringIO()
    print_report(judgement, Console(file=file, width=200, no_color=True))
    return file.getvalue()


CONSTRUCTED: tuple[tuple[str, Fate, float], ...] = (
    ("3 of 20 fail", failing(State.FAILED, b=(2, 9, 15)), 1.05),
    ("6 of 20 time out", failing(State.TIMEOUT, b=range(1, 7)), 0.70),
    ("4 of 20 are invalid", failing(State.INVALID, b=(1, 5, 9, 13)), 1.0),
    ("reference fails in 6", failing(State.FAILED, a=range(3, 9)), 1.05),
    ("both fail in 4", failing(State.FAILED, a=(1, 2, 3, 4), b=(7, 8, 9, 10)), 1.05),
    ("all time out", failing(State.TIMEOUT, b=range(1, TRIED + 1)), 1.0),
    ("all fail", failing(State.FAILED, b=range(1, TRIED + 1)), 1.0),
)
PLAIN = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def failures(studies: int) -> Check:
    """Check 12: an arm that fails is not called faster, slower or equivalent."""
    plain, silent = 0, 0
    for _, fate, ratio in CONSTRUCTED:
        judgement, printed = constructed(fate, ratio)
        plain += any(h.verdict.word in PLAIN for h in judgement.headlines)
        silent += not _counts_printed(judgement, printed)
    few, _ = constructed(failing(State.FAILED, a=(3,), b=(11,)), 1.05)
    return Check(
        12,
        "Launches that fail",
        "Stored studies of 20 blocks, judged and printed like any other: "
        f"{', '.join(name for name, _, _ in CONSTRUCTED)}; and, as a control, one failure in each "
        f"arm and an effect of 5 %. {studies:,} studies of arms that fail equally often.",
        (
            Figure(f"of {len(CONSTRUCTED)}: faster, slower or equivalent", {"": plain}, "=", 0, ""),
            Figure("reports without the counts", {"": silent}, "=", 0, ""),
            Figure(
                "control that says slower",
                {"": sum(h.verdict.word is Word.SLOWER for h in few.headlines)},
                "=",
                1,
                "",
            ),
            Figure(
                "equally flaky arms called different",
                {
                    f"in {p * 100:.0f} %": failures_called_different(p, studies)
                    for p in (0.02, 0.05, 0.10)
                },
                "<=",
                0.05,
            ),
        ),
    )


def _counts_printed(judgement: Judgement, printed: str) -> bool:
    """Return whether the report says, for each arm that failed, how many of its launches did."""
    lines = printed.splitlines()
    for tally in judgement.tallies:
        failed = tally.failed + tally.timed_out + tally.invalid
        about = f"{tally.benchmark}, {tally.arm}: {failed} "
        if failed and not any(about in line for line in lines):
            return False
    return True
