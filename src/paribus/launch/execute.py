"""Running a plan: block by block, each launch stored before anything is computed from it.

`execute` gathers the facts of all nodes, audits them, launches block after block until each
benchmark is decided, out of blocks or out of budget, and returns the evidence. A sitting is one
call of it; `--resume` is another sitting of the same study.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import dropwhile, takewhile

from paribus.audit import first
from paribus.audit.accepted import read_accepted
from paribus.audit.audit import audit_study, changes, of_nodes
from paribus.audit.gate import GATE
from paribus.benchmarks import benchmark_of
from paribus.core import (
    Benchmark,
    Difference,
    Facts,
    Finding,
    Launch,
    MachineError,
    Outcome,
    ParibusError,
    Progress,
    Selection,
    State,
    StoreError,
    Word,
)
from paribus.judge.cases import cases_settled
from paribus.judge.evidence import Evidence, collect
from paribus.judge.headlines import given_up, headlines
from paribus.launch.arms import Ready
from paribus.launch.gathering import asked, gather, gather_arm, known_before
from paribus.launch.launching import (
    Ended,
    Prepared,
    outcome_of,
    prepare,
    start,
    start_together,
)
from paribus.launch.local import clear_leftovers
from paribus.launch.progress import Clock, progress, with_step
from paribus.launch.station import Station
from paribus.launch.unswitched import Switching, switches_of
from paribus.plan import Plan
from paribus.stats.probes import REDO_MOST, ProbeOfLaunch, discordant_blocks
from paribus.store import Gathered, Store
from paribus.store.journal import Journal

HELD_UP = "the scheduler held up this block; the block was rerun"
RETRY = "a launch of this block failed; the block was rerun"
HOSTS = "a host or its network failed during this block; the block was rerun"
DISTURBED = "the machine was disturbed during this block; the block was rerun"
STATES = "the machine changed its state during this block; the block was rerun"


def why_again(
    plan: Plan,
    evidence: Evidence,
    block: Sequence[Launch],
    outcomes: Sequence[Outcome],
    *,
    redone: int,
    held: bool,
) -> str:
    """Return why a block is to be rerun ("" if it stands): never for what it measured.

    `redone` is the number of blocks of the benchmark that were rerun for what the machine did;
    `held`: the scheduler held this one up. A shuffled block is a single launch, which keeps its
    place.

    A launch that the study's own time limit cut off is not repeated: that would weed out the slow.
    One that exceeded our limit, which is far beyond any launch so far, hung.
    """
    label, number = block[0].benchmark, block[0].block
    our_limit = next(one for one in plan.study.benchmarks if one.label == label).timeout_s is None
    bad = (State.FAILED, State.INVALID, *((State.TIMEOUT,) if our_limit else ()))
    if any(outcome.state is State.FAULT for outcome in outcomes):
        return HOSTS
    if any(outcome.state in bad for outcome in outcomes):
        return RETRY
    if held:
        return HELD_UP
    if redone + 1 > REDO_MOST * number:
        return ""
    if any(outcome.facts.get(GATE) for outcome in outcomes):
        return DISTURBED
    if plan.shuffled(number):
        return ""  # launches of different arms are not close in time, and cannot be compared
    probes = [
        ProbeOfLaunch((entry.launch.benchmark, entry.launch.block), arm, entry.probe)
        for units in evidence.blocks[label].values()
        for arm, entry in units.items()
        if entry.probe
    ]
    return STATES if (label, number) in discordant_blocks(probes) else ""


UNFINISHED = "the study was interrupted during this block"


def resume(plan: Plan, store: Store) -> Evidence:
    """Void the launches of unfinished blocks, and return the evidence of earlier sittings."""
    stored = store.counting()
    warm_up = takewhile(lambda one: one.launch.block == 0, store.launches(samples=False, void=True))
    evidence = collect(plan, warm_up)
    plan = plan.design.chosen(plan, evidence)
    most = max(stored, default=0)
    for block in plan.blocks():
        if block[0].number > most:
            break
        for label in {launch.benchmark for launch in block}:
            planned = [launch.number for launch in block if launch.benchmark == label]
            done = [number for number in planned if number in stored]
            if done and len(done) < len(planned):
                store.void(done, UNFINISHED)
    return collect(plan, store.launches(void=True))


def changed(plan: Plan, store: Store, more: Sequence[Gathered] = ()) -> tuple[Difference, ...]:
    """Return the facts of nodes that changed since they were first gathered, and should not have.

    `more` are facts that are not stored yet.
    """
    accepted = read_accepted(store.directory)
    gathered = [*store.gathered(), *more]
    return changes(gathered, plan.study, tuple(plan.layers.values()), accepted)


def redone(store: Store, reasons: Collection[str]) -> dict[str, int]:
    """Return how many blocks of each benchmark, by label, were rerun for one of `reasons`."""
    blocks = {
        (one.launch.benchmark, one.launch.block)
        for one in store.launches(samples=False, void=True)
        if one.void in reasons
    }
    return Counter(label for label, _ in blocks)


WARM_UP_LIMIT_S = 300.0
"""Limit of a warm-up launch, of which nothing is known yet."""


def limit(plan: Plan, evidence: Evidence, selection: Selection) -> float:
    """Return the time limit of a launch in seconds, the same for all arms.

    Unless the study gives one, it is 20 times the slowest warm-up launch, and at least 10 s: far
    beyond what any launch needs, so that it only ends those that hang. A tighter limit would
    censor the figures.
    """
    if selection.timeout_s is not None:
        return selection.timeout_s
    first: dict[str, float] = {}
    for entry in evidence.entries(selection.label):
        if not evidence.counted(entry.launch):
            first.setdefault(entry.launch.arm, entry.wall_s)
    if len(first) < len(plan.design.holds(selection.label, 0)):
        return WARM_UP_LIMIT_S
    return max(10.0, 20 * max(first.values()))


Watch = Callable[[Progress], None]
Check = Callable[[Plan, Mapping[str, Mapping[str, Facts]], Mapping[str, str]], None]
"""Gets the plan, the facts of nodes by arm and node, and accepted differences; raises UserError."""

GATHER_EVERY_S = 600.0
"""Seconds after which the facts of all nodes are gathered again; they are at the end as well."""

MACHINE = "the measuring machine lacked space, inodes or another resource"
FALLEN = "the arm was not at its level when the launch ended"


@dataclass(slots=True)
class _Sitting:
    """The state of one sitting of a study."""

    plan: Plan
    store: Store
    stations: Mapping[str, Station]
    ready: Mapping[str, Ready]
    switches: Switching
    watch: Watch
    anyway: bool
    check: Check | None
    evidence: Evidence = field(init=False)
    benchmarks: Mapping[str, tuple[Selection, Benchmark]] = field(init=False)
    findings: dict[str, tuple[Finding, ...]] = field(init=False)
    redone: dict[str, int] = field(init=False)  # blocks rerun for what the machine did, by label
    launches_s: float = field(init=False)  # seconds spent in launches, those of all sittings
    lent: bool = field(init=False)  # whether a scheduler lends some hosts
    begin: float = field(default_factory=time.monotonic)
    arm: str = ""  # to which a study of sessions is switched
    allocation: int | None = None  # the index in the plan of that of the blocks so far
    round: int = 0  # of a monitored study: the last block number
    due: float = 0.0  # when its next round starts, by time.monotonic
    gathered: float = 0.0  # when the facts of nodes were gathered, by time.monotonic
    launched: bool = False  # whether this sitting started any launch
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.evidence = resume(self.plan, self.store)
        self.switches.remember(self.store)
        every = self.plan.study.benchmarks
        self.benchmarks = {one.label: (one, benchmark_of(one)) for one in every}
        self.findings = {one.label: headlines(self.plan, self.evidence, one) for one in every}
        self.redone = redone(self.store, (STATES, DISTURBED))
        self.launches_s = self.store.launches_s()
        self.lent = any(one.lease for one in self.stations.values())


def execute(
    plan: Plan,
    store: Store,
    stations: Mapping[str, Station],
    ready: Mapping[str, Ready],
    watch: Watch,
    *,
    anyway: bool = False,
    check: Check | None = None,
) -> Evidence:
    """Run what is left of `plan` and return the evidence of all its counting launches.

    Ends when every benchmark has final headlines or its last block, or the budget is used up.
    Launches of a block that an earlier sitting left unfinished are voided and rerun.
    `stations` are by name of an arm: one for several arms, or one for each. `watch` gets the
    progress before each launch. Raises UnequalError before the first launch if the arms do not
    differ, or, unless `anyway`, if they differ in more than the factor or from an earlier sitting;
    and what `check` raises.
    """
    journal = Journal(store)
    clear_leftovers(journal.left())
    staged, logs = plan.design.staged(), store.directory / "logs"
    with switches_of(staged, journal, logs, stations) as switches:
        journal.end()
        journal.begin([*{one.here for one in stations.values()}, *switches.scratch])
        try:
            switches.restore()
            sitting = _Sitting(plan, store, stations, ready, switches, watch, anyway, check)
            _execute(sitting)
            return sitting.evidence
        finally:
            # If that cannot be stored, the next sitting looks once more, for what is gone by then.
            with suppress(StoreError):
                journal.end()


def _execute(sitting: _Sitting) -> None:
    if not all(_settled(sitting, label) for label in sitting.benchmarks):
        _gather(sitting)
        _audit(sitting)
        _do_blocks(sitting)
        _gather(sitting)
    _switch(sitting, "")  # After an error or Ctrl-C, `switches` does that as it ends.
    sitting.watch(_progress(sitting, None))


def _do_blocks(sitting: _Sitting) -> None:
    """Launch block after block, until all are settled, the budget is used up or nodes changed."""
    for block in _blocks(sitting):
        labels = {launch.benchmark for launch in block}
        wanted = {label for label in labels if not _done(sitting, label, block[0])}
        if sitting.plan.used_up(sitting.launches_s):
            return
        if not wanted:
            if all(_settled(sitting, label) for label in sitting.benchmarks):
                return
            continue
        _wait_for_round(sitting, block[0].block)
        if time.monotonic() - sitting.gathered > GATHER_EVERY_S and _changed(sitting):
            return
        whole = [launch for launch in block if launch.benchmark in wanted]
        if sitting.lent:
            from paribus.launch.lease import check_share, check_time

            sitting.allocation = check_share(sitting.plan, block[0].block, sitting.allocation)
            check_time(sitting.stations.values(), sitting.evidence, whole)
        _do_block(sitting, whole)
        for label in wanted:
            selection = sitting.benchmarks[label][0]
            sitting.findings[label] = headlines(sitting.plan, sitting.evidence, selection)


def _blocks(sitting: _Sitting) -> Iterator[tuple[Launch, ...]]:
    """Yield the blocks of the plan; after the warm-up, those of the design chosen by it."""

    def warms_up(block: tuple[Launch, ...]) -> bool:
        return block[0].block == 0

    yield from takewhile(warms_up, sitting.plan.blocks())
    sitting.plan = sitting.plan.design.chosen(sitting.plan, sitting.evidence)
    yield from dropwhile(warms_up, sitting.plan.blocks())


def _gather(sitting: _Sitting) -> None:
    """Store the facts of every node of every arm; in a study of sessions `_switch` does that."""
    sitting.gathered = time.monotonic()
    if not sitting.plan.session:
        study = sitting.plan.study  # without the stages between its arms, which have their nodes
        arms = gather(study, sitting.ready, sitting.stations, sitting.switches, lambda _: None)
        _keep(sitting, arms)


def _keep(sitting: _Sitting, several: Sequence[Gathered]) -> None:
    """Store facts of nodes; before the first launch raise UnequalError if they have changed.

    Then they are not stored: on unchanged nodes the study can still be continued.
    """
    if not sitting.launched:
        found = changed(sitting.plan, sitting.store, several)
        first.check_unchanged(sitting.plan.study, found, anyway=sitting.anyway)
    sitting.store.keep_gathered(several)


def _audit(sitting: _Sitting) -> None:
    """Raise UnequalError if the facts of all arms, once known, differ in more than the factor."""
    plan, nodes = sitting.plan, of_nodes(sitting.store.gathered())
    if all(arm.name in nodes for arm in plan.study.arms):
        accepted = read_accepted(sitting.store.directory)
        ready = {arm.name: sitting.ready[arm.name] for arm in plan.study.arms}
        known = asked(plan.study, ready, sitting.switches)
        answer = audit_study(plan.study, plan.layers, nodes, known, accepted)
        first.check(plan.study, answer, anyway=sitting.anyway)
        if sitting.check:
            sitting.check(plan, nodes, accepted)


def _changed(sitting: _Sitting) -> bool:
    """Gather facts anew, and return whether an arm has changed, as by an update of a driver.

    Then the study ends, as launches before and after it must not be averaged; the audit says why.
    """
    _gather(sitting)
    return any(one.kind == "unexplained" for one in changed(sitting.plan, sitting.store))


def _wait_for_round(sitting: _Sitting, number: int) -> None:
    """Sleep before the first block of a round of a monitored study until the round is due."""
    every = sitting.plan.study.settings.every_s
    if every and number != sitting.round:
        now = time.monotonic()
        time.sleep(max(0.0, sitting.due - now))
        sitting.round, sitting.due = number, max(sitting.due, now) + every


def _done(sitting: _Sitting, label: str, first: Launch) -> bool:
    """Return whether the block that begins with `first` needs no launch of `label`."""
    units = sitting.evidence.blocks.get(label, {}).get(first.block)
    done = units is not None and (first.arm in units or not sitting.plan.shuffled(first.block))
    return done or _settled(sitting, label)


def _settled(sitting: _Sitting, label: str) -> bool:
    """Return whether more blocks of a benchmark would change nothing: decided, or given up.

    The sizes of a benchmark that scales are compared block by block, so they go on together.
    """
    plan, evidence = sitting.plan, sitting.evidence
    if given_up(plan, evidence, label):
        return True
    if not plan.design.has_end:
        return False
    sizes = [one for one in plan.study.sizes_with(label) if not given_up(plan, evidence, one)]
    return len({len(evidence.blocks.get(one, {})) for one in sizes}) == 1 and all(
        finding.verdict.final
        and finding.verdict.word is not Word.NO_DATA
        and (plan.study.settings.decides == "headline" or cases_settled(plan, evidence, finding))
        for one in sizes
        for finding in sitting.findings[one]
    )


def _do_block(sitting: _Sitting, block: Sequence[Launch]) -> None:
    """Launch one block; if `why_again` demands it, launch it once more, as a whole.

    A session is too long to be rerun: if a launch fails there, the others give the median.
    """
    design = sitting.plan.design
    if design.session:
        for launch in block:
            _switch(sitting, launch.arm)
            _check_stands([launch], _do_launches(sitting, [launch]))
        return
    for attempt in range(2):
        if design.at_once:
            outcomes = _do_launches(sitting, block)
        else:
            outcomes = [_do_launches(sitting, [launch])[0] for launch in block]
        label = block[0].benchmark
        reason = why_again(
            sitting.plan,
            sitting.evidence,
            block,
            outcomes,
            redone=sitting.redone.get(label, 0),
            held=_held_up(sitting, outcomes),
        )
        if attempt == 1 or not reason:
            _check_stands(block, outcomes)
            return
        if reason in (STATES, DISTURBED):
            sitting.redone[label] = sitting.redone.get(label, 0) + 1
        sitting.store.void([launch.number for launch in block], reason)
        sitting.evidence.drop(block, reason)


def _held_up(sitting: _Sitting, outcomes: Sequence[Outcome]) -> bool:
    if not sitting.lent:
        return False
    from paribus.launch.lease import held_up

    return held_up(sitting.stations.values(), outcomes)


def _check_stands(block: Sequence[Launch], outcomes: Sequence[Outcome]) -> None:
    """Raise MachineError if a launch is a fault: it does not count, and its block is incomplete."""
    for launch, outcome in zip(block, outcomes, strict=True):
        if outcome.state is State.FAULT:
            raise _fault(launch, outcome)


def _do_launches(sitting: _Sitting, launches: Sequence[Launch]) -> list[Outcome]:
    """Run launches, several at the same time, and store each.

    Raises MachineError for a fault that is not over, so that further launches would meet it too.
    """
    sitting.launched = True
    sitting.watch(_progress(sitting, launches[0]))
    sitting.store.check_in_place()
    stations = [sitting.stations[launch.arm] for launch in launches]
    for station in stations:
        station.check_room(str(sitting.store.directory))
    arms = [sitting.ready[launch.arm].arm for launch in launches]
    with sitting.switches.at(() if sitting.plan.session else arms):
        prepared = [_prepare(sitting, launch, i) for i, launch in enumerate(launches)]
        before_s = sitting.clock.step()
        try:
            if len(launches) == 1:
                several = [Ended()]
                start(stations[0], prepared[0], several[0], sitting.clock.now)
            else:
                several = start_together(stations, prepared, sitting.clock.now)
        except MachineError:
            sitting.store.check_in_place()  # its files may be gone for that reason
            raise
        meanwhile_s = sitting.clock.step()
        fallen = sitting.switches.fallen(arms)
    sitting.store.check_in_place()  # first: a directory that was moved took the logs with it
    outcomes, over = [], []
    for launch, one, ended, station in zip(launches, prepared, several, stations, strict=True):
        outcome = with_step(outcome_of(one, ended), before_s, meanwhile_s)
        back = False  # whether hosts that failed can be reached again
        if one.hosts and outcome.state is not State.OK:
            from paribus.launch.reaching import checked_hosts

            ready = sitting.ready[launch.arm]
            outcome, back = checked_hosts(outcome, ready, station, one.hosts)
        void = FALLEN if fallen else None
        if outcome.state is State.FAULT:
            void = outcome.error if one.hosts else MACHINE
        attempt = sitting.store.append(launch, outcome, void=void)
        sitting.launches_s += outcome.wall_s
        sitting.evidence.add(launch, outcome, attempt, void)
        outcomes.append(outcome)
        over.append(back or ended.passed)
    if fallen:
        raise fallen
    for launch, outcome, is_over in zip(launches, outcomes, over, strict=True):
        if outcome.state is State.FAULT and not is_over:
            raise _fault(launch, outcome)
    return outcomes


def _fault(launch: Launch, outcome: Outcome) -> MachineError:
    return MachineError(
        f"no arm caused the failure, so the launch does not count: {outcome.error}",
        place=f"launch {launch.number}, {launch.benchmark} in {launch.arm}",
        fix="fix this, then continue with --resume: every stored launch is kept",
    )


def _prepare(sitting: _Sitting, launch: Launch, part: int) -> Prepared:
    """Return a launch ready to start; `part` is the index of its share of the cores in a duet."""
    study, what = sitting.plan.study, sitting.benchmarks[launch.benchmark]
    ready = sitting.ready[launch.arm]
    if sitting.plan.design.at_once:
        ready = replace(ready, cores=ready.parts[part])
    arm = ready.arm
    of_build: Facts = {}
    if arm.built:
        from paribus.launch.building import of_block

        arm, of_build = of_block(arm, arm.built, launch.block)
    of_study = known_before(study, ready, launch.benchmark, sitting.switches)
    scratch = f"{sitting.stations[launch.arm].scratch}/{launch.number}"
    return prepare(
        replace(ready, arm=arm),
        what,
        launch.seed,
        scratch,
        sitting.store.log_paths(launch),
        limit(sitting.plan, sitting.evidence, what[0]),
        {**of_study, **of_build, **_of_lease(sitting, launch)},
    )


def _of_lease(sitting: _Sitting, launch: Launch) -> Facts:
    if not sitting.lent:
        return {}
    from paribus.launch.lease import allocation_facts

    return allocation_facts(sitting.ready[launch.arm].arm, sitting.stations[launch.arm])


def _switch(sitting: _Sitting, arm: str) -> None:
    """In a study of sessions, switch the platform to `arm` ("": back), and audit its facts."""
    if not sitting.plan.session or arm == sitting.arm:
        return
    if sitting.arm:
        left, sitting.arm = sitting.arm, ""
        sitting.switches.revert(sitting.ready[left].arm)
    if arm:
        sitting.arm = arm
        ready = sitting.ready[arm]
        try:
            sitting.switches.apply(ready.arm)
        except ParibusError:
            sitting.switches.void_confused(sitting.store)
            raise
        _keep(sitting, gather_arm(sitting.plan.study, ready, sitting.stations[arm]))
        _audit(sitting)


def _progress(sitting: _Sitting, launch: Launch | None) -> Progress:
    undecided = [label for label in sitting.benchmarks if launch and not _settled(sitting, label)]
    return progress(
        sitting.plan,
        sitting.evidence,
        launch,
        undecided=undecided,
        findings=sitting.findings,
        elapsed_s=time.monotonic() - sitting.begin,
        launches_s=sitting.launches_s,
    )
