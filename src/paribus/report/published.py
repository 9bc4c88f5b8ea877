"""Published figures beside one's own, on a terminal, in HTML and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from paribus.judgement import Judgement, Published
from paribus.report import wording
from paribus.report.markup import Html, element, escape, table
from paribus.report.printing import heading, item

if TYPE_CHECKING:
    from rich.console import Console

TITLE = "Published figures"
CAUTION = (
    "Published figures have no interval: their run-to-run scatter is unknown, and so are other"
    " differences between the platforms. No verdict in this report depends on them."
)
MOST_ROWS = 30


def print_published(judgement: Judgement, console: Console) -> None:
    """Print the published figures that have something here to stand beside; else all of them."""
    rows = _shown(judgement)
    if not rows:
        return
    heading(console, TITLE)
    source = ""
    for row in rows[:MOST_ROWS]:
        if row.source != source:
            item(console, row.source, style="bold")
            source = row.source
        own = f"; here: {here(row)}" if row.finding else ""
        item(console, f"{what(row)}: published: {row.said}{own}", indent=4)
    if len(rows) > MOST_ROWS:
        item(console, f"{len(rows) - MOST_ROWS} more in the HTML report", style="dim")
    if others := _not_here(judgement):
        item(console, f"Not measured here: {others}.", style="dim")
    item(console, CAUTION, style="dim")


def section(judgement: Judgement) -> Html:
    """Return the section of the HTML report, empty where nothing was laid beside."""
    rows = _shown(judgement)
    if not rows:
        return Html("")
    others = _not_here(judgement)
    return element(
        "section",
        element("h2", escape(TITLE)),
        element("p", escape(CAUTION)),
        *(_of_source(source, list(found)) for source, found in groupby(rows, lambda r: r.source)),
        element("p", escape(f"Not measured here: {others}."), kind="small") if others else Html(""),
        aria_label=TITLE,
    )


def _of_source(source: str, rows: Sequence[Published]) -> Html:
    """Return the table of the figures of one source; a note stands at the first that it is of."""
    cells = [
        [
            escape(what(row)),
            escape(row.said),
            escape(here(row)),
            escape(row.finding.verdict.word.value if row.finding else ""),
            escape("" if before and before.note == row.note else row.note),
        ]
        for before, row in zip((None, *rows), rows, strict=False)
    ]
    head = ["Figure", "Published", "Here", "Verdict here", "Note"]
    return table(head, cells, source, left=(0, 1, 2, 3, 4))


def to_json(row: Published) -> dict[str, object]:
    """Return a published figure as JSON values, what was measured here as text."""
    return {
        "source": row.source,
        "benchmark": row.benchmark,
        "what": row.what,
        "arm": row.arm,
        "reference": row.reference,
        "published": row.said,
        "scale": row.scale,
        "note": row.note,
        "here": None if row.finding is None else here(row),
        "here_arm": None if row.finding is None else row.finding.arm,
        "here_benchmark": None if row.finding is None else row.finding.benchmark,
    }


def what(row: Published) -> str:
    """Return what a figure is of: "vasp, an iron model, speed of roce against infiniband"."""
    subject = f"{row.benchmark}, {row.what}" if row.what else row.benchmark
    if not row.reference:
        return f"{subject}, {row.arm}"
    scale = "" if row.scale == "value" else f"{row.scale} of "
    return f"{subject}, {scale}{row.arm} against {row.reference}"


def here(row: Published) -> str:
    """Return one's own figure on the scale of the published one: "+12.1 % [11.0, 13.2]"."""
    found = row.finding
    if found is None:
        return "not measured"
    values = " -> ".join(
        wording.value_text(spread, found.metric)
        for spread in (found.reference_value, found.arm_value)
    )
    comparison = found.comparison
    if comparison is None or not row.reference:
        return values
    ratios = [comparison.ratio, comparison.low, comparison.high]
    inverse = {"value": False, "speed": found.metric.better == "lower"}
    if row.turned != inverse.get(row.scale, found.metric.better == "higher"):
        low, high = ratios[1:]
        ratios = [1 / ratios[0], 1 / high if high else math.inf, 1 / low if low else math.inf]
    # The sum makes a zero of what is rounded to -0.0.
    change, low, high = (round((ratio - 1) * 100, 1) + 0.0 for ratio in ratios)
    interval = f"[{low:.1f}, {high:.1f}]" if low > -100 and math.isfinite(high) else "[no interval]"
    return f"{change:{'+' if change else ''}.1f} % {interval}"


def _shown(judgement: Judgement) -> list[Published]:
    found = [row for row in judgement.published if row.finding is not None]
    return found or list(judgement.published)


def _not_here(judgement: Judgement) -> str:
    """Return the benchmarks with published figures and none of one's own, if some have both."""
    mine = {row.benchmark for row in judgement.published if row.finding is not None}
    others = dict.fromkeys(row.benchmark for row in judgement.published)
    return wording.listing([name for name in others if name not in mine], 8) if mine else ""
