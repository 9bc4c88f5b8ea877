"""Grid Engine: an allocation is a job of a parallel environment; ssh leads to its nodes.

Son of Grid Engine 8.1.9 was tried. For whole nodes the site needs a parallel environment whose
allocation_rule is the number of slots of a node. `qrsh -inherit` would lead to them as well, but it
sometimes loses standard input beyond 64 KiB, and scripts and sources are sent that way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from paribus.border import user_name
from paribus.core import Scheduler, count
from paribus.schedulers.dialect import Dialect, Job, Phase, script_of

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


class GridEngine(Dialect):
    """Grid Engine; see Dialect."""

    TITLE = "Grid Engine"
    PROGRAMS = ("qsub", "qstat", "qdel", "ssh")
    RAN = True
    MARK = "qconf"
    KEYS = ("partition", "account", "constraint", "parallel_environment", "slots")
    NEEDED: Mapping[str, str] = {"parallel_environment": 'parallel_environment = "mpi"'}
    GIVEN: Mapping[str, str] = {
        "-pe": "parallel_environment",
        "-q": "partition",
        "-A": "account",
        **dict.fromkeys(("-N", "-S", "-o", "-e", "-j", "-r", "-w", "-terse"), ""),
        **dict.fromkeys(("-sync", "-t", "-b"), ""),
    }
    JOINED = False
    LOOK = (
        "`qconf -sql`, `qconf -spl`, `qconf -sc`; `qsub -w v` with the script of --dry-run says why"
    )
    REFUSALS = (
        (r"unknown queue|queue .* does not exist", "partition"),
        (r"parallel environment|pe ", "parallel_environment"),
        (r"unknown resource", "constraint"),
        (r"project|option|department|userset", "options"),
    )
    SUBMIT = ("qsub", "-terse")
    SUBMITTED = r"(\d+)"
    UNREACHABLE = r"unable to (send message to|contact) qmaster|commlib error"
    OFFER = ("qstat", "-g", "c")

    def script(self, asked: Scheduler, name: str) -> str:
        slots = asked.nodes * max(1, asked.slots)
        lines = ["-S /bin/sh", f"-N {name}", f"-pe {asked.parallel_environment} {slots}"]
        lines += [f"-l h_rt={round(asked.time_s)}"]
        lines += [f"-q {asked.partition}"] if asked.partition else []
        lines += [f"-A {asked.account}"] if asked.account else []
        lines += [f"-l {asked.constraint}"] if asked.constraint else []
        # -w e: what no queue can ever start is refused at once, instead of waiting for good.
        lines += ["-r n", "-w e", "-j y -o /dev/null", *asked.options]
        return script_of("#$", lines, asked.time_s)

    def named(self, nodes: Sequence[str]) -> str:
        return f"-l hostname={'|'.join(nodes)}"

    def queue(self, idents: Sequence[str] = ()) -> list[str]:
        """As Dialect.queue: all jobs of this user, with a row for each slot."""
        return ["qstat", "-xml", "-r", "-g", "t", "-u", user_name()]

    def read_queue(self, printed: str, now: float | None = None) -> dict[str, Job]:
        from xml.etree.ElementTree import ParseError, fromstring

        if "<!" in printed:
            raise ValueError("qstat prints no declarations")
        try:
            root = fromstring(printed)
        except ParseError as error:
            raise ValueError(f"{printed[:80]!r} is no XML of qstat: {error}") from None
        if root.tag != "job_info":
            raise ValueError(f"<{root.tag}> is no answer of qstat")
        jobs: dict[str, Job] = {}
        for row in root.iter("job_list"):
            ident = _text(row, "JB_job_number")
            before = jobs[ident].nodes if ident in jobs else ()
            jobs[ident] = _job(row, ident, before)
        return jobs

    def cancel(self, name: str) -> list[str]:
        return ["qdel", name]

    def in_job(self, env: Mapping[str, str]) -> str:
        return env.get("JOB_ID", "") if "SGE_TASK_ID" in env else ""  # others set JOB_ID too

    def read_offer(self, printed: str) -> list[str]:
        head, *lines = printed.splitlines() or [""]
        if not head.startswith("CLUSTER QUEUE"):
            raise ValueError(f"{head[:80]!r} is not the head of qstat -g c")
        found = []
        for line in lines[1:]:
            words = line.split()
            if len(words) != 8 or not all(word.isdecimal() for word in words[2:]):
                raise ValueError(f"{line[:80]!r} is not a line of qstat -g c")
            found.append(f"{words[0]}: {count(int(words[5]), 'slot')}, {words[4]} free")
        return found


def _job(row: Element, ident: str, nodes: tuple[str, ...]) -> Job:
    """Return the job of a row; `nodes` are those of its rows before this one."""
    state, name = _text(row, "state"), _text(row, "JB_name")
    phase = phase_of(state)
    if phase is not Phase.RUNS:
        # Held (h) by a user, or in error (E): somebody has to act before it starts.
        never = phase is Phase.WAITS and re.search("[hE]", state) is not None
        return Job(ident, name, phase, state, _MEANS.get(state, ""), never=never)
    node = _text(row, "queue_name").partition("@")[2]
    if not node:
        raise ValueError(f"job {ident} runs, and its row names no host")
    limit = [one.text or "" for one in row.iter("hard_request") if one.get("name") == "h_rt"]
    begun = datetime.fromisoformat(_text(row, "JAT_start_time")).timestamp()
    ends = begun + float(limit[0]) if limit else math.inf
    return Job(ident, name, phase, state, "", tuple(dict.fromkeys((*nodes, node))), ends)


_MEANS = {"qw": "waiting", "hqw": "held", "Eqw": "in error", "t": "being started"}


def phase_of(state: str) -> Phase:
    """Return the phase of a state in the letters of qstat(1): "r" runs, "d" is being deleted."""
    if set(state) & set("dz"):
        return Phase.ENDED
    return Phase.RUNS if "r" in state and set(state) <= set("rRh") else Phase.WAITS


def _text(row: Element, tag: str) -> str:
    found = (row.findtext(tag) or "").strip()
    if not found:
        raise ValueError(f"a job without <{tag}>")
    return found
