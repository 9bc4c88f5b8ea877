"""The energy of a running job's nodes as Slurm counts it, where a site has enabled that.

It is counted by a plug-in acct_gather_energy (RAPL, IPMI, GPUs, Cray's counters). sstat asks the
nodes themselves, so that no accounting is needed; sacct has the same counters where there is
slurmdbd, as sums of steps that have ended. Where JobAcctGatherType is none, both have 0 joules
(22.05.8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Counters = Mapping[str, Mapping[str, int]]
"""Joules by node and step, since the step began: each step on a node counts all of that node."""


def config() -> list[str]:
    """Return the command whose output `counts` reads."""
    return ["scontrol", "show", "config"]


def counts(printed: str) -> bool:
    """Return whether nodes count their energy, by the output of `config`.

    >>> counts("AcctGatherEnergyType    = acct_gather_energy/none\\n")
    False
    """
    kinds = re.findall(r"^(?:AcctGatherEnergy|JobAcctGather)Type\s*=\s*(\S+)", printed, re.M)
    return len(kinds) == 2 and not any(one.endswith(("/none", "(null)")) for one in kinds)


def ask(idents: Sequence[str]) -> list[str]:
    """Return the command that lists the energy so far of the steps of running jobs."""
    options = ["--allsteps", "--noheader", "--parsable2", f"--jobs={','.join(idents)}"]
    return ["sstat", *options, "--format=JobID,Nodelist,ConsumedEnergyRaw"]


def read(printed: str) -> dict[str, dict[str, int]]:
    """Return the joules by node and step, without lines of several nodes or of another form.

    >>> read("7.batch|h1|763\\n7.0|h1|735\\n7.3|h[1-2]|90\\n")
    {'h1': {'7.batch': 763, '7.0': 735}}
    """
    found: dict[str, dict[str, int]] = {}
    for line in printed.splitlines():
        # 2^64 - 2 and - 1 are Slurm's words for no value.
        parts = re.fullmatch(r"(\d+\.\w+)\|([^|,[]+)\|(\d{1,18})", line.strip())
        if parts:
            found.setdefault(parts[2], {})[parts[1]] = int(parts[3])
    return found


def joules(before: Counters, after: Counters, nodes: Sequence[str]) -> float | None:
    """Return the joules that `nodes` took between two readings, None if one is not known.

    Of each node the step that grew most counts: a step may have begun in between.

    >>> joules({"h1": {"7.0": 735}}, {"h1": {"7.1": 3, "7.0": 800}}, ["h1"])
    65.0
    """
    total = 0.0
    for node in nodes:
        then, now = before.get(node, {}), after.get(node, {})
        grown = [now[step] - then[step] for step in then.keys() & now.keys()]
        if not grown or min(grown) < 0 or max(grown) == 0:
            return None
        total += max(grown)
    return total
