"""The full report as text for a terminal or a pipe: verdict, tables, audit, next steps, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import exists
from paribus.core import Finding, Judgement, NoticeName, Part, Word, grouped, lenses, units
from paribus.designs import design_of
from paribus.report import lookup, sentences, unequal, wording
from paribus.report.advice import next_steps, why_withheld
from paribus.report.printing import Row, heading, item, line, print_rows, raw
from paribus.report.ranking import Ranking, place_text, ranking
from paribus.report.wording import clean
from paribus.words.values import notice_said, notice_text

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    Word.FASTER: "bold cyan",
    Word.SLOWER: "bold yellow",
    Word.EQUIVALENT: "bold",
    Word.RELIABILITY: "bold magenta",
}
"""Styles of verdicts that claim something; the others are dim. The verdict is always printed."""

LEFT_OUT = frozenset(
    (
        *(NoticeName.COLUMNS_IGNORED, NoticeName.NOT_READ, NoticeName.BLOCKS_LEFT_OUT),
        *(NoticeName.LAUNCHES_LEFT_OUT, NoticeName.ITERATIONS_DIFFER),
    )
)
"""Notes on data that were left out, without which figures mislead: in the short report too."""

MOST_NOTES = 8
LONGEST_ARM = 11
"""The widest name of an arm, in columns, that stands above its figures; others are in the title."""

FILES = (
    ("report", "report.html"),
    ("verdict", "verdict.json"),
    ("values", "values.csv"),
    ("launches", "launches.db"),
    ("outputs", "logs"),
)


def print_report(judgement: Judgement, console: Console, *, brief: bool = False) -> None:
    """Print the report of `judgement` to `console`; 80 columns suffice, and pipes get plain text.

    What needs attention comes first (verdict, warnings), then the figures, then the rest. If no
    launch gave usable output, it says why, and what to do. The verdict is also the last line, which
    a terminal shows. With `brief`: verdict, warnings, notes on data left out, differences of logs
    or tables, reasons of withheld verdicts, and the table of verdicts (or of failures).
    """
    line(console, judgement.sentence, style="bold")
    failed = lookup.nothing_came(judgement)
    if brief:
        _print_warnings(judgement, console)
        for note in judgement.notices:
            if note.level == "note" and note.name in LEFT_OUT:
                line(console, notice_text(note), hang=9, name=note.name)
        unequal.print_short(judgement, console)
        for reason in why_withheld(judgement):
            line(console, clean(reason), hang=9)
        if failed:
            print_failures(judgement, console)
        else:
            _print_verdicts(judgement, console)
        return
    line(console, _what(judgement), style="dim")
    if failed:
        _print_warnings(judgement, console)
        print_failures(judgement, console)
        _print_notes(judgement, console)
    else:
        _print_figures(judgement, console)
    if steps := next_steps(judgement):
        heading(console, "What to do next")
        for step in steps:
            item(console, step)
    _print_files(judgement, console)
    console.print()
    line(console, judgement.sentence, style="bold")


def _print_figures(judgement: Judgement, console: Console) -> None:
    """Print the sections on figures, if any launch gave some."""
    if judgement.design:
        line(console, judgement.design, style="dim")
    if transport := sentences.transport_text(judgement):
        line(console, f"Transport between ranks: {transport}.", style="dim")
    _print_warnings(judgement, console)
    if unequal.unexplained(judgement):
        unequal.print_section(judgement, console)
    _print_verdicts(judgement, console)
    if any(h.comparison for h in judgement.headlines):
        line(console, sentences.ratio_note(judgement), style="dim")
    several = len(judgement.study.arms) > 2
    if layers := [(f"{f.benchmark}{f', {f.arm}' * several}", f) for f in judgement.layers]:
        heading(console, "Layers (means over their benchmarks)")
        _print_beside("layer", (), layers, console)
    _print_lenses(judgement, console, "verdicts")
    _print_lenses(judgement, console, "ratios")
    if ranked := [r for b in lookup.benchmarks(judgement) if (r := ranking(judgement, b))]:
        heading(console, "Ranking (a range of places: the data do not support a narrower one)")
    for one in ranked:
        _print_ranking(one, console)
    _print_cases(judgement, console)
    _print_lenses(judgement, console, "cases")
    _print_endpoints(judgement, console)
    _print_lenses(judgement, console, "endpoints")
    _print_notes(judgement, console)
    print_failures(judgement, console)
    if not unequal.unexplained(judgement):
        unequal.print_section(judgement, console)


def _print_lenses(judgement: Judgement, console: Console, after: Part) -> None:
    """Print the sections of the lenses that follow a part of the report."""
    for one, rows in lenses(judgement):
        if one.text_after == after:
            one.text(judgement, rows, console)


def _print_warnings(judgement: Judgement, console: Console) -> None:
    for notice in judgement.notices:
        if notice.level == "warning":
            line(
                console, notice_said(notice), style="yellow", hang=9, name=f"Warning, {notice.name}"
            )


def _what(judgement: Judgement) -> str:
    arms = ", ".join(a.name for a in judgement.study.arms[1:])
    against = f"{arms} against the reference {judgement.reference}" if arms else "one arm"
    state = design_of(judgement.study).state(complete=judgement.complete)
    return (
        f"Factor: {judgement.study.factor} ({against}). "
        f"{'' if lookup.measured(judgement) else 'Measured '}"
        f"{sentences.launches_text(judgement)}{f'; {state}' if state else ''}."
    )


def _print_verdicts(judgement: Judgement, console: Console) -> None:
    for arm in judgement.study.arms[1:]:
        rows = [row for row in lookup.rows(judgement) if row.arm == arm.name]
        if rows:
            _print_table(judgement, rows, console)


def _print_table(judgement: Judgement, rows: Sequence[Finding], console: Console) -> None:
    """Print the headlines of one arm; a second line of each row has direction, margin, failures."""
    names = _arm_heads(judgement.reference, rows[0].arm)
    if "reference" in names:
        heading(console, f"{clean(rows[0].arm)} against the reference {clean(judgement.reference)}")
    else:
        console.print()
    lines = [
        Row(
            [
                row.benchmark if row.decides else f"  {row.metric.name}",
                *_figures(row),
                row.verdict.word.value,
                str(lookup.units_of(judgement, row)),
            ],
            _style(row),
            _reading(judgement, row),
        )
        for row in rows
    ]
    noun = units.plural(lookup.unit(judgement))
    head = ["benchmark", *names, "times as slow", "verdict", noun]
    print_rows(console, head, lines, right=(1, 2, 5), coloured=(4,))


def _arm_heads(reference: str, arm: str) -> tuple[str, str]:
    """Return the heads of the values of two arms: their names, if these fit."""
    from rich.cells import cell_len

    names = clean(reference), clean(arm)
    return names if all(cell_len(n) <= LONGEST_ARM for n in names) else ("reference", "arm")


def _figures(row: Finding) -> list[str]:
    return [
        wording.value_text(row.reference_value, row.metric),
        wording.value_text(row.arm_value, row.metric),
        wording.estimate_text(row),
    ]


def _reading(judgement: Judgement, row: Finding) -> str:
    """Return the second line of a row: direction, margin, failures, what decided."""
    if not row.decides:
        return wording.direction(row.metric)
    found = lookup.total_of(judgement, row)
    decides = lookup.decided_by(judgement, row.benchmark)
    beside = any(f.benchmark == row.benchmark for f in judgement.others)
    parts = [
        row.metric.name if beside else "",
        wording.direction(row.metric),
        f"margin {units.percent(row.margin)}",
        f"decided by the {decides}" if decides else "",
        f"on {blocks}" if (blocks := sentences.rests_on(judgement, row)) else "",
        "so far" if wording.provisional(row.verdict) else "",
    ]
    if found.launches and lookup.measured(judgement):
        parts.append(found.text if found.failures else "no failures")
    return ", ".join(p for p in parts if p)


def _style(row: Finding) -> str:
    return STYLES.get(row.verdict.word, "dim")


def _print_beside(
    what: str,
    arms: Sequence[str],
    rows: Sequence[tuple[str, Finding | None]],
    console: Console,
) -> None:
    """Print a table of findings other than headlines; a name without one is a title of the next.

    If two `arms` are named, their values have columns.
    """
    lines = [
        Row([name])
        if f is None
        else Row(
            [name, *_figures(f)[0 if arms else 2 :], f.verdict.word.value, units.percent(f.margin)],
            _style(f),
        )
        for name, f in rows
    ]
    head = [what, *arms, "times as slow", "verdict", "margin"]
    last = len(head) - 1
    right = (1, 2, last) if arms else (last,)
    print_rows(console, head, lines, right=right, coloured=(last - 1,), indent=2)


def _print_ranking(ranked: Ranking, console: Console) -> None:
    metric = ranked.pairs[0].metric
    item(console, f"{ranked.benchmark}, {wording.direction(metric)}", style="bold")
    rows = [
        Row(
            [
                place_text(place),
                place.arm,
                wording.value_text(place.value, metric),
                wording.estimate_text(place.above) if place.above else "",
                place.above.verdict.word.value if place.above else "",
            ],
            _style(place.above) if place.above else "",
        )
        for place in ranked.places
    ]
    head = ["place", "arm", "value", "against the line above", ""]
    print_rows(console, head, rows, right=(2,), coloured=(4,), indent=4)


def _print_cases(judgement: Judgement, console: Console) -> None:
    heads = [h for h in judgement.headlines if len(lookup.case_findings(judgement, h)) > 1]
    if not heads:
        return
    heading(console, "Cases (the figures above are their geometric means)")
    several = len(judgement.study.arms) > 2
    for head in heads:
        who = f"{head.benchmark}, {head.arm}" if several else head.benchmark
        item(console, f"{who}: {sentences.cases_sentence(judgement, head)}")
        if ratios := sentences.ratios_by_case(judgement, head):
            item(console, ratios, style="dim", indent=4)
    note = sentences.cases_note(judgement, judgement.cases)
    if note:
        item(console, note, style="dim")


def _print_endpoints(judgement: Judgement, console: Console) -> None:
    if not judgement.endpoints:
        return
    heading(console, "Other endpoints (they do not decide)")
    groups = grouped(((f.benchmark, f.arm), f) for f in judgement.endpoints)
    several = len(judgement.study.arms) > 2
    rows = list[tuple[str, Finding | None]]()
    for (benchmark, arm), found in groups.items():
        rows.append((f"{benchmark}, {arm}" if several else benchmark, None))
        rows += [(f"  {f.metric.endpoint}", f) for f in found]
    reference, *others = (a.name for a in judgement.study.arms)
    names = ("reference", "arm") if several else _arm_heads(reference, others[0])
    _print_beside("endpoint", names, rows, console)
    item(console, sentences.endpoints_note(judgement.endpoints), style="dim")


def _print_notes(judgement: Judgement, console: Console) -> None:
    notes = [n for n in judgement.notices if n.level == "note"]
    if not notes:
        return
    heading(console, "About the data")
    for note in notes[:MOST_NOTES]:
        line(console, notice_text(note), indent=2, hang=2, name=note.name)
    if len(notes) > MOST_NOTES:
        item(console, f"{len(notes) - MOST_NOTES} more in the HTML report", style="dim")


def print_failures(judgement: Judgement, console: Console) -> None:
    """Print how many launches failed of each benchmark and arm, and the first error."""
    broken = [t for t in judgement.tallies if t.failures or t.warm_up_failed]
    if not broken:
        return
    heading(console, "Failures")
    for tally in broken:
        item(console, f"{tally.benchmark}, {tally.arm}: {sentences.failure_text(tally)}")
        if tally.first_error:
            item(console, f"first: {tally.first_error}", style="dim")


def _print_files(judgement: Judgement, console: Console) -> None:
    """Print one path per line, never wrapped, so that it can be copied."""
    if not judgement.directory:
        return
    heading(console, "Files")
    directory = Path(judgement.directory)
    found = [(what, directory / name) for what, name in FILES if exists(directory / name)]
    for what, path in found or [("directory", directory)]:
        raw(console, f"  {what + ':':<12}{clean(str(path))}")
