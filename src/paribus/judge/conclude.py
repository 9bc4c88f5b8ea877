"""The judgement of a study directory: everything that a report shows, from the store alone.

plan.json and launches.db go in, a Judgement comes out: headlines, cases, tallies, audit, notices
and the rows of lenses. `judgement_of` does the same for evidence from elsewhere, such as logs.
"""

from __future__ import annotations

import math
import platform
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from paribus import __version__
from paribus.audit.accepted import in_vain, read_accepted
from paribus.audit.audit import Audit, audit_study, changes, of_nodes, ranked
from paribus.audit.classes import classify
from paribus.audit.values import typical, unsteady
from paribus.core import (
    LEVEL,
    Difference,
    Distribution,
    Facts,
    Figures,
    Finding,
    Judgement,
    Launch,
    Point,
    Reason,
    Seen,
    State,
    Tally,
    Word,
    lens,
    matches,
)
from paribus.judge import allocations, notices, transport
from paribus.judge.cases import cases, cases_settled, others
from paribus.judge.evidence import Entry, Evidence, collect, last_block_over, planned
from paribus.judge.headlines import (
    Because,
    endpoints,
    given_up,
    headlines,
    layers,
    pairs,
    unexplained,
    with_findings,
    withhold,
)
from paribus.judge.notices import Lag, sharing
from paribus.judge.notices import coarse as coarse_of
from paribus.plan import Plan, read_plan
from paribus.stats.outliers import outlying
from paribus.stats.summary import geometric_mean, launch_median, thinned
from paribus.store import Gathered, Store, Stored
from paribus.store.damage import Lost


def tallies(plan: Plan, evidence: Evidence) -> tuple[Tally, ...]:
    """Return the tally of every benchmark at every stage, over all stored attempts."""
    found = []
    for selection in plan.study.benchmarks:
        label = selection.label
        voided = [e for e in evidence.voided if e.launch.benchmark == label]
        attempts = sorted([*evidence.entries(label), *voided], key=lambda e: e.started)
        for arm in plan.design.stages():
            of_arm = [e for e in attempts if e.launch.arm == arm.name]
            launches = [e for e in of_arm if evidence.counted(e.launch)]
            states = [e.state for e in launches]
            warm_up = [e.state for e in of_arm if not evidence.counted(e.launch)]
            first = {
                key: state
                for key, state in evidence.first.get(label, {}).get(arm.name, {}).items()
                if evidence.counted(Launch(0, key[0], label, arm.name, 0, key[1]))
            }
            found.append(
                Tally(
                    benchmark=label,
                    arm=arm.name,
                    counted=sum(not e.void for e in launches),
                    failed=states.count(State.FAILED),
                    timed_out=states.count(State.TIMEOUT),
                    invalid=states.count(State.INVALID),
                    first_error=next((e.error for e in of_arm if e.error), ""),
                    warm_up=len(warm_up),
                    warm_up_failed=sum(state is not State.OK for state in warm_up),
                    wall_s=math.fsum(e.wall_s for e in of_arm),
                    rerun=sum(bool(e.void) for e in launches),
                    faults=states.count(State.FAULT),
                    first=len(first),
                    first_failed=sum(state is not State.OK for state in first.values()),
                )
            )
    return tuple(found)


class Track(NamedTuple):
    """The launches on the time axis: fields of Judgement."""

    points: tuple[Point, ...] = ()
    voided: tuple[Point, ...] = ()  # those that do not count
    started: float | None = None  # the start of the first one, in seconds since the epoch
    wall_s: float = 0.0  # from its start to the end of the last one


def track(plan: Plan, evidence: Evidence) -> Track:
    """Return every launch on the time axis."""
    entries = [e for s in plan.study.benchmarks for e in evidence.entries(s.label)]
    every = [*entries, *evidence.voided]
    if not every:
        return Track()
    begin = min(entry.started for entry in every)
    levels: dict[int, float] = {}
    far: dict[int, float] = {}
    for selection in plan.study.benchmarks:
        mine = evidence.entries(selection.label)
        levels |= relative(plan, mine)
        for arm in plan.study.arms:
            counted = [e for e in mine if e.launch.arm == arm.name and evidence.counted(e.launch)]
            far |= _outlying(counted, levels)

    def point(entry: Entry) -> Point:
        number, counted = entry.launch.number, evidence.counted(entry.launch)
        return Point(
            number=number,
            block=entry.launch.block if counted else 0,
            benchmark=entry.launch.benchmark,
            arm=entry.launch.arm,
            at_s=entry.started - begin,
            state=entry.state,
            level=None if entry.void else levels.get(number),
            outlying=None if entry.void else far.get(number),
            disturbed=entry.disturbed if counted and not entry.void else (),
            attempt=entry.attempt,
            void=entry.void,
        )

    counting, others = (
        tuple(point(one) for one in sorted(several, key=lambda e: e.started))
        for several in (entries, evidence.voided)
    )
    span_s = max(entry.started + entry.wall_s for entry in every) - begin
    return Track(counting, others, begin, span_s)


def relative(plan: Plan, entries: Sequence[Entry]) -> dict[int, float]:
    """Return the level of each good launch by number: its figure over the reference's usual one.

    `entries` are of one benchmark; the figure is the geometric mean over the cases of all of them.
    """
    good = [entry for entry in entries if entry.medians]
    if not good:
        return {}
    merit = plan.metrics[good[0].launch.benchmark][0].name
    common = set.intersection(*(set(entry.medians) for entry in good))
    cells = [cell for cell in good[0].medians if cell in common and cell[0] == merit]
    if not cells:
        return {}
    level = {e.launch.number: geometric_mean([e.medians[c] for c in cells]) for e in good}
    reference = plan.study.arms[0].name
    of_reference = [level[e.launch.number] for e in good if e.launch.arm == reference]
    usual = launch_median(of_reference or list(level.values()))
    return {number: value / usual for number, value in level.items()}


def _outlying(entries: Sequence[Entry], levels: dict[int, float]) -> dict[int, float]:
    """Return the multiple of the arm's usual level for its launches far from the others."""
    numbers = [e.launch.number for e in entries if e.launch.number in levels]
    values = [levels[number] for number in numbers]
    usual = launch_median(values) if values else 1.0
    return {numbers[i]: values[i] / usual for i in outlying(values)}


def distributions(plan: Plan, evidence: Evidence) -> tuple[Distribution, ...]:
    """Return the distribution of samples in each benchmark and arm whose launches have several."""
    found = []
    for label in plan.metrics:
        entries = [one for one in evidence.entries(label) if evidence.counted(one.launch)]
        for arm in plan.study.arms:
            steps = [step for one in entries if one.launch.arm == arm.name for step in one.steps]
            if steps:
                values = (float(f"{step:.5g}") for step in thinned(sorted(steps)))
                found.append(Distribution(label, arm.name, tuple(values)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FiguresOfLaunches:
    """Iterates over the Figures of every launch of a study that counts.

    `begin` is when the first launch started, in seconds since the epoch.
    """

    plan: Plan
    evidence: Evidence
    begin: float

    def __iter__(self) -> Iterator[Figures]:
        """Yield them by benchmark, arm and block."""
        for label, metrics in self.plan.metrics.items():
            by_name = {metric.name: metric for metric in metrics}
            entries = self.evidence.entries(label)
            for arm in self.plan.study.arms:
                for entry in entries:
                    launch = entry.launch
                    if launch.arm == arm.name and self.evidence.counted(launch):
                        place = (launch.arm, launch.block, launch.number)
                        at_s = entry.started - self.begin
                        yield Figures(*place, at_s, label, by_name, entry.medians)


class Light:
    """Returns launches that take little memory: without samples, equal texts as one object.

    A list of numbers per rank that change with every launch is replaced by its mean, which is all
    that judging needs.
    """

    def __init__(self) -> None:
        self._known: dict[object, Any] = {}
        self._lists: dict[int, tuple[list[str], Any]] = {}

    def __call__(self, one: Stored) -> Stored:
        facts = {key: self._lighter(key, value) for key, value in one.outcome.facts.items()}
        return replace(one, outcome=replace(one.outcome, samples=(), facts=facts))

    def _lighter(self, key: str, value: Any) -> Any:
        if type(value) is str:
            return self._known.setdefault(value, value)
        if type(value) is not list or not value:
            return value
        listed = self._lists.get(id(value))
        if listed and listed[0] is value:  # the store returns lists of many launches as one object
            return listed[1]
        types = set(map(type, value))
        if types == {str}:
            self._lists[id(value)] = value, self._known.setdefault(tuple(value), value)
            return self._lists[id(value)][1]
        if types <= {int, float} and classify(key).kind == "volatile":
            return fmean(value)
        return value


ASKED = (
    *("mpi.transport", "placement.", "container.", "command.argv", "build.", "wrapper.", "env."),
    LEVEL,
)
"""Facts of launches that the study sets, known before they start."""


def judged(directory: Path) -> Judgement:
    """Return the judgement of one study directory, which is only read."""
    plan = read_plan(directory)
    with Store(directory) as store:
        store.check_plan(plan.sha256)
        return conclude(plan, store)


def conclude(plan: Plan, store: Store, evidence: Evidence | None = None) -> Judgement:
    """Return the judgement of everything that `store` holds, whether the study is over or not.

    `evidence` is that of all its launches, if the caller has it already.
    """
    attempts: list[Stored] = []
    lag = Lag()
    if evidence is None:
        whole = store.launches(void=True, arrays=True)
        evidence = collect(plan, _noted(whole, attempts, lag))
    else:
        whole = planned(plan, store.launches(samples=False, void=True))
        deque(_noted(whole, attempts, lag), maxlen=0)
    plan = plan.design.chosen(plan, evidence)
    arms = [arm.name for arm in plan.study.arms]
    spent = plan.used_up(sum(one.outcome.wall_s for one in attempts))
    # A damaged study cannot be continued: it is judged at the looks that its whole rows reach.
    ended = spent or bool(store.lost)
    over = {s.label: ended or _over(plan, evidence, s.label) for s in plan.study.benchmarks}
    facts = launch_facts(plan, attempts)
    gathered = store.gathered()
    audit = _audited(plan, store, gathered, _as_asked(plan, facts, attempts))
    nodes = of_nodes(gathered)
    voided = [one for one in attempts if one.void]
    steps_s = [s for one in attempts if (s := one.outcome.facts.get(notices.STEP))]
    needless = in_vain(
        read_accepted(store.directory), {d.key for d in audit.differences}, audit.equal
    )
    carriers = transport.carriers(plan, facts)
    judgement = judgement_of(
        plan,
        evidence,
        directory=str(store.directory),
        over=over,
        differences=audit.differences,
        lost=store.lost,
        facts={arm: _merged(facts, nodes.get(arm, {}), arm) for arm in arms},
        launches=attempts,
    )
    return replace(
        judgement,
        equal_facts=len(audit.equal),
        carriers=carriers,
        figures=FiguresOfLaunches(plan, evidence, judgement.started or 0.0),
        notices=(
            *transport.differing(plan, carriers, facts),
            *allocations.allocations(plan, evidence, attempts),
            *notices.notices_of_lost(store.lost),
            *notices.voided(voided),
            *notices.clock_set(steps_s),
            *notices.shortened(attempts),
            *notices.changed(_changed(facts)),
            *notices.silent(nodes),
            *lag.notices(),
            *sharing(plan, facts),
            *notices.budget(_cut_short(plan, evidence) if spent else ()),
            *notices.accepted(needless),
            *judgement.notices,
        ),
    )


def judgement_of(
    plan: Plan,
    evidence: Evidence,
    *,
    directory: str,
    over: Mapping[str, bool],
    differences: Sequence[Difference] = (),
    lost: Lost | None = None,
    facts: Mapping[str, Facts] | None = None,
    launches: Sequence[Stored] = (),
) -> Judgement:
    """Return the judgement of `evidence`, wherever it comes from.

    `over` is for each benchmark whether no further launch will come. A verdict is withheld if
    `differences` has an unexplained one, if clock or printout were too coarse, or if what was
    `lost` could change it. `facts` are those of the arms, `launches` all attempts.
    """
    heads = _heads(plan, evidence, over)
    going = {f.benchmark for f in heads if not (over[f.benchmark] or _settled(plan, evidence, f))}
    rows = tuple(case for finding in heads for case in cases(plan, evidence, finding))
    coarse = coarse_of(plan, evidence, rows)
    reference = plan.study.arms[0].name

    def why(f: Finding) -> Because | None:
        if unequal := unexplained(differences, {f.arm, f.reference or reference}):
            return unequal
        steps = coarse.get((f.benchmark, f.arm, f.metric.sampled or f.metric.name, f.case))
        if steps and f.verdict.word not in (Word.RELIABILITY, Word.WITHHELD):  # by failures
            return Reason.TOO_COARSE, steps
        code = notices.why_withheld(lost, f) if lost else None
        return (code, {}) if code else None

    found = track(plan, evidence)
    judgement = Judgement(
        study=plan.study,
        plan_sha256=plan.sha256,
        directory=directory,
        sentence="",
        complete=not going,
        headlines=heads,
        cases=rows,
        tallies=tallies(plan, evidence),
        differences=tuple(differences),
        facts=facts or {},
        equal_facts=0,
        notices=notices.notices(plan, evidence, found.points, heads, [f for f in heads if why(f)]),
        versions={**plan.software, "python": platform.python_version(), "reported by": __version__},
        looks=plan.looks.at,
        level=plan.looks.confidence,
        others=tuple(other for finding in heads for other in others(plan, evidence, finding)),
        layers=layers(plan, evidence, over=all(f.verdict.final for f in heads)),
        endpoints=tuple(_endpoints(plan, evidence, heads, over)),
        pairs=tuple(f for label in plan.metrics for f in pairs(plan, evidence, label)),
        design=plan.design.sentence(),
        distributions=distributions(plan, evidence),
        **found._asdict(),
    )
    withheld = withhold(with_findings(judgement, lambda f: _so_far(f, going)), why)
    rows_of = lens.judged(Seen(plan, evidence, withheld, over, launches))
    return lens.with_leads(replace(withheld, lenses=rows_of))


def _heads(plan: Plan, evidence: Evidence, over: Mapping[str, bool]) -> tuple[Finding, ...]:
    return tuple(
        _with_error(finding, plan, evidence)
        for selection in plan.study.benchmarks
        for finding in headlines(plan, evidence, selection, over=over[selection.label])
    )


def _with_error(finding: Finding, plan: Plan, evidence: Evidence) -> Finding:
    """Return `finding`; if it has no complete block, with the error of its first failed launch."""
    if finding.verdict.code is not Reason.NO_COMPLETE_BLOCK:
        return finding
    arms, label = {plan.study.arms[0].name, finding.arm}, finding.benchmark
    attempts = [*evidence.entries(label), *evidence.voided]
    of_both = [e for e in attempts if e.launch.benchmark == label and e.launch.arm in arms]
    failed = [e for e in of_both if e.error]
    if not failed:
        return finding
    first = min(failed, key=lambda e: e.started)
    figures = {"arm": first.launch.arm, "error": first.error}
    return replace(finding, verdict=replace(finding.verdict, figures=figures))


def _settled(plan: Plan, evidence: Evidence, finding: Finding) -> bool:
    ended = plan.study.settings.decides == "headline" or cases_settled(plan, evidence, finding)
    return ended and finding.verdict.final and finding.verdict.word is not Word.NO_DATA


def _so_far(f: Finding, going: Collection[str]) -> Finding:
    still = f.benchmark in going and (f.case is not None or f.reference or not f.decides)
    return replace(f, verdict=replace(f.verdict, final=False)) if still else f


def _cut_short(plan: Plan, evidence: Evidence) -> list[str]:
    """Return the benchmarks that the time budget ended, as neither blocks nor evidence did."""
    return [
        selection.label
        for selection in plan.study.benchmarks
        if not _over(plan, evidence, selection.label)
        and not all(_settled(plan, evidence, f) for f in headlines(plan, evidence, selection))
    ]


def _endpoints(
    plan: Plan, evidence: Evidence, heads: Sequence[Finding], over: Mapping[str, bool]
) -> list[Finding]:
    """Return headlines at the endpoints that do not decide; these end when the benchmark does."""
    going_on = {f.benchmark for f in heads if not f.verdict.final and not over[f.benchmark]}
    return [
        finding
        for label in plan.metrics
        for finding in endpoints(plan, evidence, label, over=label not in going_on)
    ]


def _over(plan: Plan, evidence: Evidence, label: str) -> bool:
    """Return whether no launch of `label` is left to make, whatever its verdict."""
    return last_block_over(plan, evidence, label) or bool(given_up(plan, evidence, label))


def _changed(
    facts: Mapping[str, Mapping[str, Sequence[Facts]]],
) -> dict[tuple[str, str], list[str]]:
    """Return the facts that should have stayed and did not, by benchmark and arm."""
    return {
        (label, arm): changed
        for label, by_arm in facts.items()
        for arm, several in by_arm.items()
        if (changed := unsteady(several))
    }


def _noted(launches: Iterable[Stored], attempts: list[Stored], lag: Lag) -> Iterator[Stored]:
    """Yield `launches`; each is also added to `lag`, and without samples to `attempts`."""
    light = Light()
    for one in launches:
        lag.add(one)
        attempts.append(light(one))
        yield one


def launch_facts(plan: Plan, attempts: Iterable[Stored]) -> dict[str, dict[str, list[Facts]]]:
    """Return the facts of every good launch by benchmark and arm, warm-up included."""
    swapped = ("rank.affinity",) if plan.design.at_once else ()  # between the arms of a duet
    found: dict[str, dict[str, list[Facts]]] = {}
    for stored in attempts:
        if stored.void is None and stored.outcome.state is State.OK:
            arms = found.setdefault(stored.launch.benchmark, {})
            facts = {k: v for k, v in stored.outcome.facts.items() if k not in swapped}
            arms.setdefault(stored.launch.arm, []).append(facts)
    return found


def audited(plan: Plan, store: Store) -> Audit:
    """Return the audit: what differs between arms or changed in one, and what is equal."""
    attempts = list(map(Light(), planned(plan, store.launches(samples=False))))
    facts = _as_asked(plan, launch_facts(plan, attempts), attempts)
    return _audited(plan, store, store.gathered(), facts)


def _as_asked(
    plan: Plan,
    launches: Mapping[str, Mapping[str, Sequence[Facts]]],
    attempts: Iterable[Stored],
) -> Mapping[str, Mapping[str, Sequence[Facts]]]:
    """Return `launches`, with the facts ASKED of benchmarks that lack a good launch in some arm.

    Launches that failed have these too; without them the arms would not even differ in the factor.
    Other facts are not compared there, because only a launch that runs can show them.
    """
    arms = [arm.name for arm in plan.study.arms]
    lacking = {label for label in plan.layers if not launches.get(label, {}).keys() >= {*arms}}
    asked: dict[str, dict[str, list[Facts]]] = {label: {} for label in lacking}
    for one in attempts:
        label, arm = one.launch.benchmark, one.launch.arm
        if label in lacking and arm not in asked[label]:
            facts = {k: v for k, v in one.outcome.facts.items() if matches(k, ASKED)}
            asked[label][arm] = [facts]
    return {**launches, **asked}


def _audited(
    plan: Plan,
    store: Store,
    gathered: Sequence[Gathered],
    launches: Mapping[str, Mapping[str, Sequence[Facts]]],
) -> Audit:
    accepted = read_accepted(store.directory)
    audit = audit_study(plan.study, plan.layers, of_nodes(gathered), launches, accepted)
    over_time = changes(gathered, plan.study, tuple(plan.layers.values()), accepted)
    return Audit(ranked([*over_time, *audit.differences]), audit.equal)


def _merged(
    facts: Mapping[str, Mapping[str, Sequence[Facts]]], nodes: Mapping[str, Facts], arm: str
) -> Facts:
    """Return the typical facts of an arm: of its `nodes`, then of launches of any benchmark."""
    merged: dict[str, object] = dict(typical(nodes.values()))
    for by_arm in facts.values():
        for key, value in typical(by_arm.get(arm, [])).items():
            merged.setdefault(key, value)
    return dict(sorted(merged.items()))
