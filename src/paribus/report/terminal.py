"""The report on a terminal, or in a pipe: verdict, table, what was not held equal, what next."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.judgement import Difference, Finding, Judgement, Word
from paribus.report import wording
from paribus.report.wording import clean
from paribus.units import format_change, format_seconds

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    Word.FASTER: "bold cyan",
    Word.SLOWER: "bold yellow",
    Word.EQUIVALENT: "bold",
    Word.RELIABILITY: "bold magenta",
}
"""Styles of supported verdicts; every other verdict is dim. The word itself is always there."""

MOST_DIFFERENCES = 12
LONGEST_ARM = 11
"""Columns that an arm's name may take above its figures; longer ones are named in the title."""

FILES = (
    ("report", "report.html"),
    ("verdict", "verdict.json"),
    ("launches", "launches.db"),
    ("as printed", "logs"),
)


def print_report(judgement: Judgement, console: Console) -> None:
    """Print the report of `judgement` to `console`; 80 columns suffice, and pipes get plain text.

    Order: what needs attention first (verdict, warnings), then the figures, then the rest.
    """
    _line(console, judgement.sentence, style="bold")
    _line(console, _what(judgement), style="dim")
    for warning in judgement.warnings:
        _line(console, f"Warning: {warning}", style="yellow", hang=9)
    for arm in judgement.study.arms[1:]:
        rows = [h for h in judgement.headlines if h.arm == arm.name]
        if rows:
            _print_table(judgement, rows, console)
    if any(h.comparison for h in judgement.headlines):
        _line(
            console,
            "Ratio: arm / reference, launch by launch within each block, so not exactly the "
            "quotient of the two medians shown. Intervals: "
            f"{wording.percent(judgement.study.settings.confidence)} confidence over all looks.",
            style="dim",
        )
    _print_cases(judgement, console)
    _print_failures(judgement, console)
    _print_differences(judgement, console)
    steps = wording.next_steps(judgement)
    if steps:
        _heading(console, "What to do next")
        for step in steps:
            _item(console, step)
    _print_files(judgement, console)


def _what(judgement: Judgement) -> str:
    arms = ", ".join(a.name for a in judgement.study.arms[1:])
    launches, bad = wording.attempted(judgement.tallies)
    took = f" in {format_seconds(judgement.wall_s)}" if judgement.wall_s else ""
    state = "" if judgement.complete else "; unfinished"
    return (
        f"Factor: {judgement.study.factor} ({arms} against the reference {judgement.reference}). "
        f"{wording.count(launches, 'launch')}{took}, {bad} failed{state}."
    )


def _print_table(judgement: Judgement, rows: list[Finding], console: Console) -> None:
    """Print the headlines of one arm; a second line per row says how to read the first."""
    from rich.cells import cell_len
    from rich.text import Text

    reference, arm = clean(judgement.reference), clean(rows[0].arm)
    fits = cell_len(reference) <= LONGEST_ARM and cell_len(arm) <= LONGEST_ARM
    names = (reference, arm) if fits else ("reference", "arm")
    table = [
        ["benchmark", *names, "ratio [interval]", "verdict", "launches"],
        *(_cells(judgement, row) for row in rows),
    ]
    widths = [max(cell_len(line[i]) for line in table) for i in range(6)]
    gap = 2 if sum(widths) + 10 <= console.width else 1
    stacked = sum(widths) + 5 * gap > console.width

    if fits:
        console.print()
    else:
        _heading(console, f"{arm} against the reference {reference}")
    for index, line in enumerate(table):
        style = _style(judgement, rows[index - 1]) if index else "bold"
        text = Text()
        for i, cell in enumerate(line):
            if i == 0 and stacked:
                text.append(f"{cell}\n  ", "bold" if index == 0 else "")
                continue
            pad = " " * (widths[i] - cell_len(cell))
            right = i in (1, 2, 5)
            text.append(pad if right else "")
            text.append(cell, style if index == 0 or i == 4 else "")
            text.append("" if right else pad)
            text.append(" " * gap if i < 5 else "")
        console.print(text, soft_wrap=True)
        if index:
            _item(console, _reading(judgement, rows[index - 1]), style="dim")


def _cells(judgement: Judgement, row: Finding) -> list[str]:
    ratio = "none"
    if row.comparison is not None:
        interval = wording.interval_text(row.comparison)
        ratio = f"{wording.ratio_text(row.comparison.ratio)} {interval}"
    launches, _ = _launches(judgement, row)
    return [
        clean(cell)
        for cell in (
            row.benchmark,
            wording.value_text(row.reference_value, row.metric),
            wording.value_text(row.arm_value, row.metric),
            ratio,
            row.verdict.word.value,
            f"{launches}",
        )
    ]


def _reading(judgement: Judgement, row: Finding) -> str:
    """Return the second line of a row: direction, change, margin, failures."""
    launches, bad = _launches(judgement, row)
    parts = [wording.direction(row.metric)]
    if row.comparison is not None:
        parts.append(format_change(row.comparison.ratio))
    parts.append(f"margin {wording.percent(row.margin)}")
    parts.append(f"{bad} of {launches} launches failed" if bad else "no failures")
    return ", ".join(parts)


def _launches(judgement: Judgement, row: Finding) -> tuple[int, int]:
    return wording.attempted(
        wording.tally_of(judgement, row.benchmark, arm) for arm in (judgement.reference, row.arm)
    )


def _style(judgement: Judgement, row: Finding) -> str:
    return STYLES.get(row.verdict.word, "dim") if wording.supported(judgement, row) else "dim"


def _print_cases(judgement: Judgement, console: Console) -> None:
    heads = [h for h in judgement.headlines if len(wording.case_findings(judgement, h)) > 1]
    if not heads:
        return
    _heading(console, "Cases (the figures above are geometric means over them)")
    several = len(judgement.study.arms) > 2
    for head in heads:
        who = f"{head.benchmark}, {head.arm}" if several else head.benchmark
        _item(console, f"{who}: {wording.cases_sentence(judgement, head)}")


def _print_failures(judgement: Judgement, console: Console) -> None:
    broken = [t for t in judgement.tallies if wording.failures(t)]
    if not broken:
        return
    _heading(console, "Failures")
    for tally in broken:
        kinds = wording.failure_text(tally)
        _item(console, f"{tally.benchmark}, {tally.arm}: {kinds} of {tally.counted}")
        if tally.first_error:
            _item(console, f"first: {tally.first_error}", style="dim")


def _print_differences(judgement: Judgement, console: Console) -> None:
    _heading(console, "Not held equal")
    means = {
        "unexplained": "NOT EXPLAINED by the factor",
        "factor": "the factor",
        "noted": "noted",
    }
    grouped: dict[Difference, list[str]] = {}
    for d in sorted(judgement.differences, key=lambda d: list(means).index(d.kind)):
        alike = Difference(d.key, "", d.reference_value, d.arm_value, d.kind)
        grouped.setdefault(alike, []).append(d.arm)
    several = len(judgement.study.arms) > 2
    for d, arms in list(grouped.items())[:MOST_DIFFERENCES]:
        who = f"; {', '.join(arms)}" if several else ""
        text = f"{d.key}: {d.reference_value} -> {d.arm_value} ({means[d.kind]}{who})"
        _item(console, text, style="bold" if d.kind == "unexplained" else "")
    if len(grouped) > MOST_DIFFERENCES:
        _item(console, f"and {len(grouped) - MOST_DIFFERENCES} more, all in the HTML report")
    _item(console, wording.equal_text(judgement), style="dim")


def _print_files(judgement: Judgement, console: Console) -> None:
    """Print one path per line, never wrapped, so that it can be copied."""
    _heading(console, "Files")
    directory = Path(judgement.directory)
    found = [(what, directory / name) for what, name in FILES if _exists(directory / name)]
    for what, path in found or [("directory", directory)]:
        _raw(console, f"  {what + ':':<12}{clean(str(path))}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _heading(console: Console, text: str) -> None:
    console.print()
    _line(console, text, style="bold")


def _item(console: Console, text: str, style: str = "") -> None:
    _line(console, text, style=style, indent=2, hang=2)


def _line(console: Console, text: str, *, style: str = "", indent: int = 0, hang: int = 0) -> None:
    """Print one paragraph, wrapped between words; a figure stays with its unit, a path whole."""
    glued = re.sub(r"(?<=\d) (?=[A-Za-z%])", "\u00a0", clean(text))
    lines = textwrap.wrap(
        glued,
        max(20, console.width),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    _raw(console, "\n".join(lines).replace("\u00a0", " "), style)


def _raw(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(text, style=style), soft_wrap=True)
