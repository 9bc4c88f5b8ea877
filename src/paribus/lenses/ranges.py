"""From which size to which an arm is slower, faster or as fast: ranges of the sizes of a sweep.

A benchmark at several sizes gives one band of intervals that hold together; neighbouring sizes with
the same word are a range: "slower by 18 % [16, 20] from 64 KiB to 4 MiB; equivalent up to 4 KiB".
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from paribus.core import Case, Comparison, Finding, Judgement, Lens, Open, Seen, Word, format_ratio
from paribus.core.units import format_bytes
from paribus.judge.cases import counted
from paribus.judge.evidence import looks_at
from paribus.judge.headlines import log_ratios
from paribus.report.printing import ROOM, line
from paribus.report.rows import kept, listed_as
from paribus.stats.band import LEAST_BLOCKS, band
from paribus.stats.states import ratio_per_state
from paribus.stats.verdict import word_of
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.judge.evidence import Cell

LEAST_SIZES = 3
"""The fewest sizes of a sweep that has ranges."""

HELD = frozenset({Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA})
DIFFER = frozenset({Word.SLOWER, Word.FASTER})


@dataclass(frozen=True, slots=True)
class Size:
    """How many times as slow an arm is with messages, or arrays, of so many bytes.

    `ratio` is of times: a rate enters as its inverse. [low, high] belongs to a band, which holds at
    all sizes at once; `word` is its verdict by the margin, a share.
    """

    bytes: int
    ratio: float
    low: float
    high: Open
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
    """Neighbouring sizes with the same word."""

    word: Word
    sizes: tuple[Size, ...]

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest size, in bytes."""
        return self.sizes[0].bytes, self.sizes[-1].bytes

    @property
    def mean(self) -> Size:
        """The geometric means: that of the ratios lies in that of the intervals if all hold."""
        means = (_mean(getattr(one, key) for one in self.sizes) for key in ("ratio", "low", "high"))
        ratio, low, high = means
        return replace(self.sizes[0], ratio=ratio, low=low, high=high)


Rows = tuple[Sweep, ...]


def ranges(seen: Seen) -> Rows | None:
    """Return the sweeps over sizes with enough blocks and sizes for a band; None without any."""
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
    unknown = head.verdict.word in HELD or not head.verdict.size_known
    blocks = set() if unknown else counted(plan, seen.evidence, head)
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
    for cell, of in bands.items():
        launches = (seen.evidence.series(label, arm, cell) for arm in arms)
        wide = states_apart(*({b: one[b] for b in series[cell] if b in one} for one in launches))
        bands[cell] = replace(of, low=of.low / wide, high=of.high * wide)
    return _grouped(head, len(blocks), {cell: _size(cases[cell], bands[cell]) for cell in bands})


def states_apart(reference: Mapping[int, float], arm: Mapping[int, float]) -> float:
    """Return the ratio of two states of launches that the arms are in to different shares, else 1.

    With such states an interval is about no typical pair of launches, and a band over several sizes
    misses too often. Wider by this factor on both sides, it holds for any launch against any other.
    """
    states = ratio_per_state(reference, arm)
    if states is None or not states.shares_differ:
        return 1.0
    return max(states.reference.apart, states.arm.apart)


def _grouped(head: Finding, blocks: int, sizes: Mapping[Cell, Size]) -> list[Sweep]:
    """Return a sweep for each value of the parameters other than the size."""
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
    """Return the ranges of a sweep, the smallest sizes first."""
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
    changes = _changes(runs)
    in_a_change = [run for _, between, _ in changes for run in between]
    for word in (Word.EQUIVALENT, Word.UNDECIDED, Word.WITHHELD):
        if mine := [run for run in runs if run.word is word and run not in in_a_change]:
            parts.append(f"{word.value} {listed([_where(r, sweep) for r in mine], last=' and ')}")
    for one, _, other in changes:
        what = "they cross" if {one.word, other.word} == DIFFER else "the change lies"
        ends = (format_bytes(size) for size in (one.ends[1], other.ends[0]))
        parts.append(f"{what} between {' and '.join(ends)}")
    return "; ".join(parts)


def _changes(runs: Sequence[Range]) -> list[tuple[Range, list[Range], Range]]:
    """Return each change: a range, the undecided ranges after it, and the range that follows.

    A single size that differs is no range, so that there is no change to it.
    """
    known = [n for n, run in enumerate(runs) if run.word is not Word.UNDECIDED]
    found = ((runs[m], list(runs[m + 1 : n]), runs[n]) for m, n in pairwise(known))
    return [(one, between, other) for one, between, other in found if _change(one, other)]


def _change(one: Range, other: Range) -> bool:
    ranges = all(run.word is Word.EQUIVALENT or len(run.sizes) > 1 for run in (one, other))
    return ranges and one.word is not other.word and Word.WITHHELD not in (one.word, other.word)


def _where(run: Range, sweep: Sweep) -> str:
    """Return "from 64 KiB to 4 MiB"; for a single size that differs also which sizes to add."""
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
    """Return the sizes halfway to both neighbours of `size`, beyond the last one twice `size`."""
    place = next(n for n, one in enumerate(all_) if one == size)
    found = [(all_[place - 1] + size) // 2] if place else []
    found += [(size + all_[place + 1]) // 2] if place + 1 < len(all_) else [2 * size]
    # A multiple of 8: collectives take whole elements.
    whole = (one - one % 8 if one > 16 else one for one in found)
    return [one for one in whole if one not in all_]


def _by(run: Range) -> str:
    """Return "slower by 18 % [16, 20]"; where the intervals of two sizes do not overlap, both."""
    ends = sorted(run.sizes, key=lambda one: abs(math.log(one.ratio)))
    least, most = ends[0], ends[-1]
    if least.low <= most.high and most.low <= least.high:
        return f"{run.word.value} by {_share(run.mean)}"
    both = " to ".join(f"{_share(one)} ({format_bytes(one.bytes)})" for one in (least, most))
    return f"{run.word.value} by {both}"


def _share(of: Size) -> str:
    """Return "18 % [16, 20]"; from a factor of two on "2.400x [2.310, 2.490]"."""
    ratio, low, high = of.ratio, of.low, of.high
    if ratio <= 0.5:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low if low else math.inf
    if ratio >= 2:
        text, *between = (format_ratio(one, like=ratio) for one in (ratio, low, high))
        return f"{text}x [{', '.join(between)}]"
    ends = (low, high) if ratio > 1 else (high, low)
    shares = [100 * abs(one - 1) for one in (ratio, *ends)]
    digits = 1 if shares[0] < 9.95 else 0
    text, *between = (f"{one:.{digits}f}" for one in shares)
    return f"{text} % [{', '.join(between)}]"


def _name(sweep: Sweep) -> str:
    return f"{sweep.benchmark} ({sweep.group})" if sweep.group else sweep.benchmark


def print_short(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print a line or two for each sweep with several ranges, as far as there is room."""
    several = len(judgement.study.arms) > 2
    found = [one for one in rows if len(of_one_word(one)) > 1]
    room = ROOM - len(judgement.headlines)
    if not found or room < 1:
        return
    console.print()
    for one in found[:room]:
        name = f"{_name(one)}, {one.arm}" if several else _name(one)
        line(console, said(one), name=name, hang=2, most=1 + (2 * len(found) <= room))


# --- reports ---------------------------------------------------------------------------------


def _lines(judgement: Judgement, rows: Rows) -> list[tuple[str, str]]:
    return [(one.arm, f"{_name(one)}: {said(one)}") for one in rows]


def _in(sweep: Sweep, rule: str) -> list[Size]:
    """Return the sizes of a sweep that a rule such as `slower:5%@64KiB-` names."""
    from paribus.report.gate import rule_of

    low, high = rule_of(rule).sizes or (0, math.inf)
    return [one for one in sweep.sizes if low <= one.bytes <= high]


def failing(judgement: Judgement, rows: Rows, rule: str) -> Iterable[str]:
    """Yield a sentence for each sweep with sizes whose whole interval is beyond the rule's share.

    Without a share in the rule it is the margin that counts.
    """
    from paribus.report.gate import rule_of

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
    """Return whether any size was measured that a rule names."""
    return any(_in(sweep, rule) for sweep in rows)


LENS = Lens(
    judge=ranges,
    **kept("ranges", Sweep, lambda judgement, one: said(one)),
    **listed_as(TITLE, "Ranges", _lines, lambda rows: [BASIS]),
    text_after="cases",
    html_after="verdicts",
    failing=failing,
    judges=judges,
    short=print_short,
)
