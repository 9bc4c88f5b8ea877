"""Slurm: an allocation is a batch job that sleeps; each of its nodes is entered by a step.

Jobs are read as JSON where squeue has it, else as text. Without the numbers of jobs only text is
asked for: squeue before 23.02 always lists all jobs of all users in JSON.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.core import Scheduler, count, expand, fold
from paribus.launch.launchers.srun import JOB
from paribus.schedulers.dialect import Dialect, Job, Phase, script_of

_FORMAT = "%i|%T|%L|%N|%j|%r"

# Older versions do not know the option, and in some builds the serializer is missing.
_JSON_OR_TEXT = f"""\
if said=$(squeue --json "$@" 2>/dev/null); then printf '%s\\n' "$said"; exit; fi
exec squeue --noheader --format='{_FORMAT}' "$@"
"""

# States in which a job does nothing any more: slurm.schedmd.com/squeue.html, "JOB STATE CODES".
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "SPECIAL_EXIT", "TIMEOUT", "COMPLETING"),
}

# Reasons of a pending job that waiting does not change (same page, "JOB REASON CODES").
_NEVER = re.compile(
    r"Partition(Config|NodeLimit|TimeLimit)|BadConstraints|Invalid(Account|QOS)"
    r"|DependencyNeverSatisfied|JobHeld(Admin|User)|AccountNotAllowed|QOSNotAllowed"
    r"|(Assoc|QOS)(Max(Node|Cpu|CPU|WallDuration|TRES)\w*PerJob\w*|.*TimeLimit)"
)

_LEFT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")  # 1-02:30:00, 59:10

_EXCLUDE = re.compile(r"(?:--exclude[= ]|-x[= ]?)(.*)")

# The shell command _FORGET unsets all variables of Slurm and PMI but SLURM_CONF.
_OF_A_JOB = "/^SLURM_CONF=/d; s/^\\(SLURM_[A-Za-z0-9_]*\\|PMI[A-Z0-9_]*\\)=.*/\\1/p"
_FORGET = f"unset $(env | sed -n '{_OF_A_JOB}')"


class Slurm(Dialect):
    """Slurm; see Dialect."""

    TITLE = "Slurm"
    PROGRAMS = ("sbatch", "squeue", "srun", "scancel")
    RAN = True
    MARK = "sinfo"
    TIED = True
    GIVEN: Mapping[str, str] = {
        **dict.fromkeys(("--nodes", "-N"), "nodes"),
        **dict.fromkeys(("--time", "-t"), "time"),
        **dict.fromkeys(("--partition", "-p"), "partition"),
        **dict.fromkeys(("--account", "-A"), "account"),
        **dict.fromkeys(("--constraint", "-C"), "constraint"),
        **dict.fromkeys(("--job-name", "-J", "--parsable", "--exclusive", "--no-requeue"), ""),
        **dict.fromkeys(("--requeue", "--wrap", "--output", "-o", "--array", "-a"), ""),
        **dict.fromkeys(("--wait", "-W"), ""),
    }
    LOOK = "`sinfo --long`, `sacctmgr show associations`"
    REFUSALS = (
        (r"unrecognized option|memory|node name|qos|gres|reservation", "options"),
        (r"partitionconfig", ""),  # the first reason for too much time, and for too many nodes
        (r"time ?limit|time specification|wallduration", "time"),
        (r"node ?limit|nodeperjob|node (count|configuration)", "nodes"),
        (r"feature|constraint", "constraint"),
        (r"account", "account"),
        (r"partition", "partition"),
    )
    SUBMIT = ("sbatch", "--parsable")
    SUBMITTED = r"(\d+)(?:;[^\s;]+)?"
    """`42`, or `42;cluster`."""

    UNREACHABLE = (
        "[Uu]nable to contact|timed out|[Cc]onnection (refused|reset)|endpoint is not connected"
        "|Broken pipe|Message (send|receive) failure|Zero Bytes were transmitted"
        "|Communication (connection|shutdown) failure|in standby mode"
    )
    """For a controller that is away, or ends during a request: texts of slurm_errno.c, and of the C
    library on sockets."""

    GONE = "Invalid job id"
    OFFER = ("sinfo", "--noheader", "--format=%R|%D|%c|%l|%a")

    def script(self, asked: Scheduler, name: str) -> str:
        lines = [f"--job-name={name}", f"--nodes={asked.nodes}"]
        lines += [f"--time={round(asked.time_s / 60)}", "--exclusive"]
        lines += [f"--{key}={value}" for key in self.KEYS if (value := getattr(asked, key))]
        lines += ["--no-requeue", "--output=/dev/null", *asked.options]
        return script_of("#SBATCH", lines, asked.time_s)

    def named(self, nodes: Sequence[str]) -> str:
        return f"--nodelist={fold(nodes)}"

    def without(self, options: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
        """As Dialect.without; () where the study's own option --exclude names a file.

        Of two such options Slurm takes the last, so both are joined.
        """
        theirs = [found[1] for one in options if (found := _EXCLUDE.fullmatch(one))]
        if any("/" in one for one in theirs):
            return ()
        kept = (one for one in options if not _EXCLUDE.fullmatch(one))
        return (*kept, f"--exclude={','.join((*theirs, *nodes))}")

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        if not idents:
            return ["squeue", "--noheader", f"--format={_FORMAT}", "--me"]
        which = ["--states=all", f"--jobs={','.join(idents)}"]
        return ["/bin/sh", "-c", _JSON_OR_TEXT, "squeue", *which]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        if printed.startswith("{"):
            return _read_json(printed)
        now = time.time() if now is None else now
        jobs = {}
        for line in printed.splitlines():
            parts = line.split("|", 5)
            if len(parts) < 6 or not re.fullmatch(r"\d+", parts[0]) or not parts[1].strip():
                raise ValueError(f"{line[:80]!r} is not a line of squeue")
            ident, state, left, nodes, name, reason = parts
            ends = now + _seconds(left) if state == "RUNNING" else 0.0
            jobs[ident] = _job(ident, name, state.split(), reason, nodes, ends)
        return jobs

    def read_offer(self, printed: str) -> list[str]:
        found = []
        for line in printed.splitlines():
            parts = re.fullmatch(r"([^|]+)\|(\d+)\|(\d+)\+?\|([^|]+)\|(\w+)", line.strip())
            if parts is None:
                raise ValueError(f"{line[:80]!r} is not a line of sinfo")
            name, nodes, cpus, limit, state = parts.groups()
            most = "" if limit == "infinite" else f", at most {limit}"
            queue = f"{name}: {count(int(nodes), 'node')} of {cpus} CPUs{most}"
            found.append(queue if state == "up" else f"{queue}, {state}")
        return found

    def cancel(self, name: str) -> list[str]:
        return ["scancel", "--me", f"--name={name}"]

    def shell(self, job: Job, node: str) -> tuple[str, ...]:
        """Return the argv that starts a shell on a node of a job, as hosts.reached.Host has it.

        The step shares all of the job's resources on the node. It unsets the variables of Slurm,
        since launchers would start ranks by Slurm, and not as the arm says. It keeps SLURM_CONF,
        and the job's number for the launcher srun.
        """
        forget = f"{_FORGET}; export {JOB}={job.ident}"
        return (
            # Else srun passes whole lines only; the text of an agent's request need not end in one.
            *("srun", "--quiet", "--unbuffered"),
            *(f"--jobid={job.ident}", "--overlap", "--whole", "--mem=0"),
            *("--nodes=1", "--ntasks=1", f"--nodelist={node}", "--mpi=none"),
            *("--chdir=/", "/bin/sh", "-c", f"{forget}; exec /bin/sh"),
        )

    def in_job(self, env: Mapping[str, str]) -> str:
        return env.get("SLURM_JOB_ID", "")


def study_script(
    name: str, log: Path, argv: Sequence[str], mark: str, options: Sequence[str]
) -> str:
    """Return the script of the job `name` that runs `argv` on one core of any node.

    It unsets the variables of its job, because it submits others, and sets the variable `mark`.
    """
    lines = ["#!/bin/sh", f"#SBATCH --job-name={name}", "#SBATCH --nodes=1", "#SBATCH --ntasks=1"]
    lines += ["#SBATCH --no-requeue", f"#SBATCH --output={shlex.quote(str(log))}"]
    lines += [f"#SBATCH {option}" for option in options]
    lines += [_FORGET, f"export {mark}=yes", f"exec {shlex.join(argv)}"]
    return "\n".join(lines) + "\n"


def _job(
    ident: str, name: str, states: Sequence[str], reason: str, nodes: str, ends_at: float
) -> Job:
    """Return a job; `states` are its base state, and in newer JSON flags such as COMPLETING."""
    runs = [*states] == ["RUNNING"]
    phase = Phase.ENDED if _ENDED & {*states} else Phase.RUNS if runs else Phase.WAITS
    reason = "" if reason in ("None", "(null)") else reason
    never = phase is Phase.WAITS and _NEVER.fullmatch(reason) is not None
    there = expand(nodes) if runs and nodes else ()
    return Job(ident, name, phase, ",".join(states), reason, there, ends_at * runs, never)


def _read_json(printed: str) -> dict[str, Job]:
    """Return the jobs of `squeue --json`, which before 23.02 has all jobs of the cluster.

    Its exit code is 0 even if the controller does not answer: then its key "errors" is not empty.
    """
    try:
        answer = json.loads(printed)
    except RecursionError:
        raise ValueError("squeue printed lists in lists without end") from None
    try:
        if failed := answer["errors"]:
            raise ValueError("; ".join(str(one.get("description")) for one in failed))
        return {job.ident: job for job in map(_job_of_json, answer["jobs"])}
    except (AttributeError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"squeue --json without what it must have: {error!r}") from None


def _job_of_json(row: Mapping[str, Any]) -> Job:
    """Return a job in the JSON of Slurm 22.05 (OpenAPI v0.0.38), or of 23.11 and later (v0.0.40).

    The latter has lists of states, and an object for a number that may be missing or infinite.
    """
    states, limit, end = row["job_state"], row["time_limit"], row["end_time"]
    if isinstance(limit, dict):
        limit = limit["number"] if limit["set"] and not limit["infinite"] else None
    if isinstance(end, dict):
        end = end["number"]
    states = states.split() if isinstance(states, str) else [str(state) for state in states]
    if not states:
        raise ValueError("a job of squeue --json has no state")
    ends = math.inf if limit is None else float(end)
    nodes, reason = str(row["nodes"]), str(row["state_reason"])
    return _job(str(int(row["job_id"])), str(row["name"]), states, reason, nodes, ends)


def _seconds(left: str) -> float:
    """Return the seconds left that squeue prints as [DAYS-][HOURS:]MINUTES:SECONDS."""
    if left in ("UNLIMITED", "NOT_SET"):
        return math.inf
    found = _LEFT.fullmatch(left)
    if found is None:
        raise ValueError(f"{left!r} is no time that is left")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds
