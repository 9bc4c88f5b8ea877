"""The verdict on kinds of application, such as latency-bound ones, from the study's benchmarks.

Each kind has cases that stand for it by RULES: for "latency-bound" small messages under way one at
a time. Its ratio is the mean of theirs, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from paribus.core import Comparison, Finding, Kind, Metric, Seen, Word, format_changes, percent
from paribus.judge.evidence import Cell, Evidence, looks_at
from paribus.judge.headlines import COST, cell_margin, cut_off, decide, log_ratios
from paribus.plan import Plan
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.verdict import headline_margin
from paribus.words.lists import listed

SMALL, LARGE = 1 << 10, 1 << 16
"""Bytes up to which the time of a message is its latency, and from which on it is that of its
bytes: at 10 GB/s they take 0.1 and 6.6 us, with an RDMA latency of 1 to 2 us; at 1 Gbit/s 8 and
524 us, with one of 20 to 50 us. In between it is both, and such cases stand for neither."""

BY_MESSAGE = frozenset({"msg/s", "trans/s"})
"""Units of rates of messages: without a size these are small ones."""

_MESSAGES = frozenset({"point to point", "one-sided", "network"})


@dataclass(frozen=True, slots=True)
class Rule:
    """Which cases stand for a kind: those of `layers` or `benchmarks`, of `least` to `most` bytes.

    `alone`: only cases with one message under way at a time (True), or with many (False); None:
    both.
    """

    kind: Kind
    layers: frozenset[str] = frozenset()
    benchmarks: frozenset[str] = frozenset()
    least: float = 0.0
    most: float = math.inf
    alone: bool | None = None


RULES = (
    Rule(Kind.LATENCY, _MESSAGES, most=SMALL, alone=True),
    Rule(Kind.MESSAGES, _MESSAGES, most=SMALL, alone=False),
    Rule(Kind.BANDWIDTH, _MESSAGES, least=LARGE),
    Rule(Kind.SMALL_COLLECTIVES, frozenset({"collective"}), most=SMALL),
    Rule(Kind.LARGE_COLLECTIVES, frozenset({"collective"}), least=LARGE),
    Rule(Kind.MEMORY, frozenset({"memory"})),
    # Not the whole layer "compute": CG, IS and HPCG send much, and are mixtures.
    Rule(Kind.COMPUTE, benchmarks=frozenset({"hpl", "npb_ep", "ep", "mixbench"})),
    Rule(Kind.STORAGE, frozenset({"storage"})),
    Rule(Kind.START_UP, frozenset({"start-up"})),
    Rule(Kind.GPU, frozenset({"gpu"})),
)


def kinds_of(seen: Seen) -> tuple[Finding, ...]:
    """Return a finding for each kind of application of which cases were measured, for each arm.

    The finding's `benchmark` is the kind, and its ratio one of times (a rate enters as its
    inverse): the mean over the cases that stand for the kind, block by block. Where a headline or
    case that it rests on has no verdict on speed, neither has it. There are none of numbers that
    Paribus did not measure.
    """
    plan, evidence, found = seen.plan, seen.evidence, []
    for rule in RULES if plan.study.settings.seed is not None else ():
        cells = {
            label: some for label in plan.metrics if (some := _cells(plan, evidence, rule, label))
        }
        for arm in plan.study.arms[1:] if cells else ():
            found.append(_profile(seen, rule, cells, arm.name))
    return tuple(one for one in found if one)


def _cells(plan: Plan, evidence: Evidence, rule: Rule, label: str) -> list[Cell]:
    """Return the cells of a benchmark's first metric that stand for the kind of `rule`."""
    metric = plan.metrics[label][0]
    selection = next(one for one in plan.study.benchmarks if one.label == label)
    if plan.layers.get(label) not in rule.layers and selection.benchmark not in rule.benchmarks:
        return []
    if rule.alone not in (None, metric.better == "lower" or metric.unit == "trans/s"):
        return []
    cells = evidence.cells_of(label, metric.name)
    return [cell for cell in cells if rule.least <= _size(cell, metric) <= rule.most]


def _size(cell: Cell, metric: Metric) -> float:
    """Return the bytes of a cell; without a size a rate of bytes counts as that of large ones."""
    size = cell[1].get("bytes")
    if isinstance(size, int | float):
        return float(size)
    return 0.0 if metric.better == "lower" or metric.unit in BY_MESSAGE else math.inf


def _profile(
    seen: Seen, rule: Rule, cells: Mapping[str, Sequence[Cell]], arm: str
) -> Finding | None:
    """Return the finding on one kind in an arm; `cells` by benchmark; None without a block."""
    plan, evidence, judged = seen.plan, seen.evidence, seen.judgement
    reference = plan.study.arms[0].name
    series: dict[str, Mapping[int, float]] = {}
    margins = []
    for label, some in cells.items():
        metric = plan.metrics[label][0]
        ratios = log_ratios(evidence, label, reference, arm, metric.better, some)
        if not (mean := headline_log_ratios(list(ratios.values()))):
            continue  # it has no data in this arm
        sign = 1 if metric.better == "lower" else -1
        series[label] = {block: sign * ratio for block, ratio in mean.items()}
        each = [cell_margin(plan, evidence, label, metric, cell) for cell in some]
        margins.append(headline_margin(each))
    pooled = headline_log_ratios(list(series.values()))
    if not pooled:
        return None
    margin = headline_margin(margins)
    heads = [f for f in judged.headlines if f.arm == arm and f.benchmark in series]
    rows = [
        f
        for f in judged.cases
        if f.arm == arm and f.benchmark in series and (f.metric.name, f.case) in cells[f.benchmark]
    ]
    ended = all(f.verdict.final or seen.over[f.benchmark] for f in heads)
    at = looks_at(plan, evidence, list(series), len(pooled))
    cut = cut_off(evidence, series, (reference, arm))
    verdict, comparison = decide(plan, at, pooled, COST.better, margin, cut, over=ended)
    [(label, some), *more] = cells.items()  # all of a benchmark are its headline
    if not more and heads and len(some) == len(evidence.cells_of(label, heads[0].metric.name)):
        verdict, known = heads[0].verdict, heads[0].comparison
        comparison = known and known.times(heads[0].metric.better)
    for word in (Word.WITHHELD, Word.RELIABILITY):
        verdict = next((f.verdict for f in (*heads, *rows) if f.verdict.word is word), verdict)
    figures = {**verdict.figures, "benchmarks": list(series)}
    verdict = replace(verdict, figures=figures)
    return Finding(rule.kind, arm, COST, None, margin, comparison, verdict, None, None)


# --- words -----------------------------------------------------------------------------------

NAMES: Mapping[Kind, str] = {
    Kind.LATENCY: "latency-bound (small messages)",
    Kind.MESSAGES: "bound by the message rate (many small messages at once)",
    Kind.BANDWIDTH: "bandwidth-bound (large messages)",
    Kind.SMALL_COLLECTIVES: "small collectives (global sums, barriers)",
    Kind.LARGE_COLLECTIVES: "large collectives (transposes)",
    Kind.MEMORY: "memory-bound",
    Kind.COMPUTE: "compute-bound",
    Kind.STORAGE: "I/O-bound",
    Kind.START_UP: "bound by start-up (short launches)",
    Kind.GPU: "bound by traffic of GPUs",
}
TITLE = "Kinds of application"
CAUTION = "An application that is of several kinds lies between them: measure it."


def said(finding: Finding) -> str:
    """Return the verdict on a kind, and the change of time with its interval."""
    word, known = finding.verdict.word, finding.comparison
    if word in (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA):
        return word.value
    even = f", within the margin of {percent(finding.margin)}" * (word is Word.EQUIVALENT)
    so_far = " so far" * (word is not Word.UNDECIDED and not finding.verdict.final)
    time = _time(known) if known and finding.verdict.size_known else ""
    return f"{word.value}{so_far}{even}{time}"


def _time(known: Comparison) -> str:
    if not 0 < known.low <= known.high < math.inf:
        return ""
    middle, low, high = format_changes((known.ratio, known.low, known.high))
    return f", time {middle} ({low} to {high})"


def not_measured(kinds: Iterable[Kind]) -> str:
    """Return the sentence that names these kinds as not measured, "" for none."""
    names = [NAMES[kind] for kind in kinds]
    return f"Not measured: {listed(names)}." if names else ""
