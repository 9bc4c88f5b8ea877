"""Allocations: the nodes that a scheduler lends the arms of a study, all of them at the same time.

For each request of the arms a job is submitted that sleeps and so holds its nodes; when all run,
their nodes are the hosts of the arms. A job's name, "paribus-KEY-1-ARM", follows from the study
directory and the arm, so that jobs which a killed Paribus left in the queue are found by it.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any, Self

from paribus.border import as_error, find_program, search_path
from paribus.core import (
    AllocationError,
    Command,
    Completed,
    LaunchError,
    MachineError,
    Scheduler,
    UserError,
    count,
    fold,
)
from paribus.hosts.reached import Host
from paribus.hosts.remote import PROBE_S, HostStation
from paribus.launch.local import Captured, LocalStation, capture
from paribus.launch.machine import HERE
from paribus.launch.station import Lease
from paribus.schedulers import slurm_energy
from paribus.schedulers.dialect import Job, Phase, key_of, without_log
from paribus.schedulers.known import dialect_of
from paribus.schedulers.slurm import Slurm
from paribus.schedulers.slurm_energy import Counters, joules

PAUSE_S = 1.0
"""Seconds between two tries to reach a host."""


class LentStation(HostStation):
    """A HostStation of hosts that are lent as long as `lease` runs.

    `tied`: what runs there ends with the lease. Otherwise the lease is checked after each launch,
    since the hosts may be another job's by then.
    """

    def __init__(
        self, hosts: Sequence[Host], local: LocalStation, lease: Lease, *, tied: bool
    ) -> None:
        super().__init__(hosts, local)
        self.lease = lease
        self._ended, self._counters = lease.ended, lease.counters
        self._tied = tied

    def _clear(self, node: int, nonce: str) -> str:
        """As HostStation does it; without an answer once more when the scheduler answers.

        Hosts that are reached through the scheduler, as by srun, answer only then.
        """
        boot = super()._clear(node, nonce)
        if boot or self._ended():  # this waits until the scheduler answers
            return boot
        deadline = time.monotonic() + PROBE_S
        while not boot and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            boot = super()._clear(node, nonce)
        return boot

    def run(self, command: Command, **how: Any) -> Completed:
        """Return how `command` ended; see HostStation. Raises AllocationError if the lease has."""
        before = self._counters()
        try:
            done = super().run(command, **how)
        except (LaunchError, MachineError) as error:
            if ended := self._ended():
                raise ended from error
            raise
        if not self._tied and (ended := self._ended()):
            raise ended
        if not before:
            return done
        used = joules(before, self._counters(), [one.name for one in self.hosts])
        return done if used is None else replace(done, energy_j={**done.energy_j, "slurm": used})


POLL_S = (2.0, 30.0)
"""Seconds between two questions to the scheduler: the least, and the most after a long wait."""

BUSY = 10.0
"""The pause after an answer is at least so many times as long as the answer took."""

SUBMIT_S = 120.0
"""Seconds that a busy scheduler may take to answer."""

LATE_S = 60.0
"""Seconds for which a scheduler may fail to answer, such as while its controller restarts."""

MOST_QUEUES = 8
"""Queues of a site that an error names."""

TOO_LATE = 124
"""The exit code of a command that was ended after SUBMIT_S."""


class Allocations:
    """The allocations of `asked`, requests by the name of the first arm that has each.

    A context manager, in which all jobs run. All requests are to one scheduler. `key`: the part of
    the jobs' names that is this study's; `place`: what errors name. `inside`: the job that Paribus
    itself runs in, "" for none; its nodes are used, and nothing is submitted. `nodes`: names of
    nodes to ask for. `had`: sets of nodes that an arm had before; others are asked for where the
    scheduler has some, or at least others than the last set. `notify` is called with lines on what
    is waited for.

    Set within the context: `hosts`, those of each request (pods by their addresses), whose `shell`
    is () where ssh leads to them; `ends_at`, when the first job ends (seconds since the epoch).

    Raises UserError for a request that the scheduler rejects or never runs, with its own words and
    the study's key, and while another Paribus has jobs of this `key`.
    """

    def __init__(
        self,
        asked: Mapping[str, Scheduler],
        key: str,
        place: str,
        notify: Callable[[str], None],
        inside: str = "",
        nodes: Sequence[str] = (),
        had: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.asked, self.place, self.notify = dict(asked), place, notify
        self.dialect = dialect_of(next(iter(asked.values())))
        self.key = key or secrets.token_hex(5)
        self.inside, self.nodes, self._had = inside, tuple(nodes), had or {}
        self.hosts: dict[Scheduler, tuple[Host, ...]] = {}
        self._nodes: dict[Scheduler, tuple[str, ...]] = {}
        self.ends_at = 0.0
        self._jobs: dict[str, str] = {}  # the arm that asked for each job
        self._begun: list[str] = []  # arms whose jobs may be in the queue
        self._ends: dict[str, float] = {}
        self._locked: IO[bytes] | None = None
        self._counts = False

    def __enter__(self) -> Self:
        path = search_path(os.environ.get("PATH"))
        missing = [one for one in self.dialect.PROGRAMS if find_program(one, path) is None]
        if missing:
            fix = "start Paribus where you submit jobs: a login node, or inside a job"
            raise UserError(
                f"{self.dialect.TITLE} is not here: no `{missing[0]}` on the PATH",
                place=self._at(next(iter(self.asked))),
                fix=f"put `{missing[0]}` on the PATH of this job" if self.inside else fix,
            )
        try:
            if self.inside:
                self._take_this_job()
            else:
                self._lock()
                self._check_rights()
                self._clear()
            self._obtain()
            self._counts = isinstance(self.dialect, Slurm) and slurm_energy.counts(
                _ask(slurm_energy.config()).stdout
            )
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._locked:
            # By name: an interrupt may come before the number is known.
            for arm in self._begun:
                self._cancel(self._name(arm))
            self._locked.close()
            self._locked = None

    def _obtain(self) -> None:
        """Submit a job for each request, and wait until all run."""
        for arm, request in self.asked.items() if not self.inside else ():
            self._submit(arm, request)
            job = f"submitted job {self.job(request)} for arm {arm}"
            self.notify(f"{job}: {count(request.nodes, 'node')}, {request}")
        self._wait()

    def prolonged_s(self) -> float:
        """Return by how many seconds the end of a job has moved since it began, or the last call.

        It moves after a suspension, whose time a job is given back. Updates `ends_at`.
        """
        known = self._look()
        running = [job for job in known.values() if job.phase is Phase.RUNS]
        ends = {job.ident: job.ends_at for job in running if job.ident in self._ends}
        moved = [at - self._ends[ident] for ident, at in ends.items() if math.isfinite(at)]
        self._ends |= ends
        self.ends_at = min(self._ends.values())
        return max(moved, default=0.0)

    def counters(self) -> Counters:
        """Return the joules that the scheduler has counted, by node; {} where it counts none."""
        answer = _ask(slurm_energy.ask([*self._jobs])) if self._counts else None
        return slurm_energy.read(answer.stdout) if answer and not answer.exit_code else {}

    def job(self, asked: Scheduler) -> str:
        """Return the number of the job for the request `asked`."""
        return next(ident for ident, arm in self._jobs.items() if self.asked[arm] == asked)

    def nodes_of(self, asked: Scheduler) -> tuple[str, ...]:
        """Return the nodes of the request `asked`, by the scheduler's names."""
        return self._nodes[asked]

    def ended(self) -> AllocationError | None:
        """Return why the study cannot go on in these allocations, None if all of them run."""
        known = self._look()
        for ident, arm in self._jobs.items():
            job = known.get(ident)
            if job is None or job.phase is not Phase.RUNS:
                state = str(job) if job else "it is no longer in the queue"
                waits = job is not None and job.phase is Phase.WAITS
                how = "does not run now" if waits else "has ended"
                return AllocationError(
                    f"the allocation of arm {arm}, job {ident}, {how} ({state})",
                    place=self._at(arm),
                    fix="continue with --resume in another allocation: every stored launch is kept",
                )
        return None

    def _lock(self) -> None:
        """Take the lock that keeps other sittings of this study from cancelling its jobs."""
        path = HERE.cache() / "jobs" / self.key
        with as_error(UserError, path, "set PARIBUS_CACHE"):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            cause = "another `paribus run` of this study directory has jobs in the queue"
            raise UserError(cause, place=self.place, fix="wait for it, or end it") from error
        self._locked = file

    def _check_rights(self) -> None:
        """Raise UserError where this user may not submit anything."""
        argv, title = self.dialect.check(), self.dialect.TITLE
        if not argv or not (answer := _ask(argv)).exit_code:
            return
        arm, message = next(iter(self.asked)), " ".join(answer.stderr.split())[:500]
        if self.dialect.unreachable(message):
            fix = f"see that `{' '.join(self.dialect.OFFER[:3])}` works here"
            raise UserError(f"{title} does not answer: {message}", place=self._at(arm), fix=fix)
        raise self._rejected(arm, f"{title} says: {message}", message)

    def _clear(self) -> None:
        """Cancel the jobs that a killed sitting of this study has left in the queue."""
        names = {self._name(arm) for arm in self.asked}
        left = [job for job in self._look(all_jobs=True).values() if job.name in names]
        if left:
            idents = ", ".join(job.ident for job in left)
            self.notify(f"cancelling what this study left in the queue: job {idents}")
        for job in left:
            self._cancel(job.name)

    def _cancel(self, name: str) -> None:
        """Cancel the jobs of this name; try for LATE_S where the scheduler does not answer."""
        deadline = time.monotonic() + LATE_S
        while True:
            answer = _ask(self.dialect.cancel(name))
            if answer.exit_code != TOO_LATE and not self.dialect.unreachable(answer.stderr):
                return
            if time.monotonic() > deadline:
                message = " ".join(answer.stderr.split())[:300]
                self.notify(f"the scheduler does not cancel job {name}; do it yourself: {message}")
                return
            time.sleep(POLL_S[0])

    def _submit(self, arm: str, request: Scheduler) -> None:
        """Submit the job for `arm`, on other nodes than it `had` where the scheduler takes that."""
        named = (self.dialect.named(self.nodes),) if self.nodes else ()
        self._begun.append(arm)
        had = self._had.get(arm, ())
        for some in (had, had[-1:])[: len(had)]:
            if not (others := self.dialect.without(request.options, some)):
                break
            try:
                self._ask_for(arm, replace(request, options=others))
            except AllocationError:
                raise
            except UserError:
                message = f"{self.dialect.TITLE} gives arm {arm} no nodes beside {','.join(some)}"
                self.notify(f"{message}: asking for others")
            else:
                return
        self._ask_for(arm, replace(request, options=(*request.options, *named)))

    def _ask_for(self, arm: str, request: Scheduler) -> None:
        """Submit the job for `arm`; raises UserError where that is refused."""
        script = self.dialect.script(request, self._name(arm))
        deadline = time.monotonic() + LATE_S
        while True:
            answer = _ask(self.dialect.SUBMIT, script)
            ident = self.dialect.read_submitted(answer.stdout)
            message = " ".join((answer.stderr or answer.stdout).split())[:500] or "it said nothing"
            if ident:
                break
            refused = answer.exit_code not in (0, TOO_LATE)
            refused = refused and not self.dialect.unreachable(message)
            if not refused:
                # The job may have been submitted although no answer came.
                time.sleep(POLL_S[0])
                if ident := self._found(arm):
                    break
            if refused or time.monotonic() > deadline:
                cause = f"{self.dialect.TITLE} refused the job: {message}"
                raise self._rejected(arm, cause, message)
        self._jobs[ident] = arm

    def _found(self, arm: str) -> str:
        """Return the job for `arm` that is in the queue, "" for none."""
        jobs = self._look(all_jobs=True).values()
        return next((job.ident for job in jobs if job.name == self._name(arm)), "")

    def _take_this_job(self) -> None:
        """Use the job that Paribus was started in; raises UserError if the arms need several."""
        first = next(iter(self.asked))
        if len(set(self.asked.values())) > 1:
            raise UserError(
                "the arms ask for different allocations, and this job is one",
                place=self._at(first),
                fix="start the study from the login node; it submits a job for each arm",
            )
        self._jobs[self.inside] = first

    def _wait(self) -> None:
        """Wait until all jobs run, then set `hosts`, their nodes and `ends_at`."""
        begin = time.monotonic()
        reported: dict[str, str] = {}
        while True:
            asked = time.monotonic()
            known = self._look()
            took = time.monotonic() - asked
            for ident, arm in self._jobs.items():
                self._check(arm, ident, known.get(ident))
            states = {ident: str(known[ident]) for ident in self._jobs}
            if states != reported:
                self._report(known, reported)
                reported = states
            if all(known[ident].phase is Phase.RUNS for ident in self._jobs):
                break
            time.sleep(pause_s(time.monotonic() - begin, took))
        by_request = {self.asked[arm]: known[ident] for ident, arm in self._jobs.items()}
        for request, job in by_request.items():
            if len(job.nodes) < request.nodes:
                raise UserError(
                    f"job {job.ident} has {len(job.nodes)} nodes of {request.nodes}",
                    place=self._at(self._jobs[job.ident]),
                    fix="ask for as many nodes as the job has",
                )
            chosen = job.nodes[: request.nodes]
            if self.nodes and set(chosen) != set(self.nodes):
                raise UserError(
                    f"job {job.ident} has the nodes {fold(chosen)}, and the study began on"
                    f" {fold(self.nodes)}",
                    place=f"{self.place}: plan.same_nodes",
                    fix=f"start it in a job that asks for them: {self.dialect.named(self.nodes)}",
                )
            addresses = {pod.node: pod.address for pod in job.pods}
            self._nodes[request] = chosen
            self.hosts[request] = tuple(
                Host(addresses.get(n, n), self.dialect.shell(job, n)) for n in chosen
            )
        self._ends = {job.ident: job.ends_at for job in by_request.values()}
        self.ends_at = min(self._ends.values())

    def _report(self, known: Mapping[str, Job], reported: Mapping[str, str]) -> None:
        """Notify of jobs whose state has changed, and last of those that wait."""
        waits = [ident for ident in self._jobs if known[ident].phase is Phase.WAITS]
        new = [one for one in self._jobs if reported.get(one) != str(known[one])]
        for ident in [*(one for one in new if one not in waits), *waits]:
            self.notify(f"job {ident} for arm {self._jobs[ident]}: {known[ident]}")

    def _check(self, arm: str, ident: str, job: Job | None) -> None:
        """Raise UserError for a job that has ended, or that the scheduler will never start."""
        if job is None or job.phase is Phase.ENDED:
            state = str(job) if job else "it is not in the queue"
            raise AllocationError(
                f"job {ident} for arm {arm} did not start ({state})",
                place=self._at(arm),
                fix="see the scheduler's messages, then continue with --resume",
            )
        if job.never:
            message, title = job.reason or str(job), self.dialect.TITLE
            cause = f"{title} will not start the job as it was asked for: {message}"
            raise self._rejected(arm, cause, message)

    def _rejected(self, arm: str, cause: str, message: str) -> UserError:
        """Return the error for a rejection, with the key that it is about and what is offered."""
        key = key_of(self.dialect, message)
        place = f"{self._at(arm)}.{key}" if key else self._at(arm)
        value = getattr(self.asked[arm], key, "") if key not in ("", "time") else ""
        shown = f" = {value!r}" if value else ""
        fix = f"compare it with what there is: {self.dialect.LOOK}"
        if offered := self._offered(self.asked[arm].partition):
            fix = f"there is {'; '.join(offered)}; see also {self.dialect.LOOK}"
        return UserError(cause, place=place + shown, fix=fix)

    def _offered(self, partition: str) -> list[str]:
        """Return lines on the queue `partition`, or on all; [] if that is not known."""
        answer = _ask(self.dialect.OFFER)
        try:
            queues = self.dialect.read_offer(answer.stdout) if not answer.exit_code else []
        except ValueError:
            return []
        return [one for one in queues if one.startswith(f"{partition}:")] or queues[:MOST_QUEUES]

    def _look(self, *, all_jobs: bool = False) -> dict[str, Job]:
        """Return the jobs as the scheduler lists them, by number; waits for LATE_S if it must.

        A job that is missing is looked for twice: an answer may be late, or incomplete.
        """
        wanted = [] if all_jobs else [*self._jobs]
        deadline = time.monotonic() + LATE_S
        seen_missing = notified = False
        while True:
            answer = _ask(self.dialect.queue(wanted))
            try:
                found = self._read(answer)
            except ValueError as error:
                cause = f"the scheduler does not answer: {' '.join(str(error).split())[:300]}"
                if time.monotonic() > deadline:
                    fix = "repeat the command when it answers; add --resume if launches are stored"
                    raise AllocationError(cause, place=self.dialect.TITLE, fix=fix) from None
                if not notified:
                    self.notify(f"{cause}; waiting for up to {LATE_S:g} s")
                notified = True
            else:
                if seen_missing or found.keys() >= set(wanted):
                    return found
                seen_missing = True
            time.sleep(POLL_S[0])

    def _read(self, answer: Captured) -> dict[str, Job]:
        """Return the jobs in an answer; raises ValueError for an error, and for half an answer."""
        gone = self.dialect.gone(answer.stderr)
        if answer.exit_code and not gone:
            raise ValueError(answer.stderr or f"exit code {answer.exit_code}")
        if gone and not answer.stdout:
            return {}
        if answer.stdout and not answer.stdout.endswith("\n"):
            raise ValueError(f"its answer ends in the middle: {answer.stdout[-80:]!r}")
        return self.dialect.read_queue(answer.stdout)

    def _name(self, arm: str) -> str:
        """Return the name of the job for `arm`, one word that no other arm has."""
        number = [*self.asked].index(arm) + 1
        whole = f"paribus-{self.key}-{number}-{re.sub('[^A-Za-z0-9._+-]', '_', arm)}"
        return whole if len(whole) <= self.dialect.MOST_NAME else f"p{self.key}-{number}"

    def _at(self, arm: str) -> str:
        return f"{self.place}: arms.{arm}.scheduler"


def pause_s(waited_s: float, took_s: float) -> float:
    """Return the pause before the next question to a scheduler, in seconds.

    `waited_s`: how long the job has been waited for; `took_s`: how long the last answer took.
    """
    least, most = POLL_S
    return min(most, max(least, waited_s / 10, BUSY * took_s))


def _ask(argv: Sequence[str], text: str = "") -> Captured:
    answer = capture(argv, timeout_s=SUBMIT_S, stdin=text)
    return Captured(answer.exit_code, answer.stdout, without_log(answer.stderr))
