"""The progress display: nothing between updates, sparse lines in a pipe."""

from __future__ import annotations

import io
import threading
from dataclasses import replace

import pytest
from rich.console import Console

import judgements
from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Launch,
    Progress,
    Reason,
    Verdict,
    Word,
    slowness,
)
from paribus.report import effects
from paribus.report.effects import BAR, Effect, reach
from paribus.report.progress import Display, live_view, plain_line


def bar(head: Finding, *, ascii_only: bool = False) -> str:
    one = Effect(head, slowness(head))
    return effects.bar(one, reach([one]), ascii_only=ascii_only)


def progress(
    judgement: Judgement, blocks: int, elapsed_s: float, *, launch: bool = True
) -> Progress:
    """Return what the study would have reported after `blocks` blocks of every benchmark."""
    labels = [s.label for s in judgement.study.benchmarks]
    arm = judgement.study.arms[-1].name
    return Progress(
        Launch(2 * blocks * len(labels), blocks + 1, labels[0], arm, 7) if launch else None,
        dict.fromkeys(labels, blocks),
        60,
        2 * blocks * len(labels),
        120 * len(labels),
        elapsed_s,
        elapsed_s * 3 if launch else 0.0,
        judgement.headlines if blocks else (),
        1,
    )


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def view(progress: object, width: int = 80, rows: int = 20) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, height=24)
    console.print(live_view(progress, "14:02:33", console, rows))  # type: ignore[arg-type]
    return file.getvalue()


def test_live_view_fits_and_shows_all() -> None:
    text = view(progress(judgements.two_arms(), 12, 61.0))
    assert max(map(len, text.splitlines())) < 80
    for part in (
        "blocks 12 of at most 60, launches 120 of at most 600",
        "1 min 01 s so far, at most 3 min 03 s left",
        "launch 120, block 13, bridged, latency, since 14:02:33",
        "1 launch failed",
        "1.182 [1.169, 1.202]  slower",
    ):
        assert part in text


def early(low: float, high: float, code: Reason, **figures: object) -> Finding:
    """Return an open finding whose interval so far is from `low` to `high`; lower is better."""
    head = judgements.two_arms().headlines[0]
    verdict = Verdict(Word.UNDECIDED, code, final=False, figures=figures)
    ratio = (low * high) ** 0.5
    return replace(head, comparison=Comparison(8, ratio, low, high, 0.97), verdict=verdict)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (early(1.15, 1.25, Reason.BEFORE_NEXT_LOOK, next=12), "so far slower"),
        (early(0.80, 0.90, Reason.BEFORE_NEXT_LOOK, next=12), "so far faster"),
        (early(0.999, 1.001, Reason.BEFORE_NEXT_LOOK, next=12), "so far equivalent"),
        (early(0.90, 1.10, Reason.BEFORE_NEXT_LOOK, next=12), "measuring"),
        (early(1.03, 2.00, Reason.SIZE_UNCERTAIN), "so far slower, size uncertain"),
    ],
)
def test_an_open_benchmark_says_what_is_known_and_when_it_may_be_decided(
    head: Finding, said: str
) -> None:
    """An interval beyond the margin before its look was called undecided, without a reason."""
    now = replace(
        progress(judgements.two_arms(), 8, 61.0),
        headlines=(head,),
        blocks_done={head.benchmark: 8},
        look=12,
    )
    line, shown = plain_line(now), view(now, width=140)
    assert f"{head.benchmark} {head.arm} {said} " in line
    assert "undecided" not in line + shown
    for text in (line, shown):
        assert ", next look after 12 blocks (4 more)" in text
        assert said in text
    assert "look" not in plain_line(replace(now, launch=None)), "at the end no look comes"
    decided = replace(head, verdict=Verdict(Word.SLOWER, Reason.BEYOND_MARGIN, final=True))
    assert "look" not in plain_line(replace(now, headlines=(decided,)))
    assert "look" not in plain_line(
        replace(now, look=0, headlines=(early(0.9, 1.1, Reason.AT_MARGIN),))
    )


def test_live_view_in_a_small_window() -> None:
    text = view(progress(judgements.two_arms(), 12, 61.0), width=40, rows=2)
    assert max(map(len, text.splitlines())) < 40
    assert "3 more" in text


def test_terminal_draws_only_in_update() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=24)
    before = threading.active_count()
    with Display(console) as display:
        display.update(progress(judgements.two_arms(), 8, 40.0))
        drawn = file.tell()
        text = file.getvalue()
        assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"), "the cursor stays visible"
        assert drawn > 0
        assert threading.active_count() == before
        display.update(progress(judgements.two_arms(), 9, 45.0))
        assert file.tell() > drawn


def test_pipe_gets_a_line_per_news() -> None:
    file, clock = io.StringIO(), Clock()
    two, early = judgements.two_arms(), judgements.incomplete()
    with Display(Console(file=file, width=80), clock=clock) as display:
        for block in range(8):
            clock.now = float(block)
            display.update(progress(early, block, clock.now))
        lines = file.getvalue().splitlines()
        assert len(lines) == 2, "the start, and the first headlines"
        display.update(progress(two, 8, 8.0))
        assert len(file.getvalue().splitlines()) == 3, "verdicts changed"
        clock.now = 20.0
        display.update(progress(two, 9, 20.0))
        assert len(file.getvalue().splitlines()) == 3
        clock.now = 40.0
        display.update(progress(two, 10, 40.0))
        assert len(file.getvalue().splitlines()) == 4, "30 s are over"
        display.update(progress(two, 12, 50.0, launch=False))
    assert file.getvalue().splitlines()[-1].startswith("blocks 12 of at most 60")
    assert "50 s, done" in file.getvalue()
    assert "\x1b" not in file.getvalue()


def test_hostile_names_stay_text() -> None:
    text = view(progress(judgements.hostile(), 8, 40.0))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_update_outside_of_with_is_refused() -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        Display(Console(file=io.StringIO())).update(progress(judgements.two_arms(), 1, 1.0))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("ratio", [1e-6, 0.5, 0.98, 1.0, 1.02, 3.0, 1e9])
def test_bar_always_fits(ratio: float, ascii_only: bool) -> None:
    head = judgements.two_arms().headlines[0]
    for half in (1e-9, 0.01, 0.9):
        comparison = Comparison(8, ratio, ratio * (1 - half), ratio * (1 + half), 0.987)
        drawn = bar(replace(head, comparison=comparison), ascii_only=ascii_only)
        assert len(drawn) == BAR
        assert ("o" if ascii_only else "●") in drawn
        assert drawn.isascii() is ascii_only


def test_bar_narrows() -> None:
    head = judgements.two_arms().headlines[4]
    wide = replace(head, comparison=Comparison(8, 1.002, 0.985, 1.02, 0.987))
    assert bar(wide).count("━") > bar(head).count("━") > 0
    unknown = replace(head, comparison=Comparison(3, 1.002, 0.0, float("inf"), 0.987))
    assert "●" not in bar(unknown)


def test_a_study_without_an_end_has_no_most() -> None:
    watching = replace(progress(judgements.monitor(), 30, 60.0), blocks_most=10_000, left_s=None)
    said = plain_line(watching)
    assert "blocks 30, launches 120; 1 min 00 s so far; 1 launch failed" in said
    assert "at most" not in said
