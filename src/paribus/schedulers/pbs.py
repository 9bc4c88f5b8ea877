"""OpenPBS, and PBS Professional: an allocation is a job that sleeps; ssh leads to its nodes.

Never run on the real thing: written from documentation and outputs that others recorded. The text
of `qstat -f` is read, not its JSON: that is cut after the first of several jobs (openpbs issue
2672), and cannot be parsed where a job's environment has quotes (issue 2541).
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence

from paribus.core import Scheduler, count
from paribus.schedulers.dialect import Dialect, Job, Phase, script_of

# C: completed (Torque), E: exiting, F: finished, X: a subjob that has finished (OpenPBS).
_ENDED = "CEFX"

_HOST = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)/[0-9][0-9*,/-]*")  # n1/0*16 of exec_host
_TIME = re.compile(r"(\d+):(\d\d):(\d\d)")  # 1:30:00


def hours(seconds: float) -> str:
    """Return a duration as PBS writes it: 1:30:00."""
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02}:00"


def _described(printed: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the id and attributes of each job in an output of `qstat -f`.

    "Job Id: 7.server" begins a job, "    job_state = R" is an attribute, and a line that begins
    with a tab continues the last one. Raises ValueError for any other line.
    """
    ident, values, last = "", dict[str, str](), ""
    for line in printed.splitlines():
        if begin := re.fullmatch(r"Job Id: (\d\S*)", line.rstrip()):
            if ident:
                yield ident, values
            ident, values, last = begin[1], {}, ""
        elif line.startswith("\t") and last:
            values[last] += line[1:]
        elif not line.strip():
            continue
        elif ident and (found := re.fullmatch(r" {4}(\S+) = (.*)", line)):
            last = found[1]
            values[last] = found[2]
        else:
            raise ValueError(f"{line[:80]!r} is not a line of qstat -f")
    if ident:
        yield ident, values


def _hosts(ident: str, listed: str) -> tuple[str, ...]:
    """Return the hosts in `exec_host`, each once; it is n1/0*16+n2/0*16, n1/1+n1/0 or n1/0-27."""
    found = [_HOST.fullmatch(one) for one in listed.split("+")]
    if not all(found):
        raise ValueError(f"job {ident} runs, and exec_host = {listed[:80]!r} lists no hosts")
    return tuple(dict.fromkeys(one[1] for one in found if one))


def _ends(values: Mapping[str, str], now: float) -> float:
    """Return when a running job ends, in seconds since the epoch; infinity without a walltime."""
    if left := values.get("Walltime.Remaining"):
        return now + float(left)
    limit = _TIME.fullmatch(values.get("Resource_List.walltime", ""))
    begun = values.get("stime") or values.get("start_time")
    if limit is None or begun is None:
        return math.inf
    counted = int(limit[1]) * 3600 + int(limit[2]) * 60 + int(limit[3])
    return time.mktime(time.strptime(begun, "%a %b %d %H:%M:%S %Y")) + counted


def constrained(asked: Scheduler) -> str:
    """Return the constraint of a request as it is written after the nodes, "" without one."""
    return f":{asked.constraint}" if asked.constraint else ""


class Pbs(Dialect):
    """OpenPBS and PBS Professional; see Dialect."""

    TITLE = "PBS"
    PROGRAMS = ("qsub", "qstat", "qdel", "qselect", "ssh")
    MARK = "pbs_rstat"
    KEYS = ("partition", "account", "constraint", "slots")
    GIVEN: Mapping[str, str] = {
        "-q": "partition",
        "-A": "account",
        **dict.fromkeys(("-N", "-S", "-o", "-e", "-j", "-r", "-I", "-J", "-z", "-W"), ""),
    }
    LOOK = "`qstat -Qf`, `pbsnodes -av`"
    MOST_NAME = 15
    """What PBS Professional took before release 13."""

    REFUSALS: Sequence[tuple[str, str]] = (
        (r"unknown queue|queue", "partition"),
        (r"walltime", "time"),
        (r"account", "account"),
        (r"unknown resource|resource", "constraint"),
        (r"project|option", "options"),
    )
    SUBMIT = ("qsub",)
    SUBMITTED = r"(\d+(?:\.[A-Za-z0-9.-]+)?)"
    UNREACHABLE = r"cannot connect to server|[Cc]onnection refused|Communication failure|timed out"
    GONE = r"Unknown Job Id|Job has finished"
    OFFER = ("qstat", "-Q")

    def script(self, asked: Scheduler, name: str) -> str:
        lines = ["-S /bin/sh", f"-N {name}", *self._nodes(asked)]
        lines += [f"-l walltime={hours(asked.time_s)}"]
        lines += [f"-q {asked.partition}"] if asked.partition else []
        lines += [f"-A {asked.account}"] if asked.account else []
        lines += ["-r n", "-j oe", "-o /dev/null", *asked.options]
        return script_of("#PBS", lines, asked.time_s)

    def _nodes(self, asked: Scheduler) -> list[str]:
        chunk = f"{asked.nodes}:ncpus={max(1, asked.slots)}{constrained(asked)}"
        return [f"-l select={chunk}", "-l place=scatter:exclhost"]

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        if idents:
            return ["qstat", "-f", *idents]
        # `qstat -f` itself would list the jobs of all users.
        ask = 'own=$(qselect -u "$(id -un)") || exit; [ -z "$own" ] || exec qstat -f $own'
        return ["/bin/sh", "-c", ask]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        """As Dialect.read_queue; a job ends when its walltime has passed since it started."""
        now = time.time() if now is None else now
        jobs = {}
        for ident, values in _described(printed):
            state, name = values.get("job_state", ""), values.get("Job_Name", "")
            if not state or not name:
                raise ValueError(f"job {ident} has no state or no name")
            phase = Phase.ENDED if state in _ENDED else Phase.RUNS if state == "R" else Phase.WAITS
            reason = values.get("comment", "") if phase is Phase.WAITS else ""
            if phase is Phase.RUNS:
                nodes, ends = _hosts(ident, values.get("exec_host", "")), _ends(values, now)
                jobs[ident] = Job(ident, name, phase, state, "", nodes, ends)
            else:
                never = state == "H" or "can never run" in reason.lower()
                jobs[ident] = Job(ident, name, phase, state, reason, never=never)
        return jobs

    def cancel(self, name: str) -> list[str]:
        ask = 'for one in $(qselect -N "$1" -u "$(id -un)"); do qdel "$one"; done'
        return ["/bin/sh", "-c", ask, "sh", name]

    def in_job(self, env: Mapping[str, str]) -> str:
        return env.get("PBS_JOBID", "")

    def read_offer(self, printed: str) -> list[str]:
        head, *lines = printed.splitlines() or [""]
        if head.split()[:5] != ["Queue", "Max", "Tot", "Ena", "Str"]:
            raise ValueError(f"{head[:80]!r} is not the head of qstat -Q")
        found = []
        for line in lines[1:]:
            words = line.split()
            if len(words) < 5 or not words[2].isdecimal() or not {*words[3:5]} <= {"yes", "no"}:
                raise ValueError(f"{line[:80]!r} is not a line of qstat -Q")
            queue = f"{words[0]}: {count(int(words[2]), 'job')}"
            queue += ", takes none" * (words[3] == "no") + ", stopped" * (words[4] == "no")
            found.append(queue)
        return found
