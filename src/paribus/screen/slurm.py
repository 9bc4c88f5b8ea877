"""What Slurm says of a partition, and its idle nodes for as long as a context lasts."""

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
FREE = "idle"
PLACE = "paribus screen"


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
        said = " ".join((answer.stderr or answer.stdout).split())[:300]
        raise UserError(f"Slurm refuses: {said}", place=shlex.join(argv[:3]), fix=fix)
    return answer.stdout


def states(partition: str) -> dict[str, str]:
    """Return the state of each node of a partition, as sinfo has it; raises UserError."""
    argv = ["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%N %T"]
    said = ask_slurm(argv, "start the screen where `sinfo` works")
    lines = (line.split() for line in said.splitlines())
    found = {words[0]: words[1] for words in lines if len(words) == 2}
    if not found:
        fix = "see `sinfo` for the partitions"
        raise UserError("has no nodes", place=f"--scheduler slurm:{partition}", fix=fix)
    return found


def is_out(state: str) -> bool:
    """Return whether a node of a state in Slurm is given no job until somebody sees to it.

    >>> [is_out(one) for one in ("IDLE+DRAIN", "down*", "idle*", "MIXED", "IDLE+POWERED_DOWN")]
    [True, True, True, False, False]
    """
    return bool(re.search(r"\bdown|drain|fail|maint|\*", state.lower()))


def switches() -> list[str]:
    """Return the nodesets of the switches that nodes are plugged into, as far as Slurm knows."""
    answer = capture(["scontrol", "show", "topology"], timeout_s=ANSWER_S)
    lines = answer.stdout.splitlines() if not answer.exit_code else []
    found = (re.search(r"\bLevel=0 .*\bNodes=(\S+)", line) for line in lines)
    return [one[1] for one in found if one and one[1] != "(null)"]


def smallest_batch(partition: str, least: int) -> tuple[list[str], float]:
    """Return so many idle nodes of a partition as a batch has at least, and as how many of equal
    shares its error counts.

    Raises UserError where fewer are idle.
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
    """Yield the idle nodes of `partition`, held for `time_s` seconds; if any, those `wanted`.

    All of it is given back with the context. Raises UserError where no node is idle, or Slurm
    refuses.
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
    """Return hosts that are lent, of which each node has its `lender`."""

    def station(hosts: Sequence[Host], local: LocalStation) -> HostStation:
        held = lender(hosts[0].name)
        return LentStation(hosts, local, held, tied=held.dialect.TIED)

    hosts = Hosts(addressed(one.name for one in there), network=network)
    return Reached(hosts, there, station=station, singly=singly)
