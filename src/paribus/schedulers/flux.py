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
from paribus.schedulers.dialect import Dialect, Job, Phase, script_of

_DIGITS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""The digits of F58 (RFC 19), base 58, in which flux prints the number of a job: ƒ3K9cZ."""


class Flux(Dialect):
    """Flux; see Dialect.

    Paribus cannot use the job that it is in: commands there ask the job's own instance of Flux.
    """

    TITLE = "Flux"
    PROGRAMS = ("flux", "ssh")
    MARK = "flux"
    GIVEN: Mapping[str, str] = {
        **dict.fromkeys(("--nodes", "-N"), "nodes"),
        **dict.fromkeys(("--time-limit", "-t"), "time"),
        **dict.fromkeys(("--queue", "-q"), "partition"),
        **dict.fromkeys(("--bank", "-B"), "account"),
        **dict.fromkeys(("--requires",), "constraint"),
        **dict.fromkeys(("--job-name", "--exclusive", "-x", "--output", "--wrap", "--nslots"), ""),
        "-n": "",
    }
    LOOK = "`flux queue list`, `flux resource list`"
    REFUSALS = (
        (r"duration|time limit", "time"),
        (r"nnodes|job size|unsatisfiable", "nodes"),
        (r"queue", "partition"),
        (r"bank|account", "account"),
        (r"constraint|propert", "constraint"),
        (r"unrecognized arguments|option", "options"),
    )
    SUBMIT = ("flux", "batch")
    SUBMITTED = rf"[ƒf]([{_DIGITS}]{{1,12}})"
    UNREACHABLE = r"[Uu]nable to connect|[Cc]onnection refused|timed out"
    GONE = r"JobID \S+ unknown"
    OFFER = (*("flux", "resource", "list"), "--no-header", "--format={state}|{nnodes}|{ncores}")

    def script(self, asked: Scheduler, name: str) -> str:
        lines = [f"--job-name={name}", f"--nodes={asked.nodes}", "--exclusive"]
        lines += [f"--time-limit={round(asked.time_s / 60)}m", "--output=/dev/null"]
        lines += [f"--queue={asked.partition}"] if asked.partition else []
        lines += [f"--bank={asked.account}"] if asked.account else []
        lines += [f"--requires={asked.constraint}"] if asked.constraint else []
        return script_of("# flux:", [*lines, *asked.options], asked.time_s)

    def read_submitted(self, printed: str) -> str:
        """Return the job that `SUBMIT` printed, as a decimal number, "" for none."""
        number, digits = 0, super().read_submitted(printed)
        for digit in digits:
            number = number * 58 + _DIGITS.index(digit)
        return str(number) if digits else ""

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        return ["flux", "jobs", "--json", *idents]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        """As Dialect.read_queue; flux prints one job as an object, several as a list in one."""
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

    def cancel(self, name: str) -> list[str]:
        listed = 'flux jobs --no-header --name="$1" -o "{id}"'
        ask = f'for one in $({listed}); do flux cancel "$one"; done'
        return ["/bin/sh", "-c", ask, "sh", name]

    def read_offer(self, printed: str) -> list[str]:
        found = []
        for line in printed.splitlines():
            parts = re.fullmatch(r"\s*(\w+)\|\s*(\d+)\|\s*(\d+)", line)
            if parts is None:
                raise ValueError(f"{line[:80]!r} is not a line of flux resource list")
            nodes, cores = count(int(parts[2]), "node"), count(int(parts[3]), "core")
            found.append(f"{parts[1]}: {nodes}, {cores}")
        return found


def _job(row: Mapping[str, Any]) -> Job:
    """Return a job from its row; raises ValueError for another thing."""
    try:
        ident, name, state = str(int(row["id"])), str(row["name"]), str(row["state"])
        if state == "RUN":
            nodes, ends = expand(str(row["nodelist"])), float(row["expiration"])
            return Job(ident, name, Phase.RUNS, state, "", nodes, ends)
        ended = state in ("CLEANUP", "INACTIVE")
        # An urgency of 0 holds a job until somebody raises it.
        held = not ended and row.get("urgency") == 0
        reason = str(row.get("result") or "") if ended else "held (urgency 0)" * held
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"a job of flux jobs without what it must have: {error!r}") from None
    return Job(ident, name, Phase.ENDED if ended else Phase.WAITS, state, reason, never=held)
