"""Torque: an allocation is a job that sleeps; ssh leads to its nodes.

Never run on the real thing: written from documentation and outputs that others recorded. What a
job's nodes are is for its scheduler (Maui, Moab) to say: a job takes all cores of a node, so that
no other fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import Scheduler
from paribus.schedulers import pbs
from paribus.schedulers.dialect import script_of
from paribus.schedulers.pbs import hours

TITLE = "Torque"
PROGRAMS: tuple[str, ...] = pbs.PROGRAMS
RAN = False
MARK = "qchkpt"
TIED = False
KEYS: tuple[str, ...] = pbs.KEYS
NEEDED: Mapping[str, str] = {"slots": "slots = 16"}
GIVEN: Mapping[str, str] = {**pbs.GIVEN, "-t": ""}
JOINED = True
LOOK = "`qstat -Qf`, `pbsnodes`"
MOST_NAME = 15

REFUSALS: Sequence[tuple[str, str]] = (
    (r"walltime", "time"),
    (r"unknown queue|queue not found|cannot locate queue", "partition"),
    (r"feasible nodes|nodes", "nodes"),
    (r"account", "account"),
    (r"unknown resource", "constraint"),
    (r"option", "options"),
)

named = pbs.named
without = pbs.without
check = pbs.check
submit = pbs.submit
read_submitted = pbs.read_submitted
unreachable = pbs.unreachable
gone = pbs.gone
queue = pbs.queue
read_queue = pbs.read_queue
cancel = pbs.cancel
shell = pbs.shell
in_job = pbs.in_job
offer = pbs.offer
read_offer = pbs.read_offer


def script(asked: Scheduler, name: str) -> str:
    """Return the job script that holds the nodes of `asked` as job `name`."""
    nodes = f"{asked.nodes}:ppn={asked.slots}"
    nodes += f":{asked.constraint}" if asked.constraint else ""
    lines = ["-S /bin/sh", f"-N {name}", f"-l nodes={nodes}"]
    lines += [f"-l walltime={hours(asked.time_s)}"]
    lines += [f"-q {asked.partition}"] if asked.partition else []
    lines += [f"-A {asked.account}"] if asked.account else []
    lines += ["-r n", "-j oe", "-o /dev/null", *asked.options]
    return script_of("#PBS", lines, asked.time_s)
