"""What a study comes to: the values that the judging rooms hand to the reports. No I/O here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

from paribus.core.design import Study
from paribus.core.groups import grouped
from paribus.core.model import Case, Direction, Facts, Launch, Metric, State
from paribus.core.reasons import NoticeName, Reason


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of launches of one benchmark in one arm, by their outcome."""

    benchmark: str
    arm: str
    counted: int  # those that the report rests on
    failed: int  # this and the next two: of all `launches`
    timed_out: int
    invalid: int
    first_error: str = ""
    warm_up: int = 0  # of the warm-up and its reruns, which are in no other number
    warm_up_failed: int = 0
    wall_s: float = 0.0  # seconds that all of them took
    rerun: int = 0  # of blocks that do not count
    faults: int = 0  # of `launches`: the measuring machine lacked something
    first: int = 0  # first attempts without a fault: by them reliability is judged
    first_failed: int = 0

    @property
    def launches(self) -> int:
        """All launches but those of the warm-up."""
        return self.counted + self.rerun

    @property
    def failures(self) -> int:
        """How many of the launches gave nothing usable."""
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
    """What a comparison says against a margin: one word, and the code of the reason for it."""

    word: Word
    code: Reason
    final: bool  # whether no further launch can change it
    blocks_needed: int | None = None  # an estimate, where the word is "undecided"
    size_known: bool = True  # False: the ratio is no size, as time limits cut off too many launches
    figures: Mapping[str, Any] = field(default_factory=dict)  # by code in docs/report.md


@dataclass(frozen=True, slots=True)
class Spread:
    """Launch medians of one arm at one case: how many, their median, `low` and `high` quartile."""

    launches: int
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of the report: an arm against the reference, for a headline or one case.

    A headline (`case` None) is the mean log ratio over the cases of a benchmark, block by block;
    its `reference_value` and `arm_value` are geometric means over the cases. The headline of a
    layer has the layer's name as `benchmark`, no values, and a ratio of times: that of a rate is
    inverted.
    """

    benchmark: str
    arm: str
    metric: Metric
    case: Case | None
    margin: float  # a share: 0.02 is 2 %
    comparison: Comparison | None
    verdict: Verdict
    reference_value: Spread | None
    arm_value: Spread | None
    reference: str = ""  # the other arm in Judgement.pairs; "" for the first arm of the study
    history: tuple[Comparison, ...] = ()  # at each look so far
    decides: bool = True  # False in Judgement.others


def usable(finding: Finding) -> Comparison | None:
    """Return the ratio of a finding, None where it has no interval or must not be relied on."""
    known = finding.comparison
    withheld = finding.verdict.word in (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
    if known is None or withheld or not finding.verdict.size_known:
        return None
    return known if 0 < known.low <= known.high < math.inf else None


def slowness(finding: Finding) -> Comparison | None:
    """Return how many times as slow as the reference the arm is; None where no size is known."""
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
    typical one: 1.0 is the reference's usual level. An outlying or disturbed launch counts.
    """

    number: int
    block: int
    benchmark: str
    arm: str
    at_s: float
    state: State
    level: float | None  # None: the launch gave no samples
    outlying: float | None = None  # its multiple of the arm's usual level, if far from the others
    disturbed: tuple[str, ...] = ()  # why the noise gate doubts it
    attempt: int = 0  # which attempt at this launch of the plan it was, from 0
    void: str = ""  # why it does not count


@dataclass(frozen=True, slots=True)
class Distribution:
    """Quantiles of the samples that decide a benchmark in an arm, at even shares, ascending.

    They are of all launches that count, in the unit of the metric; samples of several cases are
    scaled to the mean case.
    """

    benchmark: str
    arm: str
    values: tuple[float, ...]


class Figures(NamedTuple):
    """What one launch that counts contributes: a figure of each metric at each case."""

    arm: str
    block: int | None  # None where nothing pairs launches
    launch: int  # its number in the plan; of numbers from elsewhere, a count
    at_s: float | None  # its start, in seconds since that of the first launch; None: unknown
    benchmark: str
    metrics: Mapping[str, Metric]
    values: Mapping[tuple[str, Case], float]  # by name of a metric and case, in the metric's unit
    file: str = ""  # where numbers from elsewhere were read


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
    """What a study has done so far, passed on before each launch and after each block."""

    launch: Launch | None  # the one about to start, None at the end
    blocks_done: Mapping[str, int]  # by label of a benchmark
    blocks_most: int
    launches_done: int
    launches_most: int
    elapsed_s: float
    left_s: float | None  # if every undecided benchmark goes to its last block
    headlines: tuple[Finding, ...]
    failures: int
    look: int = 0  # blocks of an undecided benchmark at its next look, 0: without looks
    look_s: float | None = None  # seconds until then


@dataclass(frozen=True)
class Judgement:
    """Everything that a report shows, computed from a study directory and nothing else.

    `cases` and `others` are corrected for their number: a word other than "undecided" has the
    support of the whole family.
    """

    study: Study
    plan_sha256: str
    directory: str
    sentence: str  # the answer, in one sentence
    complete: bool  # False while the study can be resumed
    headlines: tuple[Finding, ...]  # these decide: one for each benchmark and arm
    cases: tuple[Finding, ...]
    tallies: tuple[Tally, ...]
    points: tuple[Point, ...]
    differences: tuple[Difference, ...]
    facts: Mapping[str, Facts]  # by arm
    equal_facts: int
    notices: tuple[Notice, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    started: float | None = None  # seconds since the epoch
    wall_s: float = 0.0
    looks: tuple[int, ...] = ()  # the blocks at which a verdict may fall
    level: float = 0.0  # the confidence of the intervals at these looks
    others: tuple[Finding, ...] = ()  # headlines of the other metrics of each benchmark
    layers: tuple[Finding, ...] = ()  # headlines of layers with two benchmarks or more
    endpoints: tuple[Finding, ...] = ()  # headlines at the endpoints that do not decide
    pairs: tuple[Finding, ...] = ()  # with more than two arms: each against each other
    design: str = ""  # in one sentence: how the figures came about, and what that controls
    carriers: tuple[Carrier, ...] = ()  # where known
    voided: tuple[Point, ...] = ()  # launches that do not count; they are not among `points`
    distributions: tuple[Distribution, ...] = ()  # where launches have several samples
    lenses: Mapping[str, Any] = field(default_factory=dict)  # the rows of each lens, by its name
    # Of the launches that all this rests on, when asked for.
    figures: Iterable[Figures] = field(default=(), compare=False, repr=False)

    @property
    def reference(self) -> str:
        return self.study.arms[0].name

    def of_benchmark(self, label: str, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the rows of `findings` that belong to the benchmark `label`, in order."""
        known = self._sorted.get(id(findings))
        if known is None or known[0] is not findings:
            by_label = grouped((finding.benchmark, finding) for finding in findings)
            known = self._sorted[id(findings)] = findings, by_label
        return tuple(known[1].get(label, ()))

    @cached_property
    def _sorted(self) -> dict[int, tuple[Sequence[Finding], dict[str, list[Finding]]]]:
        """Findings by benchmark: a report of hundreds of benchmarks asks for each many times."""
        return {}
