"""The table of published figures beside one's own: on a terminal, in HTML and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from paribus.core import Finding, Judgement, Lens
from paribus.lenses.published.reading import Published
from paribus.report import stored, wording
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, table
from paribus.report.printing import heading, item
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

Rows = tuple[Published, ...]

TITLE = "Published figures"
CAUTION = (
    "Published figures have no interval: their run-to-run scatter is unknown, and so are other"
    " differences between the platforms. No verdict in this report depends on them."
)
MOST_ROWS = 30


def print_published(judgement: Judgement, published: Rows, console: Console) -> None:
    """Print the rows of published figures by source, as `_shown` selects them."""
    rows, others = _shown(judgement, published)
    if not rows:
        return
    heading(console, TITLE)
    for source, found in groupby(rows[:MOST_ROWS], lambda row: row.source):
        item(console, source, style="bold")
        for row in found:
            own = f"; here: {here(row)}" if judgement.study.benchmarks else ""
            item(console, f"{what(row)}: published: {row.said}{own}", indent=4)
    if len(rows) > MOST_ROWS:
        item(console, f"{len(rows) - MOST_ROWS} more in the HTML report", style="dim")
    for text in (others, CAUTION) if others else (CAUTION,):
        item(console, text, style="dim")


def section(judgement: Judgement, published: Rows, figures: Figures) -> Html:
    """Return the section of the HTML report, empty without published figures."""
    rows, others = _shown(judgement, published)
    if not rows:
        return Html("")
    parts = [element("h2", escape(TITLE)), element("p", escape(CAUTION))]
    head = ["Figure", "Published", "Here", "Verdict here", "Note"]
    for source, found in groupby(rows, lambda row: row.source):
        cells, note = [], ""
        for row in found:
            verdict = row.finding.verdict.word.value if row.finding else ""
            new_note = "" if row.note == note else row.note  # once, for all rows that share it
            texts = (what(row), row.said, here(row), verdict, new_note)
            cells.append([escape(text) for text in texts])
            note = row.note
        parts.append(table(head, cells, source, left=range(len(head))))
    if others:
        parts.append(element("p", escape(others), kind="small"))
    return element("section", *parts, aria_label=TITLE)


def _to_json(row: Published) -> dict[str, object]:
    """Return a published figure as JSON values, what was measured here as text."""
    found = row.finding
    return {
        "source": row.source,
        "benchmark": row.benchmark,
        "what": row.what,
        "arm": row.arm,
        "reference": row.reference,
        "published": row.said,
        "scale": row.scale,
        "note": row.note,
        "here": here(row) if found else None,
        "here_arm": found.arm if found else None,
        "here_benchmark": found.benchmark if found else None,
    }


def what(row: Published) -> str:
    """Return the subject of a figure: "vasp, an iron model, speed of roce against infiniband"."""
    subject = f"{row.benchmark}, {row.what}" if row.what else row.benchmark
    scale = "" if row.scale == "value" else f"{row.scale} of "
    return f"{subject}, {scale}{row.arm}{f' against {row.reference}' if row.reference else ''}"


def here(row: Published) -> str:
    """Return one's own figure on the scale of the published one: "+12.1 % [11.0, 13.2]"."""
    found = row.finding
    if found is None or not found.verdict.size_known:
        return "not measured here" if found is None else wording.SIZE_WITHHELD
    if found.comparison is None or not row.reference:
        spreads = (found.reference_value, found.arm_value)
        return " -> ".join(wording.value_text(spread, found.metric) for spread in spreads)
    ratios = [found.comparison.ratio, found.comparison.low, found.comparison.high]
    inverse = {"value": False, "speed": found.metric.better == "lower"}
    if row.turned != inverse.get(row.scale, found.metric.better == "higher"):
        low, high = ratios[1:]
        ratios = [1 / ratios[0], 1 / high if high else math.inf, 1 / low if low else math.inf]
    change, low, high = (round((ratio - 1) * 100, 1) + 0.0 for ratio in ratios)  # not -0.0
    interval = f"[{low:.1f}, {high:.1f}]" if low > -100 and math.isfinite(high) else "[no interval]"
    return f"{change:{'+' if change else ''}.1f} % {interval}"


def _shown(judgement: Judgement, rows: Rows) -> tuple[list[Published], str]:
    """Return the rows to show, and a sentence on the benchmarks that were not measured here, or "".

    Shown are the rows beside a finding, and those of measured benchmarks whose arms match none:
    cases that were not measured are left out where others of the same arms were. All rows are
    shown if that leaves none.
    """
    mine = {selection.benchmark for selection in judgement.study.benchmarks}
    found = {(r.benchmark, r.arm, r.reference) for r in rows if r.finding is not None}
    shown = [
        r
        for r in rows
        if r.finding or (r.benchmark in mine and (r.benchmark, r.arm, r.reference) not in found)
    ]
    names = [name for name in dict.fromkeys(r.benchmark for r in rows) if name not in mine]
    if not shown:
        return list(rows), ""
    return shown, f"Not measured here: {listed(names, 8)}." if names else ""


def _from_json(table: Mapping[str, Any], findings: Sequence[Finding]) -> Published:
    """Return a published figure beside the finding whose text is the one that was stored."""
    made = {f.name: table[f.name] for f in fields(Published) if f.name in table}
    row: Published = stored.read_as(Published, {**made, "said": table["published"]})
    beside = [
        replace(row, finding=f, turned=turned)
        for f in findings
        if (f.arm, f.benchmark) == (table["here_arm"], table["here_benchmark"])
        for turned in (False, True)
    ]
    return next((one for one in beside if here(one) == table["here"]), row)


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    own = (*judgement.headlines, *judgement.cases)
    return tuple(_from_json(one, own) for one in table["published"]) or None


LENS = Lens(
    judge=lambda seen: None,  # nobody published anything of these launches: see `beside`
    to_json=lambda judgement, rows: {"published": [_to_json(row) for row in rows]},
    from_json=from_json,
    text=print_published,
    html=section,
    text_after="endpoints",
    html_after="rankings",
)
