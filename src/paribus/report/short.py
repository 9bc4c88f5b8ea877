"""The short report for a person at a terminal: the answer as a picture, on one screen at most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import exists
from paribus.core import Finding, Judgement, NoticeName, format_ratio, lenses, slowness
from paribus.report import advice, lookup, sentences, unequal, wording
from paribus.report.effects import Effect, bar, effects, reach
from paribus.report.printing import ROOM, Row, ascii_only, heading, line, print_rows, raw
from paribus.report.terminal import LEFT_OUT, STYLES, print_failures
from paribus.report.wording import clean
from paribus.words.study import summary
from paribus.words.values import consequences, notice_said, notice_text, warnings

if TYPE_CHECKING:
    from rich.console import Console

LEAST_BAR, MOST_BAR = 11, 31
LONGEST_NAME = 24
MOST_WARNINGS = 3
STEPS = (2, 2)
"""The most lines of each of the first next steps."""

UNLIKE = 1.5
"""The least and the greatest ratio of a benchmark's cases are shown if their quotient is larger."""

ASCII = {"▲": "^", "▼": "v", "⊘": "/", "–": "-", "…": ".."}
"""The signs of verdicts on a terminal without UTF-8."""


def print_short(judgement: Judgement, console: Console) -> None:
    """Print a sentence, a line for each benchmark and warning, next steps, the report's path."""
    from rich.text import Text

    if lookup.nothing_came(judgement):
        line(console, judgement.sentence, style="bold")
        print_failures(judgement, console)
    else:
        line(console, summary(judgement.sentence, judgement.headlines), style="bold")
        shown = effects(judgement)
        for arm in judgement.study.arms[1:]:
            _print_arm(judgement, [one for one in shown if one.finding.arm == arm.name], console)
        for lens, rows in lenses(judgement):
            lens.short(judgement, rows, console)
    console.print()
    _print_warnings(judgement, console)
    unequal.print_short(judgement, console)
    for step, most in zip(advice.next_steps(judgement), STEPS, strict=False):
        line(console, step, name="Next", hang=6, most=most)
    report = Path(judgement.directory) / "report.html"
    if judgement.directory and exists(report):
        raw(console, Text.assemble(("Report: ", "bold"), clean(str(report))))
    edge = ":" if ascii_only(console) else "┊"
    key = "" if lookup.nothing_came(judgement) else f"{edge} margin; "
    line(console, f"{key}`--full` prints cases, endpoints, audit and files.", style="dim")


def _print_arm(judgement: Judgement, rows: Sequence[Effect], console: Console) -> None:
    """Print the picture of one arm: name, verdict, bar, times as slow, and the two values."""
    from rich.cells import cell_len

    if not rows:
        return
    plain = ascii_only(console)
    arrow = "->" if plain else "→"
    reference, arm = clean(judgement.reference), clean(rows[0].finding.arm)
    whole = (clean(one.finding.benchmark) for one in rows)
    names = [n if len(n) <= LONGEST_NAME else f"{n[: LONGEST_NAME - 3]}..." for n in whole]
    words = [f"{ASCII.get(one.sign, one.sign) if plain else one.sign} {one.word}" for one in rows]
    values = [wording.both(one.finding, arrow) for one in rows]
    head = ("benchmark", "verdict", "times as slow [interval]", f"{reference} {arrow} {arm}")
    columns = (names, words, [one.text for one in rows], values)
    wide = [max(map(cell_len, column)) for column in columns]
    wide[0] = max(wide[0], len(head[0]))
    wide[1] = max(wide[1], len(head[1]))
    wide[2] = max(wide[2], len("times as slow"))
    # Both values are shown if they fit, with gaps of 2 or 1; otherwise the bar is longer.
    rooms = [(console.width - sum(w + gap for w in wide), gap) for gap in (2, 1)]
    room, gap = next((one for one in rooms if one[0] >= LEAST_BAR), (0, 2))
    shown = room > 0 and any(values)
    room = room if shown else console.width - sum(w + gap for w in wide[:3])
    bars = (max(LEAST_BAR, min(MOST_BAR, room)) - 1) | 1
    if len(judgement.study.arms) > 2:
        heading(console, f"{arm} against {reference}")
    else:
        console.print()
    ways = ("faster", "slower") if bars > LEAST_BAR else ("fast", "slow")
    title = f"{ways[0]:<{bars // 2}}{ways[1]:>{bars - bars // 2}}"
    cells = [head[0], head[1], title, head[2] if wide[2] >= len(head[2]) else "times as slow"]
    far = reach(rows)
    lines = []
    for name, word, one, value in zip(names, words, rows, values, strict=True):
        drawn = bar(one, far, bars, ascii_only=plain)
        style = STYLES.get(one.finding.verdict.word, "dim")
        lines.append(Row([name, word, drawn, one.text] + [value] * shown, style))
    print_rows(console, cells + [head[3]] * shown, lines, right=(), coloured=(1, 2))
    if "ranges" not in judgement.lenses:  # the lens says more, from 12 blocks on
        texts = filter(None, (_unlike_cases(judgement, one.finding) for one in rows))
        for text in islice(texts, max(0, ROOM - len(judgement.headlines))):
            line(console, text, style="dim", most=1)


def _unlike_cases(judgement: Judgement, headline: Finding) -> str:
    """Return the least and the greatest ratio of a headline's cases, "" if they are not far apart.

    Their intervals must not overlap, as among many cases some are far apart by chance.
    """
    known = [
        (times, wording.case_text(one))
        for one in lookup.case_findings(judgement, headline)
        if (times := slowness(one)) and wording.has_interval(times)
    ]
    if not known:
        return ""
    ends = [pick(known, key=lambda one: one[0].ratio) for pick in (min, max)]
    least, most = (times for times, _ in ends)
    if most.ratio < UNLIKE * least.ratio or most.low <= least.high:
        return ""
    span = " to ".join(f"{format_ratio(times.ratio)}x ({case})" for times, case in ends)
    return f"{clean(headline.benchmark)}: {span}"


def _print_warnings(judgement: Judgement, console: Console) -> None:
    """Print a line for each warning, and for each note on data that were left out."""
    if quiet := sentences.nothing_disturbed(judgement):
        line(console, f"{quiet}.", style="dim")
    grave = warnings(judgement)
    notes = [n for n in judgement.notices if n.level == "note" and n.name in LEFT_OUT]
    for notice in (*grave, *notes)[:MOST_WARNINGS]:
        style = "yellow" if notice.level == "warning" else ""
        does = consequences(notice)
        name = f"{notice.name} ({does})" if does else notice.name
        # A line that is too long is cut at its end.
        text_of = notice_said if notice.name is NoticeName.BUDGET_USED else notice_text
        line(console, text_of(notice), style=style, name=name, most=1)
    if rest := (*grave, *notes)[MOST_WARNINGS:]:
        does = consequences(*rest)
        line(console, f"{len(rest)} more{f' ({does})' if does else ''}", style="dim")
