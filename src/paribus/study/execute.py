"""Carrying out a plan: block by block, each launch stored before anything is made of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.errors import LaunchError, ParseError
from paribus.host import remove_scratch
from paribus.judgement import Finding, Progress, Word
from paribus.model import (
    Benchmark,
    Command,
    Completed,
    Facts,
    Host,
    Launch,
    Outcome,
    Parsed,
    Request,
    Selection,
    State,
)
from paribus.probes.machine import load_facts, machine_facts
from paribus.store import Store
from paribus.study.arms import Ready, asked_of, compose, run_commands
from paribus.study.evidence import Evidence, collect
from paribus.study.judge import given_up, headlines
from paribus.study.load import benchmark_of
from paribus.study.plan import Plan

Watch = Callable[[Progress], None]

WARM_UP_LIMIT_S = 300.0
"""Limit of a warm-up launch, of which nothing is known yet."""

RETRY = "a launch of this block failed; the block was done again"
UNFINISHED = "the study was interrupted inside this block"


@dataclass(slots=True)
class _Session:
    """What one sitting of a study works with."""

    plan: Plan
    store: Store
    host: Host
    ready: Mapping[str, Ready]
    watch: Watch
    evidence: Evidence
    machine: Facts
    benchmarks: Mapping[str, tuple[Selection, Benchmark]]
    begin: float
    launches_s: float
    findings: dict[str, tuple[Finding, ...]]


def execute(
    plan: Plan, store: Store, host: Host, ready: Mapping[str, Ready], watch: Watch
) -> Evidence:
    """Carry out what is left of `plan` and return the evidence of all its counting launches.

    Ends when every benchmark has final headlines, its last block, or the budget is used up.
    Launches of a block that an earlier session left unfinished are voided and done again.
    """
    remove_scratch(_scratch_prefix(plan))
    evidence = _resume(plan, store)
    session = _Session(
        plan=plan,
        store=store,
        host=host,
        ready=ready,
        watch=watch,
        evidence=evidence,
        machine=machine_facts(),
        benchmarks={s.label: (s, benchmark_of(s)) for s in plan.study.benchmarks},
        begin=time.monotonic(),
        launches_s=store.launches_s(),
        findings={s.label: headlines(plan, evidence, s) for s in plan.study.benchmarks},
    )
    for block in plan.blocks():
        label = block[0].benchmark
        if _out_of_time(session):
            break
        if block[0].block in evidence.blocks.get(label, {}) or _settled(session, label):
            continue
        _do_block(session, block)
        session.findings[label] = headlines(plan, evidence, session.benchmarks[label][0])
    watch(_progress(session, None))
    return evidence


def _resume(plan: Plan, store: Store) -> Evidence:
    """Return the evidence of earlier sessions, unfinished blocks voided first."""
    stored = store.counting()
    for block in plan.blocks():
        numbers = [launch.number for launch in block if launch.number in stored]
        if numbers and len(numbers) < len(block):
            store.void(numbers, UNFINISHED)
    return collect(store)


def _settled(session: _Session, label: str) -> bool:
    """Return whether more blocks of a benchmark would change nothing: decided, or given up."""
    arms = [arm.name for arm in session.plan.study.arms]
    if given_up(session.evidence, label, arms):
        return True
    return all(
        finding.verdict.final and finding.verdict.word is not Word.NO_DATA
        for finding in session.findings[label]
    )


def _do_block(session: _Session, block: tuple[Launch, ...]) -> None:
    """Carry out one block; a block with a failed launch is done again, whole, once."""
    for attempt in range(2):
        outcomes = [_do_launch(session, launch) for launch in block]
        if attempt == 1 or all(outcome.state is State.OK for outcome in outcomes):
            return
        session.store.void([launch.number for launch in block], RETRY)
        session.evidence.drop(block)


def _do_launch(session: _Session, launch: Launch) -> Outcome:
    session.watch(_progress(session, launch))
    selection, benchmark = session.benchmarks[launch.benchmark]
    ready = session.ready[launch.arm]
    out, err = session.store.log_paths(launch)
    scratch = f"{_scratch_prefix(session.plan)}{launch.number}"
    command = compose(ready, selection, benchmark, seed=launch.seed, scratch=scratch)
    session.store.check_space()
    run_commands(ready.arm.before, launch.arm, "before")
    facts = {**session.machine, **asked_of(ready.arm), **load_facts()}
    started = time.time()
    done, failure = None, ""
    try:
        done = session.host.run(
            command,
            stdout=str(out),
            stderr=str(err),
            timeout_s=_limit(session, selection),
            scratch=scratch,
        )
    except LaunchError as error:
        failure = str(error)
    finally:
        # Also after Ctrl-C: what `before` switched is switched back.
        run_commands(ready.arm.after, launch.arm, "after")
    if done is None:
        outcome = Outcome(State.FAILED, started, 0.0, None, command.argv, error=failure)
    else:
        if launch.benchmark in ready.facts:
            facts["kernel.build"] = ready.facts[launch.benchmark]
        request = Request(selection.parameters, selection.ranks)
        outcome = _outcome(command, done, started, facts, benchmark, request, out, err)
        outcome = _checked_binding(outcome, ready.cores[: selection.ranks])
    session.store.append(launch, outcome)
    session.evidence.add(launch, outcome)
    session.launches_s += outcome.wall_s
    return outcome


def _limit(session: _Session, selection: Selection) -> float:
    """Return the time limit of a launch in seconds, the same for all arms.

    Unless the study gives one: 20 times the slowest warm-up launch and at least 10 s. Far beyond
    what any launch needs, so that it only ends those that hang; a limit that bites would censor.
    """
    if selection.timeout_s is not None:
        return selection.timeout_s
    warm_up = session.evidence.blocks.get(selection.label, {}).get(0, {})
    if len(warm_up) < len(session.plan.study.arms):
        return WARM_UP_LIMIT_S
    return max(10.0, 20 * max(entry.wall_s for entry in warm_up.values()))


def _outcome(
    command: Command,
    done: Completed,
    started: float,
    facts: Facts,
    benchmark: Benchmark,
    request: Request,
    out: Path,
    err: Path,
) -> Outcome:
    """Return what came of a process that has ended: exit code 0 alone proves nothing."""
    state, parsed, error = State.OK, Parsed(()), ""
    if done.timed_out:
        state, error = State.TIMEOUT, f"still busy after {done.wall_s:.0f} s, the time limit"
    elif done.exit_code != 0:
        state, error = State.FAILED, _why(done.exit_code, out, err)
    else:
        try:
            parsed = benchmark.parse(out.read_text(errors="replace"), request)
        except (ParseError, ValueError) as problem:
            line = (
                f", line {problem.line}" if isinstance(problem, ParseError) and problem.line else ""
            )
            state, error = State.INVALID, f"{problem} (logs/{out.name}{line})"
    return Outcome(
        state=state,
        started=started,
        wall_s=done.wall_s,
        exit_code=done.exit_code,
        argv=command.argv,
        samples=parsed.samples,
        facts={**facts, **parsed.facts},
        error=error,
    )


def _checked_binding(outcome: Outcome, cores: Sequence[int]) -> Outcome:
    """Return `outcome`, invalid if its ranks say that they were not bound as asked.

    Launchers and containers rebind behind one's back; two ranks on one core wait for the
    scheduler's tick, which is then what is measured.
    """
    seen = outcome.facts.get("rank.affinity")
    asked = [str(core) for core in cores]
    if outcome.state is not State.OK or not asked or seen is None or seen == asked:
        return outcome
    error = f"the ranks were bound to cores {seen}, not to {asked} as asked"
    return replace(outcome, state=State.INVALID, samples=(), error=error)


def _why(exit_code: int, out: Path, err: Path) -> str:
    """Return one sentence on a failed launch: the last thing it said, and where all of it is."""
    ended = f"ended by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    for path in (err, out):
        lines = [line.strip() for line in path.read_text(errors="replace").splitlines()]
        telling = [line for line in lines if any(c.isalnum() for c in line)]
        if telling:
            return f"{ended}: {telling[0][:200]} (logs/{path.name})"
    return f"{ended}, and nothing was printed (logs/{out.name})"


def _out_of_time(session: _Session) -> bool:
    return budget_used(session.plan, session.launches_s)


def budget_used(plan: Plan, launches_s: float) -> bool:
    """Return whether `launches_s` seconds spent in launches use up the plan's budget."""
    budget = plan.study.settings.budget_s
    return budget is not None and launches_s >= budget


def _progress(session: _Session, launch: Launch | None) -> Progress:
    plan, evidence = session.plan, session.evidence
    arms = [arm.name for arm in plan.study.arms]
    entries = [entry for label in evidence.blocks for entry in evidence.entries(label)]
    left = 0
    for label in session.benchmarks if launch else ():
        if not _settled(session, label):
            left += (plan.study.settings.blocks + 1) * len(arms) - len(evidence.entries(label))
    left_s = left * session.launches_s / len(entries) if entries else None
    budget = plan.study.settings.budget_s
    if left_s is not None and budget is not None:
        left_s = min(left_s, max(0.0, budget - session.launches_s))
    return Progress(
        launch=launch,
        blocks_done={label: len(evidence.complete(label, arms)) for label in session.benchmarks},
        blocks_most=plan.study.settings.blocks,
        launches_done=len(entries),
        launches_most=len(entries) + left,
        elapsed_s=time.monotonic() - session.begin,
        left_s=left_s,
        headlines=tuple(
            finding for label in session.benchmarks for finding in session.findings[label]
        ),
        failures=sum(entry.state is not State.OK for entry in entries),
    )


def _scratch_prefix(plan: Plan) -> str:
    # Short: Open MPI makes Unix sockets below it, whose paths may have 107 characters.
    return f"{tempfile.gettempdir()}/paribus-{plan.sha256[:10]}-"
