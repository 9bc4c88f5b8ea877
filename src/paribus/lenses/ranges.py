"""From which size to which an arm is slower, faster or as fast: ranges of the sizes of a sweep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from paribus.core import Case, Comparison, Finding, Judgement, Lens, Seen, Word
from paribus.core.units import format_bytes
from paribus.judge.cases import counted
from paribus.judge.headlines import log_ratios
from paribus.judge.schedule import looks_at
from paribus.report.gate import rule_of
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, list_section
from paribus.report.printing import heading, item, line
from paribus.report.stored import read_as
from paribus.report.wording import clean
from paribus.stats.band import LEAST_BLOCKS, band
from paribus.stats.verdict import word_of
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.judge.evidence import Cell

LEAST_SIZES = 3
"""Sizes below which there is no range to speak of."""

HELD = frozenset({Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA})
DIFFER = frozenset({Word.SLOWER, Word.FASTER})


@dataclass(frozen=True, slots=True)
class Size:
    """How many times as slow an arm is with messages, or arrays, of so many bytes.

    A rate enters as its inverse. [low, high] is the band, which holds at all sizes at once; the
    word is that of the band against the margin.
    """

    bytes: int
    ratio: float
    low: float
    high: float
    margin: float
    word: Word


@dataclass(frozen=True, slots=True)
class Sweep:
    """The sizes of one benchmark in `arm`, in order; `group` names its other parameters."""

    benchmark: str
    arm: str
    group: str
    blocks: int
    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Neighbouring sizes of one word; the ratio is their mean, with the interval of it."""

    word: Word
    sizes: tuple[Size, ...]

    @property
    def ends(self) -> tuple[int, int]:
        return self.sizes[0].bytes, self.sizes[-1].bytes

    @property
    def mean(self) -> Size:
        """The geometric mean: where all intervals hold, it lies in the mean interval."""
        means = (_mean(getattr(one, key) for one in self.sizes) for key in ("ratio", "low", "high"))
        ratio, low, high = means
        return replace(self.sizes[0], ratio=ratio, low=low, high=high)


Rows = tuple[Sweep, ...]


def ranges(seen: Seen) -> Rows | None:
    """Return the sweeps over sizes that a band can be given for; None without any."""
    if not (seen.launches and seen.plan.design.has_end):
        return None
    found = (sweep for head in seen.judgement.headlines for sweep in _sweeps(seen, head))
    return tuple(found) or None


def _sweeps(seen: Seen, head: Finding) -> list[Sweep]:
    """Return the sweeps of a benchmark in an arm: one band over all of their sizes together."""
    cases = {
        (f.metric.name, f.case): f
        for f in seen.judgement.of_benchmark(head.benchmark, seen.judgement.cases)
        if (f.arm, f.metric.name) == (head.arm, head.metric.name) and _bytes(f.case) and f.case
    }
    plan, label, arms = seen.plan, head.benchmark, (seen.plan.study.arms[0].name, head.arm)
    held = head.verdict.word in HELD or not head.verdict.size_known
    blocks = set() if held else counted(plan, seen.evidence, head)
    if len(blocks) < LEAST_BLOCKS or len({_bytes(case) for _, case in cases}) < LEAST_SIZES:
        return []
    found = log_ratios(seen.evidence, label, *arms, head.metric.better, list(cases))
    sign = 1 if head.metric.better == "lower" else -1
    series = {
        cell: {block: sign * one for block, one in of.items() if block in blocks}
        for cell, of in found.items()
    }
    series = {cell: of for cell, of in series.items() if len(of) >= LEAST_BLOCKS}
    if not series:
        return []
    at = looks_at(plan, seen.evidence, [label], len(seen.evidence.complete(label, arms)))
    looks, error = replace(plan.looks, at=tuple(at)), plan.design.error
    seed = plan.study.settings.seed or 0
    bands = dict(
        zip(series, band(list(series.values()), looks, seed=seed, error=error), strict=True)
    )
    return _grouped(head, len(blocks), {cell: _size(cases[cell], bands[cell]) for cell in bands})


def _grouped(head: Finding, blocks: int, sizes: Mapping[Cell, Size]) -> list[Sweep]:
    groups: dict[str, list[Size]] = {}
    for (_, case), size in sizes.items():
        rest = Case(tuple(one for one in case.items if one[0] != "bytes"))
        groups.setdefault(str(rest) if rest.items else "", []).append(size)
    return [
        Sweep(head.benchmark, head.arm, group, blocks, tuple(sorted(of, key=lambda s: s.bytes)))
        for group, of in groups.items()
        if len({one.bytes for one in of}) == len(of) >= LEAST_SIZES
    ]


def _size(finding: Finding, of: Comparison) -> Size:
    word = word_of(of.low, of.high, finding.margin)
    known = finding.verdict.word not in HELD and finding.verdict.size_known
    word = word if known else Word.WITHHELD
    return Size(_bytes(finding.case), of.ratio, of.low, of.high, finding.margin, word)


def _bytes(case: Case | None) -> int:
    value = case.get("bytes") if case else None
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _mean(ratios: Iterable[float]) -> float:
    several = list(ratios)
    if not all(several):
        return 0.0
    return math.exp(statistics.fmean(map(math.log, several)))


def of_one_word(sweep: Sweep) -> list[Range]:
    """Return the sizes of a sweep, neighbours of one word together, the smallest first."""
    return [Range(word, tuple(of)) for word, of in groupby(sweep.sizes, key=lambda s: s.word)]


# --- words -----------------------------------------------------------------------------------

TITLE = "Ranges of sizes"

BASIS = (
    "By how much more time an arm takes (a rate counts as its inverse). The intervals of all sizes"
    " of a benchmark hold together; that of a range is for its mean. A range has two neighbouring"
    " sizes or more."
)


def said(sweep: Sweep) -> str:
    """Return in one sentence where the arm is slower, faster, as fast, and where that changes."""
    runs = of_one_word(sweep)
    parts = [f"{_by(run)} {_where(run, sweep)}" for run in runs if run.word in DIFFER]
    for word in (Word.EQUIVALENT, Word.UNDECIDED, Word.WITHHELD):
        mine = [run for run in runs if run.word is word and not _between(run, runs)]
        if mine:
            parts.append(f"{word.value} {listed([_where(r, sweep) for r in mine], last=' and ')}")
    known = [run for run in runs if len(run.sizes) > 1 or run.word not in DIFFER]
    decided = [run for run in known if run.word in (*DIFFER, Word.EQUIVALENT)]
    for one, other in pairwise(decided):
        if one.word is not other.word and not _single_between(one, other, runs):
            cross = {one.word, other.word} == DIFFER
            what = "they cross" if cross else "the change lies"
            low, high = one.ends[1], other.ends[0]
            parts.append(f"{what} between {format_bytes(low)} and {format_bytes(high)}")
    return "; ".join(parts)


def _between(run: Range, runs: Sequence[Range]) -> bool:
    """Return whether sizes without a word lie where one range changes into another."""
    place = runs.index(run)
    if run.word is not Word.UNDECIDED or not 0 < place < len(runs) - 1:
        return False
    before, after = runs[place - 1], runs[place + 1]
    sides = {before.word, after.word}
    single = any(one.word in DIFFER and len(one.sizes) == 1 for one in (before, after))
    return len(sides) == 2 and Word.WITHHELD not in sides and not single


def _single_between(one: Range, other: Range, runs: Sequence[Range]) -> bool:
    inside = runs[runs.index(one) + 1 : runs.index(other)]
    return any(run.word is not Word.UNDECIDED for run in inside)


def _where(run: Range, sweep: Sweep) -> str:
    """Return "from 64 KiB to 4 MiB"; for a single size also what to measure beside it."""
    low, high = run.ends
    if len(run.sizes) == len(sweep.sizes):
        return f"at all {len(run.sizes)} sizes, {format_bytes(low)} to {format_bytes(high)}"
    if low != high:
        if run.sizes[0] is sweep.sizes[0]:
            return f"up to {format_bytes(high)}"
        return f"from {format_bytes(low)} to {format_bytes(high)}"
    if run.word not in DIFFER:
        return f"at {format_bytes(low)}"
    beside = [format_bytes(size) for size in _beside(low, [one.bytes for one in sweep.sizes])]
    also = f" (measure {' and '.join(beside)} too)" if beside else ""
    return f"at {format_bytes(low)} alone{also}"


def _beside(size: int, all_: Sequence[int]) -> list[int]:
    """Return the sizes halfway to the neighbours of a single size, and beyond the last one."""
    place = all_.index(size)
    found = [(all_[place - 1] + size) // 2] if place else []
    found += [(size + all_[place + 1]) // 2] if place + 1 < len(all_) else [2 * size]
    # Collectives take whole elements.
    whole = (one - one % 8 if one > 16 else one for one in found)
    return [one for one in whole if one not in all_]


def _by(run: Range) -> str:
    """Return "slower by 18 % [16, 20]"; where a range is not of one size, both of its ends."""
    least, most = (pick(run.sizes, key=lambda s: s.ratio) for pick in (min, max))
    if least.high >= most.low:
        return f"{run.word.value} by {_share(run.mean, run.word)}"
    ends = (most, least) if run.word is Word.FASTER else (least, most)
    text = " to ".join(f"{_share(one, run.word)} ({format_bytes(one.bytes)})" for one in ends[::-1])
    if run.word is Word.SLOWER:
        text = " to ".join(f"{_share(one, run.word)} ({format_bytes(one.bytes)})" for one in ends)
    return f"{run.word.value} by {text}"


def _share(of: Size, word: Word) -> str:
    """Return "18 % [16, 20]"; from a factor of two on "2.4 times [2.3, 2.5]"."""
    ratio, low, high = of.ratio, of.low, of.high
    if word is Word.FASTER:
        if ratio > 0.5:
            ratio, low, high = 2 - ratio, 2 - high, 2 - low
        else:
            ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else math.inf
    if ratio >= 2:
        top = f"{high:.3g}" if high < math.inf else "open"
        return f"{ratio:.3g} times [{low:.3g}, {top}]"
    shares = [100 * (one - 1) for one in (ratio, low, high)]
    digits = 1 if shares[0] < 9.95 else 0
    top = f"{shares[2]:.{digits}f}" if high < math.inf else "open"
    return f"{shares[0]:.{digits}f} % [{shares[1]:.{digits}f}, {top}]"


def _name(sweep: Sweep) -> str:
    return f"{sweep.benchmark} ({sweep.group})" if sweep.group else sweep.benchmark


MOST_LINES = 6
"""Sweeps that have a line in a report of one screen."""


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print a line for each sweep whose sizes are not all of one word."""
    several = len(judgement.study.arms) > 2
    found = [one for one in rows if len(of_one_word(one)) > 1]
    if found:
        console.print()
    for one in found[:MOST_LINES]:
        name = f"{_name(one)}, {one.arm}" if several else _name(one)
        line(console, said(one), name=name, hang=2, most=2)
    if (more := len(found) - MOST_LINES) > 0:
        line(console, f"{more} more", style="dim")


# --- reports ---------------------------------------------------------------------------------


def _lines(rows: Rows) -> list[tuple[str, str]]:
    return [(one.arm, f"{_name(one)}: {said(one)}") for one in rows]


def print_ranges(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print a line for each sweep."""
    heading(console, TITLE)
    for arm, text in _lines(rows):
        item(console, text, name=clean(arm))
    item(console, BASIS, style="dim")


def html_section(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the section of the HTML report."""
    basis = element("p", element("small", escape(BASIS)))
    return list_section(TITLE, "Ranges", _lines(rows), basis)


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    """Return the rows as JSON values; `high` is null where it is open; `text` is for people."""
    found = []
    for sweep in rows:
        table = asdict(sweep)
        table["sizes"] = [
            one | {"high": one["high"] if one["high"] < math.inf else None}
            for one in table["sizes"]
        ]
        found.append(table | {"text": said(sweep)})
    return {"ranges": found}


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    found = []
    for one in table.get("ranges", ()):
        sizes = [
            size | {"high": math.inf} if size["high"] is None else size for size in one["sizes"]
        ]
        found.append(read_as(Sweep, one | {"sizes": sizes}))
    return tuple(found) or None


def _in(sweep: Sweep, rule: str) -> list[Size]:
    """Return the sizes of a sweep that a rule such as `slower:5%@64KiB-` is about."""
    low, high = rule_of(rule).sizes or (0, math.inf)
    return [one for one in sweep.sizes if low <= one.bytes <= high]


def failing(judgement: Judgement, rows: Rows, rule: str) -> Iterable[str]:
    """Return what is slower, its whole band beyond the share of the rule, or its margin."""
    beyond = rule_of(rule).beyond
    for sweep in rows:
        bad = [
            one
            for one in _in(sweep, rule)
            if one.word is not Word.WITHHELD
            and one.low > 1 + (one.margin if beyond is None else beyond)
        ]
        if bad:
            at = ", ".join(format_bytes(one.bytes) for one in bad)
            yield f"{sweep.arm}: {_name(sweep)}: {_by(Range(Word.SLOWER, tuple(bad)))} at {at}"


def judges(judgement: Judgement, rows: Rows, rule: str) -> bool:
    """Return whether any size was measured that a rule is about."""
    return any(_in(sweep, rule) for sweep in rows)


LENS = Lens(
    judge=ranges,
    to_json=to_json,
    from_json=from_json,
    text=print_ranges,
    html=html_section,
    text_after="cases",
    html_after="verdicts",
    failing=failing,
    judges=judges,
    short=print_short,
)
