"""One launch: made ready, started, and what came of it. Exit code 0 alone proves nothing."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.audit.gate import GATE, gate
from paribus.border import KEPT, KEPT_BYTES, LEFT_OUT, UNREAD_BYTES, read_bounded, shorten
from paribus.core import (
    Adapter,
    AllocationError,
    Benchmark,
    Command,
    Completed,
    Facts,
    HostError,
    LaunchError,
    MachineError,
    Outcome,
    ParibusError,
    Parsed,
    ParseError,
    Request,
    Selection,
    Slot,
    State,
    StoreError,
)
from paribus.launch.arms import Ready, compose, concrete, discreet, slots_of
from paribus.launch.space import fault_of
from paribus.launch.station import Station
from paribus.probes.energy import JOULES
from paribus.probes.load import BESIDE, during

_ALONE = (
    "; each rank may have started alone, as under a launcher of another MPI than the"
    " program's: give the arm that MPI"
)


MOST_PRINTED = 256 << 20
"""Bytes of one output that are read; fewer are kept (kept.py)."""

TOLD_BYTES = 1 << 20
"""Bytes from the end of an output in which a failed launch says what it lacked."""

ENDING_S = 10.0
"""Seconds that a launch of a duet may take to end when the study is interrupted."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch about to start: its command, where its output goes, and its time limit.

    `shown` is the argv as it is stored: the command's, without values that may be secret.
    """

    command: Command
    selection: Selection
    benchmark: Benchmark
    slots: tuple[Slot, ...]
    facts: Facts
    out: Path
    err: Path
    scratch: str
    timeout_s: float
    shown: tuple[str, ...] = ()
    adapter: Adapter | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each rank, none for a launch on this machine."""
        return tuple(slot.node for slot in self.slots if slot.node)


def prepare(
    ready: Ready,
    what: tuple[Selection, Benchmark],
    seed: int,
    scratch: str,
    logs: tuple[Path, Path],
    timeout_s: float,
    facts: Facts | None = None,
) -> Prepared:
    """Return a launch of an arm ready to start, its output going to the two files of `logs`."""
    selection, benchmark = concrete(ready, *what), what[1]
    command, shown = (
        compose(one, selection, benchmark, seed=seed, scratch=scratch)
        for one in (ready, discreet(ready))
    )
    return Prepared(
        command=command,
        selection=selection,
        benchmark=benchmark,
        slots=slots_of(ready, selection, benchmark),
        facts=facts or {},
        out=logs[0],
        err=logs[1],
        scratch=scratch,
        timeout_s=timeout_s,
        shown=shown.argv,
        adapter=ready.arm.adapter,
    )


@dataclass(slots=True)
class Ended:
    """How a launch ended: `done` is None, and `failure` a sentence, if it could not start.

    `fault`: no arm is to blame for that, and with `passed` it is over.
    """

    started: float = 0.0
    done: Completed | None = None
    failure: str = ""
    fault: bool = False
    passed: bool = False
    broken: BaseException | None = None


def start(
    station: Station, launch: Prepared, ended: Ended, now: Callable[[], float] = time.time
) -> None:
    """Run `launch` on `station` and fill in how it ended; `now` gives the time of day.

    Raises MachineError where this machine lacks what it needs, AllocationError where the hosts were
    lent and are taken back; a host that lacks something is a fault.
    """
    ended.started = now()
    try:
        ended.done = station.run(
            launch.command,
            stdout=str(launch.out),
            stderr=str(launch.err),
            timeout_s=launch.timeout_s,
            scratch=launch.scratch,
        )
    except HostError as error:
        ended.failure, ended.fault, ended.passed = error.cause, True, True
    except LaunchError as error:
        ended.failure = str(error)
    except MachineError as error:
        if not launch.hosts or isinstance(error, AllocationError):
            raise
        ended.failure, ended.fault = f"{error.place}: {error.cause}", True


def start_together(
    stations: Sequence[Station], launches: Sequence[Prepared], now: Callable[[], float] = time.time
) -> list[Ended]:
    """Run `launches` at the same time, one on each station, and return how they ended."""
    several = [Ended() for _ in launches]

    def one(station: Station, launch: Prepared, ended: Ended) -> None:
        try:
            start(station, launch, ended, now)
        except BaseException as error:
            ended.broken = error

    threads = [
        # Daemons: after Ctrl-C the stations are closed, which ends launch and thread.
        threading.Thread(target=one, args=triple, daemon=True)
        for triple in zip(stations, launches, several, strict=True)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        for station in stations:
            station.cancel()
        for thread in threads:
            thread.join(ENDING_S)
        raise
    for ended in several:
        if ended.broken is not None:
            raise ParibusError(f"a launch of the duet failed: {ended.broken}") from ended.broken
    return several


def launched(station: Station, launch: Prepared) -> Outcome:
    """Return what came of `launch` on `station`; raises as `start` and `outcome_of`."""
    ended = Ended()
    start(station, launch, ended)
    return outcome_of(launch, ended)


def outcome_of(launch: Prepared, ended: Ended) -> Outcome:
    """Return what came of a launch that has ended; of long logs the middle is then left out.

    Raises StoreError if its logs are gone: that is no failure of the arm.
    """
    if not launch.out.parent.exists():
        raise _gone(launch.out.parent)
    outcome = _of_whole(launch, ended)
    kept = KEPT_BYTES if _reads(launch) or outcome.state is not State.OK else UNREAD_BYTES
    if not (missing := sum(_shortened(log, kept) for log in (launch.out, launch.err))):
        return outcome
    return replace(outcome, facts={**outcome.facts, LEFT_OUT: missing, KEPT: kept})


def _reads(launch: Prepared) -> bool:
    """Return whether figures or facts are read from what a launch prints."""
    reads = launch.benchmark.reads
    return reads is None or reads(launch.selection.parameters) or _debugs_nccl(launch.command)


def _shortened(log: Path, kept: int) -> int:
    """Return how many bytes of a log are left out from now on; none where nothing was printed."""
    try:
        return shorten(log, kept)
    except FileNotFoundError:
        return 0  # it did not start; that the log of one that ran is gone was seen before
    except OSError as error:
        raise _gone(log) from error


def _of_whole(launch: Prepared, ended: Ended) -> Outcome:
    """Return what came of a launch, whose logs are as it printed them."""
    if ended.done is None:
        argv, state = launch.shown, State.FAULT if ended.fault else State.FAILED
        return Outcome(state, ended.started, 0.0, None, argv, error=ended.failure)
    before, after = ended.done.load or ({}, {})
    launch = replace(launch, facts={**launch.facts, **before})
    outcome = _checked_places(_read(launch, ended.done, ended.started), launch.slots)
    outcome = _checked_network(outcome, launch, ended.done)
    outcome = _checked_machine(outcome, launch, ended.done)
    outcome = replace(outcome, facts={**outcome.facts, **_used(ended.done)})
    reasons = gate(before, after, outcome.facts, outcome.wall_s, ended.done.beside)
    facts = {**outcome.facts, **during(before, after), BESIDE: list(ended.done.beside)}
    return replace(outcome, facts={**facts, GATE: list(reasons)} if reasons else facts)


def _checked_machine(outcome: Outcome, launch: Prepared, done: Completed) -> Outcome:
    """Return `outcome`, as a fault of this machine if that lacked something when it failed."""
    if outcome.state is State.OK:
        return outcome
    said = "".join(_end_of(path) for path in (launch.out, launch.err))
    lacked = fault_of(done.room, done.exit_code, said)
    if not lacked:
        return outcome
    error = f"{lacked} ({outcome.error})"
    return replace(outcome, state=State.FAULT, samples=(), error=error)


def _end_of(log: Path) -> str:
    """Return the end of what a launch printed; raises StoreError if that cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(-min(TOLD_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read(TOLD_BYTES).decode(errors="replace")
    except OSError as error:
        raise _gone(log) from error


def _used(done: Completed) -> Facts:
    """Return what all processes of the launch used here, as far as that is known."""
    facts = {"launch.cpu_s": done.cpu_s, "launch.involuntary": done.involuntary}
    facts |= {JOULES[source]: used for source, used in done.energy_j.items()}
    return {key: value for key, value in facts.items() if value is not None}


def _read(launch: Prepared, done: Completed, started: float) -> Outcome:
    state, parsed, error, facts = State.OK, Parsed(()), "", dict(launch.facts)
    if done.timed_out:
        state, error = State.TIMEOUT, f"still busy after {done.wall_s:.0f} s, the time limit"
    elif done.exit_code != 0:
        state, error = State.FAILED, _why(done.exit_code, launch.out, launch.err)
    else:
        asked = launch.selection
        request = Request(asked.parameters, asked.ranks, done.wall_s)
        try:
            said = (launch.out, launch.err) if launch.benchmark.stderr else (launch.out,)
            text = printed_in(said) if _reads(launch) else ""
            parsed = launch.benchmark.parse(text, request)
            facts = {**launch.facts, **parsed.facts, **_of_nccl(launch, text)}
        except (ParseError, ValueError) as problem:
            line = (
                f", line {problem.line}" if isinstance(problem, ParseError) and problem.line else ""
            )
            by_itself = isinstance(problem, ParseError) and problem.alone
            alone = _ALONE if launch.selection.ranks > 1 and by_itself else ""
            state, error = State.INVALID, f"{problem} (logs/{launch.out.name}{line}){alone}"
    return Outcome(
        state=state,
        started=started,
        wall_s=done.wall_s,
        exit_code=done.exit_code,
        argv=launch.shown,
        samples=parsed.samples,
        facts=facts,
        error=error,
    )


def _of_nccl(launch: Prepared, printed: str) -> Facts:
    """Return what NCCL's debug log says, on stdout or stderr, where the launch asks for one."""
    if not _debugs_nccl(launch.command):
        return {}
    from paribus.probes.nccl_log import nccl_facts

    return nccl_facts(printed if launch.benchmark.stderr else f"{printed}\n{_text(launch.err)}")


def _debugs_nccl(command: Command) -> bool:
    return any("NCCL_DEBUG" in word for word in (*command.env, *command.argv))


def _checked_places(outcome: Outcome, slots: Sequence[Slot]) -> Outcome:
    """Return `outcome`, invalid if its ranks say that they were not where they were to be.

    Launchers and containers rebind behind one's back; two ranks on one core wait for the
    scheduler's tick, which is then what is measured.
    """
    if outcome.state is not State.OK:
        return outcome
    said = ""
    seen = outcome.facts.get("rank.affinity")
    asked = [str(slot.cores[0]) for slot in slots if slot.cores]
    if asked and seen is not None and seen != asked:
        said = f"the ranks were bound to cores {seen}, but {asked} were requested"
    # Nodes may call themselves otherwise than the study does.
    seen, wanted = outcome.facts.get("rank.hosts"), [slot.node for slot in slots]
    if any(wanted) and seen is not None and _grouped(seen) != _grouped(wanted):
        said = f"the ranks were on hosts {seen}, but {wanted} were requested"
    return replace(outcome, state=State.INVALID, samples=(), error=said) if said else outcome


def _checked_network(outcome: Outcome, launch: Prepared, done: Completed) -> Outcome:
    """Return `outcome` with what the adapters counted, invalid if the arm's carried no messages."""
    if launch.adapter is None:
        return outcome
    from paribus.launch.adapters import astray, counted

    outcome = replace(outcome, facts={**outcome.facts, **counted(launch.adapter, done.carried)})
    if outcome.state is not State.OK:
        return outcome
    said = astray(launch.adapter, done.carried, launch.benchmark, done.wall_s)
    return replace(outcome, state=State.INVALID, samples=(), error=said) if said else outcome


def _grouped(names: Sequence[str]) -> list[int]:
    """Return for each name a number: equal for ranks that are grouped alike."""
    first: dict[str, int] = {}
    return [first.setdefault(name, len(first)) for name in names]


def printed_in(logs: Iterable[Path]) -> str:
    """Return what a launch printed into `logs`, apart: stdout may end in mid-line.

    Raises ValueError for too much, StoreError if one is gone.
    """
    return "\n".join(map(_text, logs))


def _text(log: Path) -> str:
    """Return what a launch printed; raises ValueError for too much, StoreError if it is gone."""
    try:
        return read_bounded(log, MOST_PRINTED, "an output").decode(errors="replace")
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise ValueError(error.strerror) from None
        raise _gone(log) from error


def _gone(log: Path) -> StoreError:
    return StoreError(
        "was deleted or became unreadable during a launch; the launch is not counted",
        place=str(log),
        fix="find out what deletes files in the study directory, then continue with --resume",
    )


def _why(exit_code: int, out: Path, err: Path) -> str:
    """Return one sentence on a failed launch: what it said of it, and where all of it is."""
    from paribus.launch.failures import why

    ended = f"ended by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    files = {"out": out, "err": err}
    texts = {name: _end_of(path) for name, path in files.items()}
    line, where = why(texts["out"], texts["err"])
    if not line:
        return f"{ended}, no output (logs/{out.name})"
    return f"{ended}: {line} (logs/{files[where].name})"
