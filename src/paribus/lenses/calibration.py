"""What a study could see on these nodes: its reference against itself (`paribus calibrate`).

From the launches of equal arms come differences where there are none, or else, for each benchmark,
the least differences that 8, 18 and 60 blocks can show beside the margin, and how long they take.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core import (
    Arm,
    Case,
    Finding,
    Judgement,
    Lens,
    NoticeName,
    Open,
    Seen,
    Selection,
    State,
    Study,
    UserError,
    count,
    decimals_beyond,
    format_bytes,
    format_seconds,
    percent,
)
from paribus.designs.calibrate import arms_of
from paribus.judge.cases import counted
from paribus.judge.evidence import Cell, Evidence, looks_at
from paribus.judge.headlines import cell_margin, log_ratios, margin_of, pooled_ratios
from paribus.lenses.profiles.kinds import LARGE, SMALL
from paribus.plan import read_plan
from paribus.report.export import plain
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, table
from paribus.report.printing import Row, heading, item, line, print_rows
from paribus.report.rows import list_section
from paribus.report.stored import NAME as VERDICT
from paribus.report.stored import read_as, read_report
from paribus.stats.band import band
from paribus.stats.forecast import cost, duration
from paribus.stats.looks import LOOKS, schedule
from paribus.stats.verdict import least_difference

if TYPE_CHECKING:
    from rich.console import Console

BLOCKS = (8, 18, 60)
"""Numbers of blocks for which the least difference is given, beside that of the study."""

ERROR = 0.05
"""The chance that any difference is found where there is none, over all benchmarks and sizes."""

CAUSES = {
    NoticeName.ORDER_EFFECT: "order",
    NoticeName.ORDER_ONE_SIDED: "order",
    NoticeName.DRIFT: "drift",
    NoticeName.TWO_STATES: "two states",
}
"""Notices of the judge that may be why an arm differs from itself."""


@dataclass(frozen=True, slots=True)
class Different:
    """A benchmark, or one `case` of it ("": all), in which equal arms differ: ratio and interval.

    `causes`: the words of CAUSES for notices of the judge on the benchmark.
    """

    benchmark: str
    case: str
    ratio: Open
    low: float
    high: Open
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Least:
    """The least differences that can be shown, as `shares`, one for each number of blocks.

    `sizes` names a tier of message sizes, of which the worst case counts; "" is the headline of the
    benchmark. `margin` is a share as well.
    """

    benchmark: str
    sizes: str
    shares: tuple[Open, ...]
    margin: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of a calibration: what is `different`, or else the `least` differences.

    `blocks`: numbers of blocks that a study may have, and `seconds` the time that each would take.
    `pairs`: the fewest blocks that a benchmark here rests on; `sizes`: the number of cases tested.
    """

    blocks: tuple[int, ...]
    seconds: tuple[float, ...]
    pairs: int
    sizes: int
    different: tuple[Different, ...]
    least: tuple[Least, ...]


def calibration(seen: Seen) -> Calibration | None:
    """Return the result of a calibration so far; None before each benchmark has its first look."""
    try:
        arms = arms_of(seen.plan.study)
    except ValueError:  # of a plan that asks for it in another design
        return None
    heads = seen.judgement.headlines
    counts = {head.benchmark: counted(seen.plan, seen.evidence, head) for head in heads}
    if min(map(len, counts.values()), default=0) < LOOKS[0]:
        return None
    settings = seen.plan.study.settings
    blocks = tuple(sorted({*(n for n in BLOCKS if n < settings.blocks), settings.blocks}))
    level = schedule(settings.blocks, settings.confidence, max(1, arms - 1)).confidence
    series = {head.benchmark: _series(seen, head, counts[head.benchmark]) for head in heads}
    different = tuple(
        one for head in heads for one in _different(seen, head, series[head.benchmark], len(heads))
    )
    least = (
        [] if different else [_least(seen, h, series[h.benchmark], blocks, level) for h in heads]
    )
    each = cost(_seconds(seen.evidence, heads, arms), together=seen.plan.design.at_once)
    return Calibration(
        blocks,
        tuple(duration(each, n, n)[0] for n in blocks),
        min(map(len, counts.values())),
        sum(len(one) - (len(one) > 1) for one in series.values()),
        different,
        tuple(row for rows in least for row in rows),
    )


Series = Mapping[Cell | None, Mapping[int, float]]
"""Log ratios by block of each case of a benchmark; the key None is their mean, the headline."""


def _series(seen: Seen, head: Finding, blocks: set[int]) -> Series:
    """Return the series of a benchmark over these blocks; of a single case that of None alone."""
    arms = (seen.plan.study.arms[0].name, head.arm)
    cells = seen.evidence.cells_of(head.benchmark, head.metric.name)
    mean = pooled_ratios(seen.evidence, head.benchmark, *arms, head.metric)
    of_cells = log_ratios(seen.evidence, head.benchmark, *arms, head.metric.better, cells)
    found: dict[Cell | None, Mapping[int, float]] = {None: mean}
    found |= {cell: of for cell, of in of_cells.items() if len(cells) > 1}
    return {cell: {b: d for b, d in of.items() if b in blocks} for cell, of in found.items()}


def _different(seen: Seen, head: Finding, series: Series, shared: int) -> Iterable[Different]:
    """Yield where a benchmark differs; it has one of `shared` equal shares of ERROR."""
    plan, label = seen.plan, head.benchmark
    complete = seen.evidence.complete(label, [one.name for one in plan.study.arms])
    looks = plan.design.looks_of(
        looks_at(plan, seen.evidence, [label], len(complete)), plan.looks.level
    )
    seed = plan.study.settings.seed or 0
    bands = band(list(series.values()), looks, seed=seed, error=ERROR / shared)
    causes = {CAUSES[n.name]: 1 for n in seen.judgement.notices if _about(n, label)}
    for cell, of in zip(series, bands, strict=True):
        if not of.low <= 1 <= of.high:
            case = str(cell[1]) if cell else ""
            yield Different(label, case, of.ratio, of.low, of.high, tuple(causes))


def _about(notice: Any, label: str) -> bool:
    return notice.name in CAUSES and label in notice.benchmarks


def _least(
    seen: Seen, head: Finding, series: Series, blocks: Sequence[int], level: float
) -> list[Least]:
    """Return the rows of a benchmark: its headline, and the worst case of each tier of sizes."""

    def shares(several: Iterable[Mapping[int, float]]) -> tuple[float, ...]:
        each = [list(one.values()) for one in several]
        return tuple(max(least_difference(one, n, level) for one in each) for n in blocks)

    plan, label = seen.plan, head.benchmark
    rows = [
        Least(label, "", shares([series[None]]), margin_of(plan, seen.evidence, label, head.metric))
    ]
    tiers: dict[str, list[Cell]] = {}
    for cell in series:
        if cell is not None and (tier := _tier(cell[1])):
            tiers.setdefault(tier, []).append(cell)
    for tier, cells in tiers.items():
        margins = [cell_margin(plan, seen.evidence, label, head.metric, cell) for cell in cells]
        rows.append(Least(label, tier, shares(series[cell] for cell in cells), min(margins)))
    return rows


def _tier(case: Case) -> str:
    """Return the tier of message sizes of a case, as kinds.py divides them; "" without a size."""
    size = case.get("bytes")
    if not isinstance(size, int):
        return ""
    if size <= SMALL:
        return f"up to {format_bytes(SMALL)}"
    return f"from {format_bytes(LARGE)}" if size >= LARGE else "between"


def _seconds(
    evidence: Evidence, heads: Sequence[Finding], arms: int
) -> dict[str, dict[str, float]]:
    """Return the mean seconds of a good launch by benchmark, the same for each arm."""
    found = {}
    for head in heads:
        good = [e.wall_s for e in evidence.entries(head.benchmark) if e.state is State.OK]
        found[head.benchmark] = dict.fromkeys(map(str, range(arms)), statistics.fmean(good))
    return found


# --- words -----------------------------------------------------------------------------------

TITLE = "Least difference that can be shown"


def lead(judgement: Judgement, rows: Calibration) -> str:
    """Return the sentence that says whether equal arms differ, and by which causes."""
    many = f"{count(len(judgement.headlines), 'benchmark')}, {count(rows.sizes, 'case')}"
    if not rows.different:
        return f"No difference is seen where there is none ({many}, one error of {percent(ERROR)})."
    causes = dict.fromkeys(cause for one in rows.different for cause in one.causes)
    why = ", ".join(causes) or "none of order, drift and two states is seen"
    where = ", ".join(dict.fromkeys(one.benchmark for one in rows.different))
    return (
        f"This machine shows a difference where there is none, in {where}: {why}. By chance that"
        f" happens in at most {percent(ERROR)} of calibrations."
    )


def _said(one: Different) -> str:
    where = f"{one.benchmark} ({one.case})" if one.case else one.benchmark
    why = ", ".join(one.causes) or "no known cause"
    d = decimals_beyond(one.low, one.high) or 3
    return f"{where}: {one.ratio:.{d}f} times itself [{one.low:.{d}f}, {one.high:.{d}f}]: {why}"


def basis(rows: Calibration) -> str:
    """Return the note below the table, with a legend of its marks where it has any."""
    legend = "!: above the margin, so equal arms stay undecided. "
    legend *= any(share > one.margin for one in rows.least for share in one.shares)
    return (
        f"{legend}From {count(rows.pairs, 'block')} or more. So far from the margin 8 to 9 of 10"
        " studies are decided in normal noise, fewer with outliers. Of several sizes the worst"
        " counts, each by itself."
    )


def limits(study: Study, directory: Path) -> list[str]:
    """Return what the calibration in `directory` says of a study before its first launch.

    They are sentences, none where all its benchmarks can show their margins. Raises UserError where
    the reference was another one, or has no result yet, and StoreError where there is none.
    """
    of, judgement = read_plan(directory).study, read_report(directory / VERDICT)
    place, rows = str(directory), judgement.lenses.get("calibration")
    if rows is None:
        fix = "make or continue one: paribus calibrate STUDY"
        raise UserError("is not a calibration that has come to its table", place=place, fix=fix)
    if _plain(of.arms[0]) != _plain(study.arms[0]):
        fix = "calibrate this study, or leave --calibration out"
        cause = f"is of another reference than {study.arms[0].name}, or of other settings of it"
        raise UserError(cause, place=place, fix=fix)
    if rows.different:
        return [lead(judgement, rows)]
    known = [one.label for one in study.benchmarks if _plain(one) in map(_plain, of.benchmarks)]
    others = [one.label for one in study.benchmarks if one.label not in known]
    sentences = [f"not calibrated: {', '.join(others)}"] if others else []
    blocks, margin = count(rows.blocks[-1], "block"), study.settings.margin
    for label in known:
        bad = [
            f"{_share(one.shares[-1])} {one.sizes or 'over all cases'}"
            f" (margin {percent(margin or one.margin)})"
            for one in rows.least
            if one.benchmark == label and one.shares[-1] > (margin or one.margin)
        ]
        if bad:
            bads = "; ".join(bad)
            sentences.append(f"the least difference that {blocks} can show in {label}: {bads}")
    if len(sentences) > len(others[:1]):
        sentences.append(
            "above its margin equal arms stay undecided: lengthen launches, allow more blocks, or"
            " widen the margin"
        )
    return sentences


def _plain(one: Arm | Selection) -> object:
    """Return a part of a study as JSON values, equal to those of a plan on disk."""
    return json.loads(json.dumps(asdict(one)))


def _share(value: float) -> str:
    if value == math.inf:  # too many launches were cut off
        return "none"
    return f"{100 * value:.2g} %" if value < 0.995 else f"{1 + value:.2g} times"


def _cells(rows: Calibration) -> tuple[list[str], list[list[str]]]:
    """Return head and cells of the table; the last row is the time that a study would take."""
    head = ["benchmark", "sizes", *(count(n, "block") for n in rows.blocks), "margin"]
    cells = [
        [
            one.benchmark if not one.sizes else "",
            one.sizes or "all",
            *(_share(share) + ("" if share <= one.margin else " !") for share in one.shares),
            percent(one.margin),
        ]
        for one in rows.least
    ]
    return head, [*cells, ["takes", "", *map(format_seconds, rows.seconds), ""]]


# --- reports ---------------------------------------------------------------------------------


def print_calibration(judgement: Judgement, rows: Calibration, console: Console) -> None:
    """Print the differences, or the table of least differences."""
    heading(console, TITLE if rows.least else "Differences between an arm and itself")
    for one in rows.different:
        item(console, _said(one))
    if rows.least:
        head, cells = _cells(rows)
        shown = [Row(row) for row in cells]
        right = range(2, len(head))
        print_rows(console, head, shown, right=right, coloured=())
        line(console, basis(rows), style="dim")


def print_short(judgement: Judgement, rows: Calibration, console: Console) -> None:
    """Print whether there is a difference, and what was found."""
    console.print()
    line(console, lead(judgement, rows), style="bold")
    print_calibration(judgement, rows, console)


def html_section(judgement: Judgement, rows: Calibration, figures: Figures) -> Html:
    """Return the section of the HTML report."""
    if rows.different:
        lines = [(one.benchmark, _said(one)) for one in rows.different]
        return list_section("Differences between an arm and itself", "Calibration", lines)
    head, cells = _cells(rows)
    caption, several = lead(judgement, rows), [[escape(cell) for cell in row] for row in cells]
    shown = table(head, several, caption, left=(0, 1))
    note = element("p", element("small", escape(basis(rows))))
    return element("section", element("h2", escape(TITLE)), shown, note, aria_label="Calibration")


def to_json(judgement: Judgement, rows: Calibration) -> dict[str, Any]:
    """Return the result as JSON values: shares and seconds, null for infinite."""
    return {"calibration": {**plain(rows), "text": lead(judgement, rows)}}


def from_json(stored: Mapping[str, Any], judgement: Judgement) -> Calibration | None:
    if not (rows := stored.get("calibration")):
        return None
    read: Calibration = read_as(Calibration, rows)
    shares = [one.shares for one in read.least]
    if not read.blocks or {len(one) for one in (read.seconds, *shares)} != {len(read.blocks)}:
        raise ValueError("a calibration has a share and a time for each number of blocks")
    return read


def failing(judgement: Judgement, rows: Calibration, rule: str) -> Iterable[str]:
    """Return a sentence on each difference between equal arms: what fails by `difference`."""
    return map(_said, rows.different)


LENS = Lens(
    judge=calibration,
    to_json=to_json,
    from_json=from_json,
    text=print_calibration,
    html=html_section,
    failing=failing,
    lead=lead,
    short=print_short,
)
