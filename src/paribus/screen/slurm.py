"""The nodes of a Slurm partition: their states by sinfo, and the idle ones lent by one job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from paribus.core import Hosts, Scheduler, UserError, count, fold
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.local import LocalStation, capture
from paribus.schedulers.allocations import Allocations, LentStation
from paribus.schedulers.known import in_job
from paribus.screen.fleet import ARM, Reached, addressed

ANSWER_S = 60.0
"""Seconds that a command of Slurm may take."""

FREE = "idle"
PLACE = "paribus screen"
"""What messages about jobs name as their place."""


def partition_of(text: str) -> str:
    """Return the partition of slurm:PARTITION; raises UserError for anything else."""
    name, given, partition = text.partition(":")
    if name != "slurm" or not given or not partition:
        fix = "write --scheduler slurm:PARTITION"
        raise UserError("is no partition of Slurm", place=f"--scheduler {text}", fix=fix)
    return partition


def ask_slurm(argv: Sequence[str], fix: str) -> str:
    """Return what a command of Slurm prints; raises UserError, with `fix`, where it fails."""
    answer = capture(argv, timeout_s=ANSWER_S)
    if answer.exit_code:
        reason = " ".join((answer.stderr or answer.stdout).split())[:300]
        raise UserError(f"Slurm refuses: {reason}", place=shlex.join(argv[:3]), fix=fix)
    return answer.stdout


def states(partition: str) -> dict[str, str]:
    """Return the state of each node of a partition as sinfo prints it ("idle", "mixed", "down*").

    Raises UserError where sinfo fails, or knows no node of it.
    """
    argv = ["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%N %T"]
    text = ask_slurm(argv, "start the screen where `sinfo` works")
    lines = (line.split() for line in text.splitlines())
    found = {words[0]: words[1] for words in lines if len(words) == 2}
    if not found:
        fix = "see `sinfo` for the partitions"
        raise UserError("has no nodes", place=f"--scheduler slurm:{partition}", fix=fix)
    return found


def is_out(state: str) -> bool:
    """Return whether Slurm gives a node of this state no job until an administrator sees to it.

    >>> [is_out(one) for one in ("IDLE+DRAIN", "down*", "idle*", "MIXED", "IDLE+POWERED_DOWN")]
    [True, True, True, False, False]
    """
    return bool(re.search(r"\bdown|drain|fail|maint|\*", state.lower()))


def switches() -> list[str]:
    """Return the nodeset of each leaf switch, as far as Slurm knows its topology."""
    answer = capture(["scontrol", "show", "topology"], timeout_s=ANSWER_S)
    lines = answer.stdout.splitlines() if not answer.exit_code else []
    # SwitchName=s0 Level=0 LinkSpeed=1 Nodes=node[1-16]
    found = (re.search(r"\bLevel=0 .*\bNodes=(\S+)", line) for line in lines)
    return [one[1] for one in found if one and one[1] != "(null)"]


def smallest_batch(partition: str, least: int) -> tuple[list[str], float]:
    """Return the `least` idle nodes of a batch, and its `families` as in Screen, for a dry run.

    Raises UserError where fewer nodes of the partition are idle.
    """
    seen = states(partition)
    idle = [name for name, state in seen.items() if state.lower() == FREE]
    if len(idle) < least:
        raise UserError(
            f"{count(len(idle), 'node')} idle, and a batch has {least}",
            place=f"--scheduler slurm:{partition}",
            fix="try again later, or name fewer with --partners",
        )
    return idle[:least], len(seen) / least


@contextmanager
def lent(
    partition: str,
    time_s: float,
    key: str,
    notify: Callable[[str], None],
    wanted: Sequence[str],
    network: str,
) -> Iterator[Reached]:
    """Yield the idle nodes of `partition`, or those of `wanted`, in one job of `time_s` seconds.

    The job ends with the context; `key` names it in the queue. Raises UserError where no node is
    idle, or Slurm refuses.
    """
    seen = states(partition)
    chosen = [name for name in wanted or seen if seen.get(name, "").lower() == FREE]
    others = {name: f"{seen.get(name, 'gone')} in Slurm" for name in wanted or seen}
    absent = {name: why for name, why in others.items() if name not in chosen}
    if not chosen:
        raise UserError(
            f"none of {count(len(others), 'node')} is idle",
            place=f"--scheduler slurm:{partition}",
            fix='add --wait "8 h" to screen nodes as they come free, or ask for a reservation',
        )
    if absent:
        notify(f"not screened because they are not idle: {fold(absent)}")
    asked = Scheduler("slurm", len(chosen), time_s, partition=partition)
    with Allocations({ARM: asked}, key, PLACE, notify, in_job("slurm"), chosen) as held:
        there = held.hosts[asked]
        found = lent_by(lambda _: held, there, network)
        yield replace(found, absent=absent, until=held.ends_at)


def lent_by(
    lender: Callable[[str], Allocations],
    there: Sequence[Host],
    network: str,
    *,
    singly: bool = False,
) -> Reached:
    """Return hosts that are lent; `lender` returns the allocation of a node, by its name."""

    def station(hosts: Sequence[Host], local: LocalStation) -> HostStation:
        held = lender(hosts[0].name)
        return LentStation(hosts, local, held, tied=held.dialect.TIED)

    hosts = Hosts(addressed(one.name for one in there), network=network)
    return Reached(hosts, there, station=station, singly=singly)
