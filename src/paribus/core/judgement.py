"""What a study comes to: the values that the judging rooms hand to the reports. No I/O here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

from paribus.core.design import Study
from paribus.core.model import Case, Direction, Facts, Launch, Metric, State
from paribus.core.reasons import NoticeName, Reason


@dataclass(frozen=True, slots=True)
class Tally:
    """Launches of one benchmark in one arm, by what came of them; all took `wall_s` seconds.

    `counted` are those that the report rests on and `rerun` those of blocks that do not count: the
    `launches` are both, and of these some `failed`, `timed_out`, were `invalid`, or met a machine's
    `faults`. `first` are first attempts, without faults, and `first_failed` those that failed: by
    them reliability is judged. Apart is the `warm_up`, its reruns included, and those of it that
    gave no usable output, `warm_up_failed`.
    """

    benchmark: str
    arm: str
    counted: int
    failed: int
    timed_out: int
    invalid: int
    first_error: str = ""
    warm_up: int = 0
    warm_up_failed: int = 0
    wall_s: float = 0.0
    rerun: int = 0
    faults: int = 0
    first: int = 0
    first_failed: int = 0

    @property
    def launches(self) -> int:
        return self.counted + self.rerun

    @property
    def failures(self) -> int:
        """Return how many of the launches gave nothing usable."""
        return self.failed + self.timed_out + self.invalid + self.faults


class Total(NamedTuple):
    """Sums over tallies: launches and first attempts, and how many of either gave nothing usable.

    The warm-up is left out.
    """

    launches: int
    failures: int
    first: int
    first_failed: int

    @property
    def text(self) -> str:
        """Return the failures for people: "6 of 64 launches failed (4 of 60 first attempts)"."""
        return f"{self.failures} of {self.launches} launches failed{self.of_first}"

    @property
    def of_first(self) -> str:
        """Return " (4 of 60 first attempts)"; "" where these are all launches, or none failed."""
        reported = self.first and self.failures and self.first < self.launches
        return f" ({self.first_failed} of {self.first} first attempts)" if reported else ""


def total(tallies: Iterable[Tally]) -> Total:
    """Return the sums over some tallies."""
    listed = list(tallies)
    return Total(
        sum(one.launches for one in listed),
        sum(one.failures for one in listed),
        sum(one.first for one in listed),
        sum(one.first_failed for one in listed),
    )


class Word(StrEnum):
    """The seven things that a verdict can say of an arm against the reference."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    RELIABILITY = "reliability differs"
    WITHHELD = "withheld"
    NO_DATA = "no data"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ratio of the arm's value to the reference's, with its interval.

    `level` is the confidence level of [low, high]. The ends are 0 and inf while the blocks are
    too few for an interval at this level.
    """

    blocks: int
    ratio: float
    low: float
    high: float
    level: float

    def turned(self) -> Comparison:
        """Return the ratio of the reference's value to the arm's."""
        ends = (self.high, self.ratio, self.low)
        low, ratio, high = (1 / end if end > 0 else math.inf for end in ends)
        return replace(self, ratio=ratio, low=low, high=high)

    def times(self, better: Direction) -> Comparison:
        """Return how many times as slow the arm is: of a rate, the inverse ratio."""
        return self if better == "lower" else self.turned()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says against a margin: one word, and the code of the reason for it.

    `figures` are what the reason rests on; docs/report.md lists them by code. With `size_known`
    False only the word stands, not the ratio: the time limit cut off too many launches.
    """

    word: Word
    code: Reason
    final: bool
    blocks_needed: int | None = None
    size_known: bool = True
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """Launch medians of one arm at one case: how many, their median and their quartiles."""

    launches: int
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report: an arm against the reference, for a headline or one case.

    `case` is None for the headline of the benchmark (mean log ratio over its cases, per block);
    then `reference_value` and `arm_value` are geometric means over the cases. In that of a layer
    `benchmark` is its name, without values: a ratio of times, rates as their inverse. `reference`
    is "" for the first arm, another in `Judgement.pairs`. `history`: what each look said so far.
    `decides` is False in `Judgement.others`.
    """

    benchmark: str
    arm: str
    metric: Metric
    case: Case | None
    margin: float
    comparison: Comparison | None
    verdict: Verdict
    reference_value: Spread | None
    arm_value: Spread | None
    reference: str = ""
    history: tuple[Comparison, ...] = ()
    decides: bool = True


def usable(finding: Finding) -> Comparison | None:
    """Return the ratio of a finding, None where it has no interval or must not be relied on."""
    known = finding.comparison
    held = finding.verdict.word in (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
    if known is None or held or not finding.verdict.size_known:
        return None
    return known if 0 < known.low <= known.high < math.inf else None


def slowness(finding: Finding) -> Comparison | None:
    """Return how many times as slow the arm is; None where the verdict does not stand by a size."""
    known = finding.comparison
    if known is None or not finding.verdict.size_known or not 0 < known.ratio < math.inf:
        return None
    return known.times(finding.metric.better)


@dataclass(frozen=True, slots=True)
class Notice:
    """What else a reader of the figures must know, beside the verdicts: a named finding.

    `benchmarks` are those that it is about (none: the whole study). A "warning" changes how the
    verdicts are to be read and comes first in a report; a "note" is for the section on the data.
    `figures` are what was computed: names to numbers, texts, or lists and mappings of them.
    """

    name: NoticeName
    level: Literal["warning", "note"]
    benchmarks: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Carrier:
    """What carries the messages between the ranks of a benchmark in one arm.

    `ways`: `memory`, `loopback`, `network`, `rdma` as the ranks saw it (source `ranks`); `rdma` as
    the hosts' `adapters` counted; `memory` or `tcp` where the `study` sets it; else by the `hosts`
    of the ranks (`placement`): `one host` (memory can be shared) or `hosts` (it cannot).
    """

    benchmark: str
    arm: str
    ways: tuple[str, ...]
    source: Literal["ranks", "adapters", "study", "placement"]
    hosts: int = 0


@dataclass(frozen=True, slots=True)
class Point:
    """One launch on the time axis of the report.

    `level` is the geometric mean over cases of the launch median, divided by the reference's
    typical one: 1.0 is the reference's usual level. None for a launch that gave no samples.
    Unusual is a launch that lies far from its like, `outlying` by so many times the usual level of
    its arm, or was `disturbed`, for these reasons; it counts nevertheless. `attempt` is which one
    of this launch of the plan it was, from 0; `void` is why it does not count.
    """

    number: int
    block: int
    benchmark: str
    arm: str
    at_s: float
    state: State
    level: float | None
    outlying: float | None = None
    disturbed: tuple[str, ...] = ()
    attempt: int = 0
    void: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the samples that decide a benchmark are distributed in an arm: `values` at even shares.

    They are of all launches that count, ascending, in the unit of the metric; of several cases as
    if all were the mean one.
    """

    benchmark: str
    arm: str
    values: tuple[float, ...]


class Figures(NamedTuple):
    """What one counting launch contributes: a figure of each metric at each case.

    `values` are by name of one of the `metrics` and case, in its unit. `launch` is the number in
    the plan, or of numbers from elsewhere a count; `block` is None where nothing pairs launches.
    `at_s` is when it started, in seconds since the first one, None if that is unknown. `file` is
    where numbers from elsewhere were read.
    """

    arm: str
    block: int | None
    launch: int
    at_s: float | None
    benchmark: str
    metrics: Mapping[str, Metric]
    values: Mapping[tuple[str, Case], float]
    file: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs between an arm and the reference, or that could not be compared.

    `kind`: "factor" is what the study changes, "explained" follows from it; "unexplained" withholds
    the verdict unless the user accepts it ("accepted"); "noted" does not count: it varies from
    launch to launch, names a machine, or is the same spread of nodes in both arms; "unknown" could
    not be read. `reason` says why it matters, or is the user's for accepting it. `rank` says how
    likely it is to move the figures at hand: 0 (not known to) to 3 (nearly always). With `node`,
    a nodeset, those nodes differ from the others of their own arm, or from themselves before.
    """

    key: str
    arm: str
    reference_value: str
    arm_value: str
    kind: Literal["factor", "explained", "unexplained", "accepted", "noted", "unknown"]
    reason: str = ""
    rank: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a study has done so far, passed on before each launch and after each block.

    `launch` is the one about to start, None at the end. `headlines` are the findings so far;
    `left_s` is the time left if every undecided benchmark goes to its last block. After `look`
    blocks of an undecided one the evidence is weighed next, in `look_s` seconds (0: without looks).
    """

    launch: Launch | None
    blocks_done: Mapping[str, int]
    blocks_most: int
    launches_done: int
    launches_most: int
    elapsed_s: float
    left_s: float | None
    headlines: tuple[Finding, ...]
    failures: int
    look: int = 0
    look_s: float | None = None


@dataclass(frozen=True)
class Judgement:
    """Everything that a report shows, computed from a study directory and nothing else.

    `complete` is False while the study can be resumed; at the blocks `looks` verdicts may fall, by
    intervals of confidence `level`. `headlines` decide, one for each benchmark and arm. Beside them
    stand `others` (the headlines of the other figures of each benchmark, corrected for the number
    of all its figures), `layers` (of two benchmarks or more), `endpoints` (headlines of those that
    do not decide), and, with more than two arms, `pairs`: each arm against each other. `cases` are
    corrected for their number: a word other than "undecided" has the family's support. `design`
    says in one sentence how the figures came about and what that controls. `voided` are launches
    that do not count, beside the `points`. `distributions` are of samples, where launches have
    several, `carriers` the transports between ranks, where known, `lenses` the rows of each lens by
    name (lens.py), `figures` those of the launches that all rests on, when asked for.
    """

    study: Study
    plan_sha256: str
    directory: str
    sentence: str
    complete: bool
    headlines: tuple[Finding, ...]
    cases: tuple[Finding, ...]
    tallies: tuple[Tally, ...]
    points: tuple[Point, ...]
    differences: tuple[Difference, ...]
    facts: Mapping[str, Facts]
    equal_facts: int
    notices: tuple[Notice, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    started: float | None = None
    wall_s: float = 0.0
    looks: tuple[int, ...] = ()
    level: float = 0.0
    others: tuple[Finding, ...] = ()
    layers: tuple[Finding, ...] = ()
    endpoints: tuple[Finding, ...] = ()
    pairs: tuple[Finding, ...] = ()
    design: str = ""
    carriers: tuple[Carrier, ...] = ()
    voided: tuple[Point, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    lenses: Mapping[str, Any] = field(default_factory=dict)
    figures: Iterable[Figures] = field(default=(), compare=False, repr=False)

    @property
    def reference(self) -> str:
        return self.study.arms[0].name

    def of_benchmark(self, label: str, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the rows of `findings` that belong to the benchmark `label`, in order."""
        known = self._sorted.get(id(findings))
        if known is None or known[0] is not findings:
            by_label: dict[str, list[Finding]] = {}
            for finding in findings:
                by_label.setdefault(finding.benchmark, []).append(finding)
            known = self._sorted[id(findings)] = findings, by_label
        return tuple(known[1].get(label, ()))

    @cached_property
    def _sorted(self) -> dict[int, tuple[Sequence[Finding], dict[str, list[Finding]]]]:
        """Findings by benchmark: a report of hundreds of benchmarks asks for each many times."""
        return {}
