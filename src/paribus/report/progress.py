"""The progress of a study: a live region on a terminal, sparse lines in a pipe.

Nothing is drawn outside `update()`: no thread and no timer disturbs a launch.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from paribus.core import (
    Finding,
    Progress,
    Reason,
    Word,
    format_seconds,
    slowness,
    units,
)
from paribus.report import wording
from paribus.report.effects import Effect, bar, reach
from paribus.report.printing import ascii_only, console_on
from paribus.report.terminal import STYLES
from paribus.report.wording import clean
from paribus.stats.looks import LONGER
from paribus.stats.verdict import judge
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

QUIET_S = 30.0
"""Seconds between two lines in a pipe, unless a verdict changed."""


class Display:
    """Shows `Progress` values as they come. Use as a context manager, left before the report.

    `console` is standard error by default, as standard output is for results. `clock` returns
    elapsed seconds, `now` the time of day.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
    ) -> None:
        self._given = console
        self._console: Console | None = None
        self._clock = clock
        self._now = now
        self._live: Live | None = None
        self._reported_at = -math.inf
        self._reported: dict[tuple[str, str], Word] = {}
        self._reported_failures = 0

    def __enter__(self) -> Display:
        self._console = self._given or console_on(sys.stderr)
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            from rich.live import Live

            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._live.start()
            # Rich hides the cursor, and a study that is killed would leave it hidden.
            self._console.show_cursor(True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        self._console = None

    def update(self, progress: Progress) -> None:
        """Draw `progress` at once (terminal), or print a line when there is news (pipe)."""
        if self._console is None:
            raise RuntimeError("Display is a context manager: use it with `with`")
        if self._live is not None:
            rows = max(3, self._console.height - 6)
            self._live.update(live_view(progress, self._now(), self._console, rows), refresh=True)
        elif self._has_news(progress):
            self._console.print(_plain(plain_line(progress)), soft_wrap=True)
            self._reported_at = self._clock()

    def _has_news(self, progress: Progress) -> bool:
        words = {(h.benchmark, h.arm): h.verdict.word for h in progress.headlines}
        news = (
            words != self._reported
            or progress.launch is None
            or (progress.failures > 0 and self._reported_failures == 0)
            or self._clock() - self._reported_at >= QUIET_S
        )
        self._reported = words
        self._reported_failures = progress.failures
        return news


def plain_line(progress: Progress) -> str:
    """Return `progress` as one line of plain text: where it is, time left, verdicts so far."""
    parts = [_where(progress), _times(progress)]
    if progress.failures:
        parts.append(f"{units.count(progress.failures, 'launch')} failed")
    verdicts = [
        f"{h.benchmark} {h.arm} {so_far(h)} {wording.estimate_text(h)}{_next_look(h, progress)}"
        for h in progress.headlines
        if h.comparison is not None
    ]
    parts += [listed(verdicts, 6)] if verdicts else []
    return clean("; ".join(parts))


def live_view(progress: Progress, now: str, console: Console, most_rows: int) -> RenderableType:
    """Return the live region: what runs, times, and a row for each benchmark and arm.

    If there are more than `most_rows`, decided ones are left out first, and counted at the end.
    """
    from rich.console import Group

    lines = [_plain(_where(progress), "bold"), _plain(_times(progress))]
    if (one := progress.launch) is not None:
        what = f"launch {one.number}, {wording.block_text(one.block)}, {one.arm}, {one.benchmark}"
        lines.append(_plain(f"now: {what}, since {now}", "dim"))
    if progress.failures:
        lines.append(_plain(f"{units.count(progress.failures, 'launch')} failed", "yellow"))
    rows = sorted(progress.headlines, key=lambda h: h.verdict.final)
    shown = [h for h in progress.headlines if h in rows[:most_rows]]
    lines += _rows(progress, shown, ascii_only=ascii_only(console))
    if len(rows) > len(shown):
        lines.append(_plain(f"{len(rows) - len(shown)} more", "dim"))
    for line in lines:
        line.truncate(max(1, console.width - 1), overflow="ellipsis")
        line.no_wrap = True
    return Group(*lines)


def _rows(progress: Progress, shown: list[Finding], *, ascii_only: bool) -> list[Text]:
    several = len({h.arm for h in progress.headlines}) > 1
    names = [clean(f"{h.benchmark} {h.arm}" if several else h.benchmark) for h in shown]
    wide = min(24, max((len(n) for n in names), default=0))
    drawn = [Effect(head, slowness(head)) for head in shown]
    lines, far = [], reach(drawn)
    for name, one in zip(names, drawn, strict=True):
        head = one.finding
        blocks = f"{progress.blocks_done.get(head.benchmark, 0):>2}"
        blocks += "" if progress.blocks_most > LONGER[-1] else f"/{progress.blocks_most}"
        line = _plain(f"{name[:wide]:<{wide}}  {blocks:>6}  ")
        style = "cyan" if head.verdict.final else ""
        line.append(bar(one, far, ascii_only=ascii_only), style)
        if one.times is not None:
            line.append(f"  {one.ratio:>5}")
            line.append(f" {wording.interval_text(one.times)}", "dim")
        style = "dim" if _open(head) else STYLES.get(head.verdict.word, "dim")
        line.append(f"  {so_far(head)}{_next_look(head, progress)}", style)
        lines.append(line)
    return lines


def _open(head: Finding) -> bool:
    return not head.verdict.final and head.verdict.word in (Word.UNDECIDED, Word.NO_DATA)


def so_far(head: Finding) -> str:
    """Return the word of a finding; of one still open, the word that its interval has so far."""
    if not _open(head):
        return head.verdict.word.value
    if head.comparison is None:
        return "measuring"
    now = judge(head.comparison, better=head.metric.better, margin=head.margin, last=True)
    if now.word is Word.UNDECIDED:
        return "measuring"
    uncertain = head.verdict.code is Reason.SIZE_UNCERTAIN
    return f"so far {now.word.value}{', size uncertain' if uncertain else ''}"


def _next_look(head: Finding, progress: Progress) -> str:
    """Return ", next look after 24 blocks (3 more)" of an open finding; "" without a next look."""
    done = progress.blocks_done.get(head.benchmark, 0)
    look = head.verdict.figures.get("next", progress.look)
    if progress.launch is None or not _open(head) or look <= done:
        return ""
    return f", next look after {units.count(look, 'block')} ({look - done} more)"


def _most(progress: Progress, number: int) -> str:
    """Return " of at most N"; "" for a monitored study, which has no end."""
    return "" if progress.blocks_most > LONGER[-1] else f" of at most {number}"


def _where(progress: Progress) -> str:
    done = list(progress.blocks_done.values())
    blocks = f"{min(done)}" if done else "0"
    if done and max(done) != min(done):
        blocks = f"{min(done)} to {max(done)}"
    return (
        f"blocks {blocks}{_most(progress, progress.blocks_most)}, "
        f"launches {progress.launches_done}{_most(progress, progress.launches_most)}"
    )


def _times(progress: Progress) -> str:
    spent = _whole_seconds(progress.elapsed_s)
    if progress.launch is None:
        return f"{spent}, done"
    left = progress.left_s
    return f"{spent} so far" + ("" if left is None else f", at most {_whole_seconds(left)} left")


def _whole_seconds(seconds: float) -> str:
    return format_seconds(round(seconds)) if seconds >= 10 else f"{seconds:.0f} s"


def _plain(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(clean(text), style=style)
