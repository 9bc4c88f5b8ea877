"""What Paribus asks of a batch system, and what all of them share.

Only commands and texts are made and read here. allocations.py runs them, in the same way
for every scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from paribus.core import Scheduler


class Phase(Enum):
    """What a state means for a study. `WAITS` is also that of a state that nobody here knows."""

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

    `state` and `reason` are the scheduler's own words. `nodes` are in the order in which it lists
    them, and `ends_at` is in seconds since the epoch; both are only there while the job runs.
    `never`: the scheduler says that it will not start as it was asked for. `pods`: those of a
    running job of Kubernetes, one on each node, in the order of `nodes`.
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
    """Its name for people."""

    PROGRAMS: tuple[str, ...]
    """What has to be installed where Paribus is started."""

    RAN = False
    """Whether this code asked the real one: else it rests on documentation and recorded outputs."""

    MARK: str
    """The program by which it is known to be here: others have a `qsub` too."""

    TIED = False
    """Whether what runs on the nodes of a job surely ends with it."""

    KEYS: tuple[str, ...] = ("partition", "account", "constraint")
    """The keys of a study's `scheduler` that it takes, beside name, nodes, time and options."""

    NEEDED: Mapping[str, str] = {}
    """Those of `KEYS` that it cannot do without, with an example."""

    GIVEN: Mapping[str, str] = {}
    """Options that Paribus gives itself, and the key of the study that says each, "" for none.

    Empty where submission has no options that a study could add."""

    JOINED = True
    """Whether an option of one letter may have its value right behind it: `-t5`."""

    LOOK: str
    """What shows people what the site has: the fix of a request that was refused."""

    MOST_NAME = 200
    """Characters that a job's name may have."""

    REFUSALS: Sequence[tuple[str, str]]
    """Patterns of what it says of a rejection, and the key of the study that each is about."""

    SUBMIT: Sequence[str]
    """The command that submits the script on its standard input, and prints the job."""

    SUBMITTED: str
    """The pattern of what `SUBMIT` prints, the job in its first group."""

    UNREACHABLE: str
    """The pattern of what a command says that failed because the scheduler does not answer."""

    GONE = "(?!)"
    """The pattern of what `queue` says of a job that it was asked for and no longer knows.

    None where all jobs are listed: those that have ended are not there."""

    OFFER: Sequence[str]
    """The command that lists the queues."""

    def script(self, asked: Scheduler, name: str) -> str:
        """Return the job script that holds the nodes of `asked` as job `name`."""
        raise NotImplementedError

    def named(self, nodes: Sequence[str]) -> str:
        """Return the option that asks for these very nodes, "" where that was not tried."""
        return ""

    def without(self, options: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
        """Return `options` that leave out these nodesets too, () where that was not tried."""
        return ()

    def check(self) -> list[str]:
        """Return a command that fails, with the reason, where nothing can be asked for.

        [] where submission says it.
        """
        return []

    def read_submitted(self, printed: str) -> str:
        """Return the job that `SUBMIT` printed, "" for none."""
        found = re.fullmatch(self.SUBMITTED, printed.strip())
        return found[1] if found else ""

    def unreachable(self, said: str) -> bool:
        """Return whether a command failed because the scheduler does not answer."""
        return re.search(self.UNREACHABLE, said) is not None

    def gone(self, said: str) -> bool:
        """Return whether `queue` failed because a job that it was asked for is no longer known."""
        return re.search(self.GONE, said) is not None

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        """Return the command that lists these jobs, or all of this user's, and perhaps others."""
        raise NotImplementedError

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        """Return the jobs that `queue` printed, by number; raises ValueError for another text.

        A state that is not known waits: it is named, and none is taken for an end. Times without
        a zone are of this machine's.
        """
        raise NotImplementedError

    def cancel(self, name: str) -> list[str]:
        """Return the command that cancels this user's jobs of one name."""
        raise NotImplementedError

    def shell(self, job: Job, node: str) -> tuple[str, ...]:
        """Return the argv that starts a shell on a node of a running job, () where ssh does."""
        return ()

    def in_job(self, env: Mapping[str, str]) -> str:
        """Return the job that a process with this environment is in, "" for none."""
        return ""

    def read_offer(self, printed: str) -> list[str]:
        """Return what `OFFER` printed of each queue, for people; raises ValueError."""
        raise NotImplementedError


def key_of(dialect: Dialect, said: str) -> str:
    """Return the key of the study's `scheduler` that a rejection is about, "" where unclear."""
    return next((key for pattern, key in dialect.REFUSALS if re.search(pattern, said.lower())), "")


def without_log(said: str) -> str:
    r"""Return what a command says to people, without what kubectl logs of its own code.

    >>> without_log("E1125 04:07:49.488228 30808 memcache.go:265] ...\nThe connection ...\n")
    'The connection ...\n'
    """
    return re.sub(r"(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ .*\n", "", said)


def script_of(mark: str, lines: Sequence[str], time_s: float) -> str:
    """Return a job script of `lines`, each an option after `mark`, that holds its nodes."""
    return "\n".join(
        [
            "#!/bin/sh",
            *(f"{mark} {line}" for line in lines),
            "# Holds its nodes for a study of Paribus, which starts its launches there.",
            f"exec sleep {round(time_s)}",
            "",
        ]
    )
