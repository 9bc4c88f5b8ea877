"""How a program is started: a command, the places of its ranks, and how its process ended."""

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
    """What to start. Launchers, containers and schedulers are functions from Command to Command.

    Only local.py runs one.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)  # added to the environment
    files: Mapping[str, str] = field(default_factory=dict)  # to be in the scratch directory: texts
    outputs: tuple[str, ...] = ()  # patterns of files there whose text is appended to stdout
    cwd: str = ""  # the working directory; "": the scratch directory
    # The cores that its ranks are bound to, by node ("": this machine); none if one is not bound.
    cores: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one rank: a node ("": this machine), and its cores there (none: not bound)."""

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
"""Bytes that each network carried, by node and network (probes/carried.py)."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a process ended, and what its machine did meanwhile.

    Of several machines, `load` and `beside` are of the busiest, which the fact `load.node` names.
    """

    exit_code: int  # negative for a signal, as in subprocess
    wall_s: float
    timed_out: bool = False
    cpu_s: float | None = None  # processor time of all that it started here; None: not known
    involuntary: int | None = None  # preemptions of these processes
    room: tuple[Room, ...] = ()  # free at its end beside its output, in scratch, in shared memory
    load: tuple[Facts, Facts] | None = None  # before and after: the keys load.* of docs/facts.md
    beside: tuple[str, ...] = ()  # other programs that used the processors meanwhile
    carried: Carried = field(default_factory=dict)  # known of hosts only
    energy_j: Mapping[Source, float] = field(default_factory=dict)  # of all nodes, by source
