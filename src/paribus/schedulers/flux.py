"""Flux: an allocation is a batch job that sleeps; ssh leads to its nodes.

Never run on the real thing: written from documentation and outputs that others recorded. `flux jobs
--json` is of flux-core 0.49 and later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import Scheduler, count, expand
from paribus.schedulers.dialect import Job, Phase, any_nodes, by_ssh, script_of, unchecked

TITLE = "Flux"
PROGRAMS: tuple[str, ...] = ("flux", "ssh")
RAN = False
MARK = "flux"
TIED = False
KEYS: tuple[str, ...] = ("partition", "account", "constraint")
NEEDED: Mapping[str, str] = {}
GIVEN: Mapping[str, str] = {
    **dict.fromkeys(("--nodes", "-N"), "nodes"),
    **dict.fromkeys(("--time-limit", "-t"), "time"),
    **dict.fromkeys(("--queue", "-q"), "partition"),
    **dict.fromkeys(("--bank", "-B"), "account"),
    **dict.fromkeys(("--requires",), "constraint"),
    **dict.fromkeys(("--job-name", "--exclusive", "-x", "--output", "--wrap", "--nslots"), ""),
    "-n": "",
}
JOINED = True
LOOK = "`flux queue list`, `flux resource list`"
MOST_NAME = 200

REFUSALS: Sequence[tuple[str, str]] = (
    (r"duration|time limit", "time"),
    (r"nnodes|job size|unsatisfiable", "nodes"),
    (r"queue", "partition"),
    (r"bank|account", "account"),
    (r"constraint|propert", "constraint"),
    (r"unrecognized arguments|option", "options"),
)

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Of RFC 19's F58, in which flux prints a job's number."""

check = unchecked
without = any_nodes
shell = by_ssh


def script(asked: Scheduler, name: str) -> str:
    """Return the job script that holds the nodes of `asked` as job `name`."""
    lines = [f"--job-name={name}", f"--nodes={asked.nodes}", "--exclusive"]
    lines += [f"--time-limit={round(asked.time_s / 60)}m", "--output=/dev/null"]
    lines += [f"--queue={asked.partition}"] if asked.partition else []
    lines += [f"--bank={asked.account}"] if asked.account else []
    lines += [f"--requires={asked.constraint}"] if asked.constraint else []
    return script_of("# flux:", [*lines, *asked.options], asked.time_s)


def named(nodes: Sequence[str]) -> str:
    """Return "": how to ask for nodes by their names was not tried."""
    return ""


def submit() -> list[str]:
    """Return the command that submits the script on its standard input, and prints the job."""
    return ["flux", "batch"]


def read_submitted(printed: str) -> str:
    """Return the job that `submit` printed, as a decimal number, "" for none.

    >>> read_submitted("ƒiFkbMhFM\\n"), read_submitted("fiFkbMhFM\\n")
    ('91088924704768', '91088924704768')
    """
    found = re.fullmatch(rf"[ƒf]([{_DIGITS}]{{1,12}})", printed.strip())
    number = 0
    for digit in found[1] if found else "":
        number = number * 58 + _DIGITS.index(digit)
    return str(number) if found else ""


def unreachable(said: str) -> bool:
    """Return whether a command failed because the broker does not answer, as while it starts.

    >>> unreachable("flux-jobs: ERROR: Unable to connect to Flux")
    True
    """
    return re.search(r"[Uu]nable to connect|[Cc]onnection refused|timed out", said) is not None


def gone(said: str) -> bool:
    """Return whether `queue` failed because a job that it was asked for is no longer known.

    >>> gone("JobID 999999 unknown")
    True
    """
    return re.search(r"JobID \S+ unknown", said) is not None


def queue(idents: Sequence[str] = ()) -> list[str]:
    """Return the command that lists these jobs, or all of this user's that have not ended."""
    return ["flux", "jobs", "--json", *idents]


def read_queue(printed: str, now: float | None = None) -> dict[str, Job]:
    """Return the jobs that `queue` printed, by number; raises ValueError for another text.

    One job that is asked for is an object, several are a list in one. A state that is not known
    waits: it is named, and none is taken for an end.
    """
    if not printed.strip():
        raise ValueError("flux jobs printed nothing")
    try:
        answer = json.loads(printed)
    except RecursionError:
        raise ValueError("flux jobs printed lists in lists without end") from None
    rows = answer.get("jobs", [answer]) if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{printed[:80]!r} is no answer of flux jobs")
    return {job.ident: job for job in map(_job, rows)}


def _job(row: Mapping[str, Any]) -> Job:
    try:
        ident, name, state = str(int(row["id"])), str(row["name"]), str(row["state"])
        if state == "RUN":
            nodes, ends = expand(str(row["nodelist"])), float(row["expiration"])
            return Job(ident, name, Phase.RUNS, state, "", nodes, ends)
        ended = state in ("CLEANUP", "INACTIVE")
        # An urgency of 0 holds a job until somebody raises it.
        held = not ended and row.get("urgency") == 0
        said = str(row.get("result") or "") if ended else "held (urgency 0)" * held
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a job of flux jobs without what it must have: {error!r}") from None
    return Job(ident, name, Phase.ENDED if ended else Phase.WAITS, state, said, never=held)


def cancel(name: str) -> list[str]:
    """Return the command that cancels this user's jobs of one name."""
    ask = 'for one in $(flux jobs --no-header --name="$1" -o "{id}"); do flux cancel "$one"; done'
    return ["/bin/sh", "-c", ask, "sh", name]


def in_job(env: Mapping[str, str]) -> str:
    """Return "": commands inside a job ask that job's own instance, which knows nothing of it."""
    return ""


def offer() -> list[str]:
    """Return the command that lists the nodes, a line for each state."""
    return ["flux", "resource", "list", "--no-header", "--format={state}|{nnodes}|{ncores}"]


def read_offer(printed: str) -> list[str]:
    """Return what there is, for people; raises ValueError for another text.

    >>> read_offer("free|3|48\\ndown|1|16\\n")
    ['free: 3 nodes, 48 cores', 'down: 1 node, 16 cores']
    """
    found = []
    for line in printed.splitlines():
        parts = re.fullmatch(r"\s*(\w+)\|\s*(\d+)\|\s*(\d+)", line)
        if parts is None:
            raise ValueError(f"{line[:80]!r} is not a line of flux resource list")
        nodes, cores = count(int(parts[2]), "node"), count(int(parts[3]), "core")
        found.append(f"{parts[1]}: {nodes}, {cores}")
    return found
