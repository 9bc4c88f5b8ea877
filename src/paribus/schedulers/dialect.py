"""The interface of a batch system, Dialect: commands to run, and readers of their output.

A dialect makes and reads texts only; allocations.py runs the commands, in the same way for all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from paribus.core import Scheduler


class Phase(Enum):
    """What the state of a job means for a study; an unknown state counts as WAITS."""

    WAITS = "waits"
    RUNS = "runs"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of Kubernetes, which stands for the node that it is on."""

    node: str
    namespace: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Job:
    """One job as its scheduler describes it.

    `ident`: its number; `state`, `reason`: the scheduler's own words. `nodes`, in the order in
    which it lists them, and `ends_at`, in seconds since the epoch, are set only while the job runs.
    `never`: it will not start as it was asked for. `pods`: those of a running job of Kubernetes,
    one for each node, in the order of `nodes`.
    """

    ident: str
    name: str
    phase: Phase
    state: str
    reason: str = ""
    nodes: tuple[str, ...] = ()
    ends_at: float = 0.0
    never: bool = False
    pods: tuple[Pod, ...] = ()

    def __str__(self) -> str:
        return f"{self.state}: {self.reason}" if self.reason else self.state


class Dialect:
    """A batch system: its names, commands and answers. Each is a subclass in a file of its own."""

    TITLE: str
    """Its name in messages."""

    PROGRAMS: tuple[str, ...]
    """The programs that must be installed where Paribus is started."""

    RAN = False
    """Whether this code was run with the real system; else it rests on documentation and recorded
    outputs."""

    MARK: str
    """The program by which it is recognised: several systems have a `qsub`."""

    TIED = False
    """Whether all that runs on the nodes of a job surely ends with the job."""

    KEYS: tuple[str, ...] = ("partition", "account", "constraint")
    """The keys of a study's `scheduler` that it takes, beside name, nodes, time and options."""

    NEEDED: Mapping[str, str] = {}
    """Those of `KEYS` that must be given, each with an example."""

    GIVEN: Mapping[str, str] = {}
    """Options that a study may not set: Paribus does, from the key named here, "" for none.

    Empty where submission has no options that a study could add."""

    JOINED = True
    """Whether an option of one letter may have its value right behind it: `-t5`."""

    LOOK: str
    """The commands that list queues and limits, for the fix of a request that was refused."""

    MOST_NAME = 200
    """Characters that a job's name may have."""

    REFUSALS: Sequence[tuple[str, str]]
    """Patterns of its rejections in lower case, and the key of the study that each is about."""

    SUBMIT: Sequence[str]
    """The command that submits the script on its standard input, and prints the job."""

    SUBMITTED: str
    """The pattern of what `SUBMIT` prints, the job in its first group."""

    UNREACHABLE: str
    """The pattern of errors of commands that failed because the scheduler does not answer."""

    GONE = "(?!)"
    """The pattern of errors of `queue` for a job that is no longer known.

    It matches nothing where `queue` lists all jobs: those that have ended are missing there."""

    OFFER: Sequence[str]
    """The command that lists the queues."""

    def script(self, asked: Scheduler, name: str) -> str:
        """Return the script of the job `name` that holds the nodes of `asked`."""
        raise NotImplementedError

    def named(self, nodes: Sequence[str]) -> str:
        """Return the option that asks for exactly these nodes, "" where that was not tried."""
        return ""

    def without(self, options: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
        """Return `options` with one that excludes these nodesets, () where that was not tried."""
        return ()

    def check(self) -> list[str]:
        """Return a command that fails, with the reason, where this user may not submit.

        [] where submission itself reports that.
        """
        return []

    def read_submitted(self, printed: str) -> str:
        """Return the job's number in the output of `SUBMIT`, "" for none."""
        found = re.fullmatch(self.SUBMITTED, printed.strip())
        return found[1] if found else ""

    def unreachable(self, error: str) -> bool:
        """Return whether a command failed because the scheduler does not answer."""
        return re.search(self.UNREACHABLE, error) is not None

    def gone(self, error: str) -> bool:
        """Return whether `queue` failed because a job that it was asked for is no longer known."""
        return re.search(self.GONE, error) is not None

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        """Return the command that lists these jobs, without any all of this user's, or more."""
        raise NotImplementedError

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        """Return the jobs in the output of `queue`, by number; raises ValueError for another text.

        An unknown state counts as waiting, never as an end. Times without a zone are local ones.
        """
        raise NotImplementedError

    def cancel(self, name: str) -> list[str]:
        """Return the command that cancels this user's jobs of this name."""
        raise NotImplementedError

    def shell(self, job: Job, node: str) -> tuple[str, ...]:
        """Return the argv that starts a shell on a node of a running job, () for ssh."""
        return ()

    def in_job(self, env: Mapping[str, str]) -> str:
        """Return the number of the job that a process with this environment is in, "" for none."""
        return ""

    def read_offer(self, printed: str) -> list[str]:
        """Return a line for each queue in the output of `OFFER`; raises ValueError for others."""
        raise NotImplementedError


def key_of(dialect: Dialect, text: str) -> str:
    """Return the key of the study's `scheduler` that a rejection is about, "" where unclear."""
    return next((key for pattern, key in dialect.REFUSALS if re.search(pattern, text.lower())), "")


def without_log(text: str) -> str:
    r"""Return the output of a command without the lines that kubectl logs of its own code.

    >>> without_log("E1125 04:07:49.488228 30808 memcache.go:265] ...\nThe connection ...\n")
    'The connection ...\n'
    """
    return re.sub(r"(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n", "", text)


def script_of(mark: str, lines: Sequence[str], time_s: float) -> str:
    """Return a job script that sleeps for `time_s`; `lines`: options, each written after `mark`."""
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"{mark} {line}" for line in lines),
            "# Holds its nodes for a study of Paribus, which starts its launches there.",
            f"exec sleep {round(time_s)}",
            "",
        ]
    )
