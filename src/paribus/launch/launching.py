"""One launch: prepared, started, and judged by its exit code, output, places, network, machine.

`prepare` makes a Prepared, `start` fills in an Ended, `outcome_of` reads the logs and returns an
Outcome with samples and facts. Exit code 0 alone proves nothing: the output must be whole, and
the ranks and the arm's adapter must have been where the study says.
"""

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
"""The most bytes of one output that are read; fewer are kept (border/kept.py)."""

END_BYTES = 1 << 20
"""Bytes from the end of an output that are searched for why a launch failed."""

ENDING_S = 10.0
"""Seconds that a launch of a duet may take to end when the study is interrupted."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch about to start: its command, where its output goes, and its time limit."""

    command: Command
    selection: Selection
    benchmark: Benchmark
    slots: tuple[Slot, ...]  # where its ranks are to be
    facts: Facts  # known before it starts
    out: Path
    err: Path
    scratch: str
    timeout_s: float
    shown: tuple[str, ...] = ()  # its argv as stored: without values that may be secret
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
    """How a launch ended."""

    started: float = 0.0  # seconds since the epoch
    done: Completed | None = None  # None if it could not start
    failure: str = ""  # a sentence on why not
    fault: bool = False  # no arm is to blame for that
    passed: bool = False  # the fault is over
    broken: BaseException | None = None  # an unexpected error in the thread of a duet


def start(
    station: Station, launch: Prepared, ended: Ended, now: Callable[[], float] = time.time
) -> None:
    """Run `launch` on `station` and fill in `ended`; `now` gives the time of day.

    Raises MachineError if this machine lacks something that the launch needs, and AllocationError
    if a scheduler took its hosts back. That a host lacks something is a fault in `ended`.
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

    def run(station: Station, launch: Prepared, ended: Ended) -> None:
        try:
            start(station, launch, ended, now)
        except BaseException as error:
            ended.broken = error

    threads = [
        # Daemons: after Ctrl-C the stations are closed, which ends launch and thread.
        threading.Thread(target=run, args=triple, daemon=True)
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
    """Run `launch` on `station` and return its outcome; raises as `start` and `outcome_of`."""
    ended = Ended()
    start(station, launch, ended)
    return outcome_of(launch, ended)


def outcome_of(launch: Prepared, ended: Ended) -> Outcome:
    """Return the outcome of a launch that has ended, and shorten its logs if they are long.

    Raises StoreError if its logs are gone, which is no failure of the arm.
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
    """Shorten a log, and return the number of bytes left out; 0 where there is no log."""
    try:
        return shorten(log, kept)
    except FileNotFoundError:
        return 0  # it did not start: a missing log of one that ran was noticed before
    except OSError as error:
        raise _gone(log) from error


def _of_whole(launch: Prepared, ended: Ended) -> Outcome:
    """Return the outcome of a launch from its logs, before these are shortened."""
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
    """Return `outcome`, as a fault if it failed because this machine lacked something."""
    if outcome.state is State.OK:
        return outcome
    printed = "".join(_end_of(path) for path in (launch.out, launch.err))
    lacked = fault_of(done.room, done.exit_code, printed)
    if not lacked:
        return outcome
    error = f"{lacked} ({outcome.error})"
    return replace(outcome, state=State.FAULT, samples=(), error=error)


def _end_of(log: Path) -> str:
    """Return the last END_BYTES of a log; raises StoreError if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(-min(END_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
            return file.read(END_BYTES).decode(errors="replace")
    except OSError as error:
        raise _gone(log) from error


def _used(done: Completed) -> Facts:
    """Return the facts of what all processes of the launch used, as far as that is known."""
    facts = {"launch.cpu_s": done.cpu_s, "launch.involuntary": done.involuntary}
    facts |= {JOULES[source]: used for source, used in done.energy_j.items()}
    return {key: value for key, value in facts.items() if value is not None}


def _read(launch: Prepared, done: Completed, started: float) -> Outcome:
    """Return the outcome by time limit, exit code and what the benchmark reads in the output."""
    state, parsed, error, facts = State.OK, Parsed(()), "", dict(launch.facts)
    if done.timed_out:
        limit = f"{done.wall_s:.{0 if done.wall_s >= 1 else 1}f} s"
        state, error = State.TIMEOUT, f"still busy after {limit}, the time limit"
    elif done.exit_code != 0:
        state, error = State.FAILED, _why(done.exit_code, launch.out, launch.err)
    else:
        asked = launch.selection
        request = Request(asked.parameters, asked.ranks, done.wall_s)
        try:
            logs = (launch.out, launch.err) if launch.benchmark.stderr else (launch.out,)
            text = printed_in(logs) if _reads(launch) else ""
            parsed = launch.benchmark.parse(text, request)
            facts = {**launch.facts, **parsed.facts, **_of_nccl(launch, text)}
        except (ParseError, ValueError) as problem:
            line = alone = ""
            if isinstance(problem, ParseError):
                line = f", line {problem.line}" if problem.line else ""
                alone = _ALONE if launch.selection.ranks > 1 and problem.alone else ""
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
    """Return the facts in NCCL's debug log, on stdout or stderr, if the launch asks for one."""
    if not _debugs_nccl(launch.command):
        return {}
    from paribus.probes.nccl_log import nccl_facts

    return nccl_facts(printed if launch.benchmark.stderr else f"{printed}\n{_text(launch.err)}")


def _debugs_nccl(command: Command) -> bool:
    return any("NCCL_DEBUG" in word for word in (*command.env, *command.argv))


def _checked_places(outcome: Outcome, slots: Sequence[Slot]) -> Outcome:
    """Return `outcome`, invalid if its ranks report other cores or hosts than `slots`.

    Launchers and containers may rebind ranks. Two ranks on one core wait for the scheduler's
    tick, which is then what is measured.
    """
    if outcome.state is not State.OK:
        return outcome
    error = ""
    seen = outcome.facts.get("rank.affinity")
    asked = [str(slot.cores[0]) for slot in slots if slot.cores]
    if asked and seen is not None and seen != asked:
        error = f"the ranks were bound to cores {seen}, but {asked} were requested"
    # Only the grouping is compared: nodes may call themselves otherwise than the study does.
    seen, wanted = outcome.facts.get("rank.hosts"), [slot.node for slot in slots]
    if any(wanted) and seen is not None and _grouped(seen) != _grouped(wanted):
        error = f"the ranks were on hosts {seen}, but {wanted} were requested"
    return replace(outcome, state=State.INVALID, samples=(), error=error) if error else outcome


def _checked_network(outcome: Outcome, launch: Prepared, done: Completed) -> Outcome:
    """Return `outcome` with the bytes of RDMA ports; invalid if messages did not take the arm's."""
    if launch.adapter is None:
        return outcome
    from paribus.launch.adapters import astray, counted

    outcome = replace(outcome, facts={**outcome.facts, **counted(launch.adapter, done.carried)})
    if outcome.state is not State.OK:
        return outcome
    error = astray(launch.adapter, done.carried, launch.benchmark, done.wall_s)
    return replace(outcome, state=State.INVALID, samples=(), error=error) if error else outcome


def _grouped(names: Sequence[str]) -> list[int]:
    """Return for each name the index of its first occurrence among the different names.

    >>> _grouped(["b", "a", "b"])
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    return [first.setdefault(name, len(first)) for name in names]


def printed_in(logs: Iterable[Path]) -> str:
    """Return what a launch printed into `logs`, one after the other.

    A line end stands between them, as stdout may end in mid-line. Raises ValueError for more than
    MOST_PRINTED, StoreError if one is gone.
    """
    return "\n".join(map(_text, logs))


def _text(log: Path) -> str:
    """Return the text of a log; raises ValueError if it is too long, StoreError if it is gone."""
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
    """Return one sentence on a failed launch: how it ended, its error message, and the log."""
    from paribus.launch.failures import why

    ended = f"ended by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    files = {"out": out, "err": err}
    texts = {name: _end_of(path) for name, path in files.items()}
    line, where = why(texts["out"], texts["err"])
    if not line:
        return f"{ended}, no output (logs/{out.name})"
    return f"{ended}: {line} (logs/{files[where].name})"
