"""How the effect of an arm changed from one study to another of the same question.

A change is a ratio of two ratios: an arm that took 0.95 of the reference's time before and 0.98 now
has worsened by 1.032. The blocks of two studies are independent samples of log ratios, so nothing
is paired across them. Each study has an interval of its own that holds whatever its noise and
wherever it stopped (estimate.py, looks.py); the interval of the difference follows from the
distances of the four ends to the two estimates (G. Y. Zou & A. Donner, Stat. Med. 27 (2008) 1693).
It needs no equal scatter and no equal number of blocks, which a rank-sum interval would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from paribus.core import (
    Case,
    Comparison,
    Difference,
    Facts,
    Finding,
    Judgement,
    LeftOut,
    Metric,
    Reason,
    Verdict,
    Word,
)
from paribus.judge.cases import counted
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import log_ratios, no_data, pooled_ratios
from paribus.plan import Plan
from paribus.stats.estimate import compare
from paribus.stats.family import LEAST_FOR_SHARE, benjamini_hochberg, hochberg
from paribus.stats.looks import LOOKS, Looks
from paribus.stats.verdict import judge
from paribus.words.values import reason_of

LEAST_P = 1e-12
"""The smallest error that `compare` distinguishes from 0."""


class Claim(NamedTuple):
    """Whether a family supports a verdict on the change of a case, and the level to print."""

    supported: bool
    level: float


def change(before: Comparison, after: Comparison) -> Comparison:
    """Return `after` over `before`, with its interval; level and blocks are the lower of the two.

    With intervals at the level of a look the interval of the change misses the truth in at most 5 %
    of pairs of studies, each stopped by its own looks (tests/test_stats_change.py). Raises
    ValueError where one of the ratios is zero or infinite.
    """
    if not (0 < before.ratio < math.inf and 0 < after.ratio < math.inf):
        raise ValueError(f"no ratio of {after.ratio} to {before.ratio}")
    first, second = _distances(before), _distances(after)
    middle = math.log(after.ratio) - math.log(before.ratio)
    low = middle - math.hypot(second[0], first[1])
    high = middle + math.hypot(second[1], first[0])
    ratio, low, high = (math.exp(x) if x < 700 else math.inf for x in (middle, low, high))
    blocks, level = min(before.blocks, after.blocks), min(before.level, after.level)
    return Comparison(blocks, ratio, low, high, level)


def _distances(one: Comparison) -> tuple[float, float]:
    """Return how far the ends of an interval are below and above its ratio, on the log scale."""
    below = math.log(one.ratio / one.low) if one.low > 0 else math.inf
    return below, math.log(one.high / one.ratio)


def change_p(before: Sequence[float], after: Sequence[float], margin: float) -> float:
    """Return the smallest error, from LEAST_P on, at which the interval of a change has a verdict.

    It lies then wholly beyond the margin or wholly inside. `before` and `after` are log ratios of
    blocks. 1 if no error below one half gives a verdict.
    """
    delta = math.log1p(margin)

    def has_word(error: float) -> bool:
        try:
            found = change(compare(before, 1 - error), compare(after, 1 - error))
        except ValueError:  # a ratio without a limit has no change
            return False
        low = math.log(found.low) if found.low > 0 else -math.inf
        high = math.log(found.high)
        return low > delta or high < -delta or -delta < low <= high < delta

    low, high = math.log10(LEAST_P), math.log10(0.5)
    if not has_word(10**high):
        return 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if has_word(10**middle) else (middle, high)
    return float(10**high)


def claims(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]],
    margins: Sequence[float],
    looks: tuple[Looks, Looks],
    error: float,
) -> tuple[Claim, ...]:
    """Return for each case whether the family supports a verdict on its change.

    `pairs` are the log ratios of a case's blocks in both studies, `margins` those of the cases. As
    in family.claims, p is corrected for the looks of both studies, then by Benjamini and Hochberg
    from 8 cases on, below by Hochberg; supported cases get the level of false coverage.
    """
    p = [change_p(*pair, margin) for pair, margin in zip(pairs, margins, strict=True)]
    members = [i for i, pair in enumerate(pairs) if min(map(len, pair)) >= LOOKS[0]]
    alone = [max(one.any_p(p[i]) for one in looks) for i in members]
    corrected = (benjamini_hochberg if len(alone) >= LEAST_FOR_SHARE else hochberg)(alone)
    supported = {i for i, one in zip(members, corrected, strict=True) if one <= error}
    usual = min(one.level for one in looks)
    share = error * len(supported) / max(1, len(members))
    selected = 0.0
    if supported:
        selected = min(one.nominal(share) for one in looks)
    return tuple(
        Claim(i in supported, 1 - (max(p[i], selected) if i in supported else usual))
        for i in range(len(pairs))
    )


class Changed(StrEnum):
    """The verdicts on the change of an effect: of the arm, against the reference."""

    IMPROVED = "improved"
    WORSENED = "worsened"
    UNCHANGED = "unchanged"
    UNDECIDED = "undecided"
    WITHHELD = "withheld"
    NO_DATA = "no data"


_WORDS = {
    Word.FASTER: Changed.IMPROVED,
    Word.SLOWER: Changed.WORSENED,
    Word.EQUIVALENT: Changed.UNCHANGED,
    Word.UNDECIDED: Changed.UNDECIDED,
    Word.WITHHELD: Changed.WITHHELD,
    Word.RELIABILITY: Changed.WITHHELD,
    Word.NO_DATA: Changed.NO_DATA,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One study: its name here, what was planned and found, and the facts of nodes and launches.

    `nodes` are facts by arm and node, `launches` those of each launch by benchmark and arm.
    """

    name: str
    plan: Plan
    evidence: Evidence
    judgement: Judgement
    nodes: Mapping[str, Mapping[str, Facts]]
    launches: Mapping[str, Mapping[str, Sequence[Facts]]]


@dataclass(frozen=True, slots=True)
class Change:
    """An effect in two studies: a headline (`case` is None) or one case, and how it changed.

    `before` and `after` are the findings of both studies, `comparison` is the ratio of their
    ratios, and `margin` a share. `because` names the study whose own verdict decides, such as
    withheld; "" if the interval decides.
    """

    before: Finding
    after: Finding
    margin: float
    comparison: Comparison | None
    verdict: Verdict
    because: str = ""

    @property
    def benchmark(self) -> str:
        return self.before.benchmark

    @property
    def arm(self) -> str:
        """Return the arm of the later study."""
        return self.after.arm

    @property
    def metric(self) -> Metric:
        return self.before.metric

    @property
    def case(self) -> Case | None:
        return self.before.case

    @property
    def word(self) -> Changed:
        return _WORDS[self.verdict.word]

    @property
    def reason(self) -> str:
        """Return the sentence for people; nothing is to be decided on it."""
        return (
            f"{self.because}: {reason_of(self.verdict)}"
            if self.because
            else reason_of(self.verdict)
        )


_WHY: Mapping[LeftOut, str] = {
    LeftOut.FACTOR_DIFFERS: "is another",
    LeftOut.REFERENCE_DIFFERS: "is another",
    LeftOut.BENCHMARK_DIFFERS: "is another benchmark",
    LeftOut.RANKS_DIFFER: "has another number of ranks",
    LeftOut.PARAMETERS_DIFFER: "has other parameters",
    LeftOut.METRICS_DIFFER: "has another metric that decides",
    LeftOut.CASES_DIFFER: "has other cases",
}


@dataclass(frozen=True, slots=True)
class NotCompared:
    """What is not compared, because only one study has it or it is not the same in both.

    `what` is for example "the arm host"; `figures` are those of the `code`, the reason.
    """

    what: str
    code: LeftOut
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return why it is not compared, without a full stop; nothing is to be decided on it."""
        given = self.figures
        if self.code is LeftOut.MISSING:
            return f"{self.what} is only in {given['only_in']}"
        why = f"{self.what} {_WHY[self.code]}"
        return f"{why}: {given['first']} in one study, {given['second']} in the other"


@dataclass(frozen=True, slots=True)
class Step:
    """Everything that changed from the `first` study to `study`, a later one.

    `platform` are facts, settings and software that are not what they were, of the arm that each
    names ("" for the whole study); `equal_facts` counts those that are.
    """

    first: Measured
    study: Measured
    headlines: tuple[Change, ...]
    cases: tuple[Change, ...]
    platform: tuple[Difference, ...]
    equal_facts: int
    not_compared: tuple[NotCompared, ...]
    sentence: str


def changes(
    before: Measured,
    after: Measured,
    labels: Sequence[str],
    arms: Sequence[tuple[str, str]],
    studies: int,
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the changes of headlines, and those of cases.

    `labels` are the benchmarks that both studies have; `arms` are pairs of the names of an arm in
    both. `studies` is how many there are, the first too: the others share the error.
    """
    two = (before, after)
    level = 1 - min(one.plan.looks.level for one in two) / (studies - 1)
    heads: list[Change] = []
    rows: list[Change] = []
    for label in labels:
        for pair in arms:
            mine = [
                next(f for f in one.judgement.headlines if (f.benchmark, f.arm) == (label, arm))
                for one, arm in zip(two, pair, strict=True)
            ]
            heads.append(_changed(two, mine, mine, _headline_intervals(two, mine, level)))
            rows += _cases(two, mine, studies)
    return tuple(heads), tuple(rows)


def _headline_intervals(
    two: Sequence[Measured], mine: Sequence[Finding], level: float
) -> list[Comparison | None]:
    """Return the comparison of each study, at `level`; as it is for a monitored study."""
    if not all(one.plan.design.has_end for one in two):
        return [one.comparison for one in mine]
    found: list[Comparison | None] = []
    for study, head in zip(two, mine, strict=True):
        arms = (study.judgement.reference, head.arm)
        ratios = [*pooled_ratios(study.evidence, head.benchmark, *arms, head.metric).values()]
        known = head.comparison
        found.append(compare(ratios[: known.blocks], level) if known else None)
    return found


def _cases(two: Sequence[Measured], heads: Sequence[Finding], studies: int) -> Iterator[Change]:
    """Yield the changes of the cases of a headline, corrected for their number and the looks."""
    label = heads[0].benchmark
    known = [
        {
            (row.metric.name, row.case): row
            for row in one.judgement.of_benchmark(label, one.judgement.cases)
            if row.arm == head.arm
        }
        for one, head in zip(two, heads, strict=True)
    ]
    pairs = [(row, known[1][key]) for key, row in known[0].items() if key in known[1]]
    if not all(one.plan.design.has_end for one in two):
        for pair in pairs:
            yield _changed(two, heads, pair, [row.comparison for row in pair])
        return
    measured = [pair for pair in pairs if all(row.comparison for row in pair)]
    series = [
        tuple(_case_ratios(one, head, row) for one, head, row in zip(two, heads, pair, strict=True))
        for pair in measured
    ]
    error = (1 - max(one.plan.study.settings.confidence for one in two)) / (studies - 1)
    supported = claims(
        [(one, other) for one, other in series],
        [_margin(pair) for pair in measured],
        (two[0].plan.looks, two[1].plan.looks),
        error / max(len(one.plan.study.arms) - 1 for one in two),
    )
    judged = zip(series, supported, strict=True)
    for pair in pairs:
        if not all(row.comparison for row in pair):
            yield _changed(two, heads, pair, [None, None])
            continue
        ratios, claim = next(judged)
        one = _changed(two, heads, pair, [compare(some, claim.level) for some in ratios])
        if not claim.supported and one.verdict.word in (Word.FASTER, Word.SLOWER, Word.EQUIVALENT):
            figures = {**one.verdict.figures, "otherwise": one.verdict.code, "cases": len(pairs)}
            code = Reason.NOT_SUPPORTED_AMONG_CASES
            one = replace(one, verdict=Verdict(Word.UNDECIDED, code, final=True, figures=figures))
        yield one


def _case_ratios(study: Measured, head: Finding, row: Finding) -> list[float]:
    """Return the log ratios of a case, of the blocks by which its study judged it."""
    assert row.case is not None
    cell = (row.metric.name, row.case)
    found = log_ratios(
        *(study.evidence, head.benchmark, study.judgement.reference, head.arm),
        *(row.metric.better, [cell]),
    )[cell]
    blocks = counted(study.plan, study.evidence, head)
    return [ratio for block, ratio in found.items() if block in blocks]


def _margin(pair: Sequence[Finding]) -> float:
    """Return the margin of a change: the larger of both, since a small time has a wider one."""
    return max(one.margin for one in pair)


def _changed(
    two: Sequence[Measured],
    heads: Sequence[Finding],
    pair: Sequence[Finding],
    intervals: Sequence[Comparison | None],
) -> Change:
    """Return the change of a finding in two studies, given as a `pair`.

    It has a verdict of its own only if neither study's verdict prevents one. `heads` are the
    headlines that the finding belongs to, `intervals` the comparisons of both studies.
    """
    before, after = pair
    one, other = intervals
    margin = _margin(pair)
    finite = one and other and all(0 < each.ratio < math.inf for each in (one, other))
    comparison = change(one, other) if one and other and finite else None
    monitored = not all(study.plan.design.has_end for study in two)
    preventing = [
        (verdict, study.name)
        for study, head, finding in zip(two, heads, pair, strict=True)
        if (verdict := _preventing(head, finding, monitored=monitored))
    ]
    for word in (Word.WITHHELD, Word.NO_DATA, Word.UNDECIDED):
        for verdict, name in preventing:
            if verdict.word is word:
                return Change(before, after, margin, comparison, verdict, name)
    if comparison is None:
        return Change(before, after, margin, None, no_data(Reason.NO_COMPLETE_BLOCK))
    verdict = judge(comparison, better=before.metric.better, margin=margin, last=True)
    return Change(before, after, margin, comparison, replace(verdict, final=not monitored))


def _preventing(head: Finding, finding: Finding, *, monitored: bool) -> Verdict | None:
    """Return the verdict on a change that a study's own verdict forces, None if it forces none."""
    verdict = finding.verdict
    if verdict.word in (Word.WITHHELD, Word.NO_DATA):
        return verdict
    # Launches that failed, or were cut off, leave no size that could have changed.
    if verdict.word is Word.RELIABILITY or not verdict.size_known:
        return replace(verdict, word=Word.WITHHELD)
    if head.verdict.final or monitored:
        return None
    return replace(head.verdict, word=Word.UNDECIDED)
