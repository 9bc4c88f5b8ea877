"""The nodes of a Slurm partition: the idle ones are held for the screen, others are not screened.

What is down, drained or another user's is no fault of the node: its state is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from paribus.core import Scheduler, UserError, count, fold
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.local import LocalStation, capture
from paribus.schedulers.allocations import Allocations
from paribus.schedulers.known import in_job
from paribus.schedulers.lent import LentStation

ANSWER_S = 60.0
ARM = "fleet"
FREE = ("idle",)

Opened = Callable[[Host, LocalStation], HostStation]
"""Makes the station of a node."""


def partition_of(text: str) -> str:
    """Return the partition of slurm:PARTITION; raises UserError for anything else."""
    name, given, partition = text.partition(":")
    if name != "slurm" or not given or not partition:
        fix = "write --scheduler slurm:PARTITION"
        raise UserError("is no partition of Slurm", place=f"--scheduler {text}", fix=fix)
    return partition


def states(partition: str) -> dict[str, str]:
    """Return the state of each node of a partition, as sinfo has it; raises UserError."""
    argv = ["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%N %T"]
    answer = capture(argv, timeout_s=ANSWER_S)
    if answer.exit_code:
        said = " ".join((answer.stderr or answer.stdout).split())[:300]
        fix = "start the screen where `sinfo` works"
        raise UserError(f"Slurm does not answer: {said}", place="sinfo", fix=fix)
    lines = (line.split() for line in answer.stdout.splitlines())
    found = {words[0]: words[1] for words in lines if len(words) == 2}
    if not found:
        fix = "see `sinfo` for the partitions"
        raise UserError("has no nodes", place=f"--scheduler slurm:{partition}", fix=fix)
    return found


@contextmanager
def lent(
    partition: str,
    time_s: float,
    key: str,
    tell: Callable[[str], None],
    wanted: Sequence[str] = (),
) -> Iterator[tuple[Sequence[Host], dict[str, str], Opened]]:
    """Yield the idle nodes of `partition`, held for `time_s` seconds, why others are not here, and
    how a station on one is made.

    With `wanted`, only those. All of it is given back with the context. Raises UserError where no
    node is idle, or Slurm refuses.
    """
    seen = states(partition)
    chosen = [name for name in wanted or seen if seen.get(name, "").lower() in FREE]
    others = {name: f"{seen.get(name, 'gone')} in Slurm" for name in wanted or seen}
    absent = {name: why for name, why in others.items() if name not in chosen}
    if not chosen:
        raise UserError(
            f"none of {count(len(others), 'node')} is idle",
            place=f"--scheduler slurm:{partition}",
            fix="wait, or ask for a reservation; later nights continue with --resume",
        )
    if absent:
        tell(f"not screened because they are not idle: {fold(absent)}")
    asked = Scheduler("slurm", len(chosen), time_s, partition=partition)
    place = "paribus screen"
    with Allocations({ARM: asked}, key, place, tell, in_job("slurm"), chosen) as held:

        def opened(host: Host, local: LocalStation) -> HostStation:
            return LentStation([host], local, held, tied=held.dialect.TIED)

        yield held.hosts[asked], absent, opened
