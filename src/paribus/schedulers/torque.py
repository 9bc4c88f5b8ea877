"""Torque: an allocation is a job that sleeps; ssh leads to its nodes.

Never run on the real thing: written from documentation and outputs that others recorded. Its
scheduler (Maui, Moab) decides on nodes: a job asks for all cores of a node, so that no other fits.
"""

from __future__ import annotations

from collections.abc import Mapping

from paribus.core import Scheduler
from paribus.schedulers.pbs import Pbs, constrained


class Torque(Pbs):
    """Torque; see Dialect."""

    TITLE = "Torque"
    MARK = "qchkpt"
    NEEDED: Mapping[str, str] = {"slots": "slots = 16"}
    GIVEN: Mapping[str, str] = {**Pbs.GIVEN, "-t": ""}
    LOOK = "`qstat -Qf`, `pbsnodes`"
    REFUSALS = (
        (r"walltime", "time"),
        (r"unknown queue|queue not found|cannot locate queue", "partition"),
        (r"feasible nodes|nodes", "nodes"),
        (r"account", "account"),
        (r"unknown resource", "constraint"),
        (r"option", "options"),
    )

    def _nodes(self, asked: Scheduler) -> list[str]:
        return [f"-l nodes={asked.nodes}:ppn={asked.slots}{constrained(asked)}"]
