"""How a program is started: a command, the places of its ranks, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from paribus.core.model import Facts, Source


@dataclass(frozen=True, slots=True)
class Command:
    """An argv, what it adds to the environment, and files it needs in the scratch directory.

    `outputs` are patterns of files in the scratch directory whose text belongs to its stdout. That
    is its working directory too, unless `cwd` is another. `cores` are those that the plan binds its
    ranks to, by node ("": this machine); none where some rank is not bound.
    Launchers, containers and schedulers are pure functions from Command to Command; only
    local.py runs one.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    cwd: str = ""
    cores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one rank is: a node, "" for this machine, and its cores there (none: not bound)."""

    node: str = ""
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the launcher puts ranks: rank n into the nth of `slots`. None: all on this machine.

    `agent` is a launch agent to use instead of ssh (an executable taking `HOST COMMAND...`);
    `network` is the address range (CIDR) or interface that MPI's TCP and control traffic takes;
    `crowded` says that some machine has fewer cores than ranks, so that ranks must yield.
    `pmi` is the plug-in by which Slurm's srun starts the ranks, "" for the MPI's own launcher.
    """

    slots: tuple[Slot, ...] = ()
    agent: str | None = None
    network: str | None = None
    crowded: bool = False
    pmi: str = ""

    @property
    def hosts(self) -> tuple[tuple[str, int], ...]:
        """The nodes with their number of ranks, in the order of ranks; none if all are here."""
        counts = Counter(slot.node for slot in self.slots if slot.node)
        return tuple(counts.items())

    @property
    def in_turn(self) -> bool:
        """Whether ranks are numbered over the nodes in turn, not node by node."""
        runs = groupby(slot.node for slot in self.slots if slot.node)
        return len(self.hosts) < len(list(runs))


Family = Literal["openmpi", "mpich", "intelmpi", "msmpi"]

MPI_NAMES: Mapping[Family, str] = {
    "openmpi": "Open MPI",
    "mpich": "MPICH",
    "intelmpi": "Intel MPI",
    "msmpi": "MS-MPI",
}


@dataclass(frozen=True, slots=True)
class Mpi:
    """An MPI installation: its family, version text, and the programs that belong together."""

    family: Family
    version: tuple[int, ...]
    mpicxx: str
    mpirun: str
    env: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{MPI_NAMES[self.family]} {'.'.join(map(str, self.version))}"


class Room(NamedTuple):
    """What is free on the file system of `place`: bytes, and inodes (None: it counts none)."""

    place: str
    bytes: int
    inodes: int | None


Carried = Mapping[str, Mapping[str, int]]
"""Bytes that each network of each node carried: probes.carried."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a process ended. `exit_code` is negative for a signal, as in subprocess.

    `cpu_s` and `involuntary` are the processor time in seconds and the preemptions of all that it
    started here, None where that is not known. `room` is what was free at its end where it may
    write: beside its output, in its scratch directory, in shared memory. `load` is how busy its
    machine was before and after it, by the keys under load. of docs/facts.md, and `beside` who else
    used the processors meanwhile; of several machines the busiest counts, which `load.node` names.
    `carried` is known of hosts only. `energy_j` is what the nodes took meanwhile in joules, by
    the source, of each that knows it of all of them.
    """

    exit_code: int
    wall_s: float
    timed_out: bool = False
    cpu_s: float | None = None
    involuntary: int | None = None
    room: tuple[Room, ...] = ()
    load: tuple[Facts, Facts] | None = None
    beside: tuple[str, ...] = ()
    carried: Carried = field(default_factory=dict)
    energy_j: Mapping[Source, float] = field(default_factory=dict)
