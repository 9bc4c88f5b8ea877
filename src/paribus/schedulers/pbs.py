"""OpenPBS, and PBS Professional: an allocation is a job that sleeps; ssh leads to its nodes.

Never run on the real thing: written from documentation and outputs that others recorded. The text
of `qstat -f` is read, not its JSON: that is cut after the first of several jobs (openpbs issue
2672), and cannot be parsed where a job's environment has quotes (issue 2541).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paribus.core import Scheduler
from paribus.schedulers.dialect import key_among, script_of
from paribus.schedulers.jobs import Job
from paribus.schedulers.qstat import hours, jobs_of, queues_of

TITLE = "PBS"
PROGRAMS: tuple[str, ...] = ("qsub", "qstat", "qdel", "qselect", "ssh")
RAN = False
MARK = "pbs_rstat"
TIED = False
KEYS: tuple[str, ...] = ("partition", "account", "constraint", "slots")
NEEDED: Mapping[str, str] = {}
GIVEN: Mapping[str, str] = {
    "-q": "partition",
    "-A": "account",
    **dict.fromkeys(("-N", "-S", "-o", "-e", "-j", "-r", "-I", "-J", "-z", "-W"), ""),
}
JOINED = True
LOOK = "`qstat -Qf`, `pbsnodes -av`"
MOST_NAME = 15
"""What PBS Professional took before release 13."""

_KEYS = (
    (r"unknown queue|queue", "partition"),
    (r"walltime", "time"),
    (r"account", "account"),
    (r"unknown resource|resource", "constraint"),
    (r"project|option", "options"),
)


def script(asked: Scheduler, name: str) -> str:
    """Return the job script that holds the nodes of `asked` as job `name`."""
    chunk = f"{asked.nodes}:ncpus={max(1, asked.slots)}"
    chunk += f":{asked.constraint}" if asked.constraint else ""
    lines = ["-S /bin/sh", f"-N {name}", f"-l select={chunk}", "-l place=scatter:exclhost"]
    lines += [f"-l walltime={hours(asked.time_s)}"]
    lines += [f"-q {asked.partition}"] if asked.partition else []
    lines += [f"-A {asked.account}"] if asked.account else []
    lines += ["-r n", "-j oe", "-o /dev/null", *asked.options]
    return script_of("#PBS", lines, asked.time_s)


def named(nodes: Sequence[str]) -> str:
    """Return "": how to ask for nodes by their names was not tried."""
    return ""


def check() -> list[str]:
    """Return []: submission says what is wrong."""
    return []


def submit() -> list[str]:
    """Return the command that submits the script on its standard input, and prints the job."""
    return ["qsub"]


def read_submitted(printed: str) -> str:
    """Return the job that `submit` printed, "" for none.

    >>> read_submitted("3472664.pbshpc\\n")
    '3472664.pbshpc'
    """
    found = re.fullmatch(r"\d+(\.[A-Za-z0-9.-]+)?", printed.strip())
    return found[0] if found else ""


def unreachable(said: str) -> bool:
    """Return whether a command failed because the server does not answer, as while it starts.

    >>> unreachable("qstat: cannot connect to server pbs (errno=111)")
    True
    """
    pattern = r"cannot connect to server|[Cc]onnection refused|Communication failure|timed out"
    return re.search(pattern, said) is not None


def gone(said: str) -> bool:
    """Return whether `queue` failed because a job that it was asked for is no longer known.

    >>> gone("qstat: Unknown Job Id 123456.pbssrv2"), gone("qstat: 1.s Job has finished, use -x")
    (True, True)
    """
    return re.search(r"Unknown Job Id|Job has finished", said) is not None


def queue(idents: Sequence[str] = ()) -> list[str]:
    """Return the command that lists these jobs, or all of this user's that have not ended.

    `qstat -f` itself would list the jobs of all users.
    """
    if idents:
        return ["qstat", "-f", *idents]
    ask = 'own=$(qselect -u "$(id -un)") || exit; [ -z "$own" ] || exec qstat -f $own'
    return ["/bin/sh", "-c", ask]


def read_queue(printed: str, now: float | None = None) -> dict[str, Job]:
    """Return the jobs that `queue` printed, by number; raises ValueError for another text."""
    return jobs_of(printed, now)


def cancel(name: str) -> list[str]:
    """Return the command that cancels this user's jobs of one name."""
    ask = 'for one in $(qselect -N "$1" -u "$(id -un)"); do qdel "$one"; done'
    return ["/bin/sh", "-c", ask, "sh", name]


def shell(job: Job, node: str) -> tuple[str, ...]:
    """Return (): its nodes are reached by ssh."""
    return ()


def in_job(env: Mapping[str, str]) -> str:
    """Return the job that a process with this environment is in, "" for none."""
    return env.get("PBS_JOBID", "")


def key_of(said: str) -> str:
    """Return the key of the study's `scheduler` that a rejection is about, "" where unclear.

    >>> key_of("qsub: Unknown queue")
    'partition'
    """
    return key_among(_KEYS, said)


def offer() -> list[str]:
    """Return the command that lists the queues."""
    return ["qstat", "-Q"]


def read_offer(printed: str) -> list[str]:
    """Return what each queue offers, for people; raises ValueError for another text."""
    return queues_of(printed)
