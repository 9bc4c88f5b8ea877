"""The design of a study: its question, its arms and their layers, its benchmarks and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from paribus.core.hosts import Hosts, nodes_of_ranks
from paribus.core.model import Endpoint
from paribus.core.units import parse_price

Transport = Literal["auto", "shm", "tcp"]
Engine = Literal["namespace", "podman", "docker", "apptainer", "singularity", "charliecloud"]


@dataclass(frozen=True, slots=True)
class Container:
    """A container layer of an arm. `each` says what one container holds: a rank or a host.

    `image` is a name of the engine's store, or a path. `bind_mpi`: ranks use the machine's MPI,
    else that of the image. `devices`, `gpu` and `options` are passed on to the engine.
    """

    engine: Engine
    network: Literal["bridge", "host", "none"] = "bridge"
    each: Literal["rank", "host"] = "host"
    image: str | None = None
    bind_mpi: bool = True
    devices: tuple[str, ...] = ()
    gpu: Literal["", "nvidia", "amd"] = ""
    options: tuple[str, ...] = ()


def hosts_for(container: Container | None, ranks: int, per_host: int) -> int:
    """Return the number of hosts that `ranks` ranks see, `per_host` on each (0: all on one).

    These are containers that stand for hosts, or this machine.
    """
    if container is None or container.each == "rank" or not per_host:
        return 1
    return -(-ranks // per_host)


@dataclass(frozen=True, slots=True)
class Adapter:
    """The RDMA port of an arm's hosts, as sysfs names it; `gid_index` of None: not given."""

    device: str
    port: int = 1
    gid_index: int | None = None

    def __str__(self) -> str:
        return f"{self.device}:{self.port}"


BUILD = "{build}"
"""In `argv`, `wrap`, `env` and parameters: replaced by the directory of the arm's build."""

SEED = "{seed}"
"""In the commands of a build: replaced by a number, another one for each build of a study."""


class Built(NamedTuple):
    """Where the build of an arm is, and the SHA-256 of its files.

    Where each block has a build of its own, `folder` is that of the first, the digest is one of
    them all, and `seeds` are their numbers, block by block.
    """

    folder: str
    digest: str
    seeds: tuple[int, ...] = ()


class Step(NamedTuple):
    """A command that switches the platform, and the host that runs it."""

    argv: tuple[str, ...]
    on: str = ""  # the name of a host or a hypervisor of the arm; "": this machine
    limit_s: float = 0.0  # seconds that it may take, if it is a command of Paribus itself

    def __str__(self) -> str:
        words = " ".join(self.argv)
        return f"{self.on}: {words}" if self.on else words


@dataclass(frozen=True, slots=True)
class Arm:
    """The platform at one level of the factor: a stack of layers around the program."""

    name: str
    mpi: str | None = None  # the directory or name of an MPI; None: the first that is found
    transport: Transport = "auto"
    container: Container | None = None
    hosts: Hosts | None = None  # None: this machine
    adapter: Adapter | None = None  # the RDMA port that messages between hosts take
    ranks_per_host: int = 0  # 0: an equal share on hosts, all ranks in one container
    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Step, ...] = ()  # switches the platform to this arm
    after: tuple[Step, ...] = ()  # switches it back
    observe: tuple[Step, ...] = ()  # prints the level that `before` switched to
    level: str = ""  # what `observe` must print, "" where any text will do
    argv: tuple[str, ...] = ()  # replaces that of benchmarks which have this parameter
    wrap: tuple[str, ...] = ()  # a command put before the program or the launcher: `wrap_around`
    wrap_around: Literal["rank", "launcher"] = "rank"
    build: tuple[tuple[str, ...], ...] = ()  # commands that build its programs, in a copy of source
    source: str = ""
    built: Built | None = None  # what they made, known once launches are made
    price: str = ""  # of one node, as units.parse_price reads it: "2.07 EUR/node-hour"


@dataclass(frozen=True, slots=True)
class Selection:
    """A benchmark as one study uses it; in a study that scales, one size of it."""

    label: str  # unique within the study
    benchmark: str
    ranks: int
    parameters: Mapping[str, Any]
    timeout_s: float | None = None  # of a launch; None: a limit by the warm-up launches
    file: str | None = None  # of a benchmark file of the user
    file_sha256: str | None = None
    endpoints: tuple[Endpoint, ...] = ("median", "p99", "p25", "min")  # the first decides
    of: str = ""  # the label of the benchmark that this is a size of
    hosts: int = 0  # how many hosts of each arm it takes, the first ones; 0: what the ranks need

    @property
    def size(self) -> int:
        """The hosts, or where these are not varied the ranks."""
        return self.hosts or self.ranks


@dataclass(frozen=True, slots=True)
class Scaling:
    """The [scaling] table: each benchmark runs at several sizes, which are hosts or ranks.

    "strong": the problem is the same at each size; "weak": it is the same for each host or rank.
    An arm scales as long as its efficiency, the share of the ideal speed, is above `bound`.
    """

    over: Literal["hosts", "ranks"]
    kind: Literal["strong", "weak"] = "strong"
    bound: float = 0.5


MOST_MARGIN = 100.0
"""The largest margin, as a share: above it no figure would ever differ."""

MOST_BUILDS = 100
"""Builds of an arm at most: each is a copy of its source."""

SHUFFLED = 6
"""Launches of each arm in the random order with which a study of few launches begins."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The [plan] table: everything about the design that is fixed before the first launch.

    `unit` "session": the factor is expensive to switch, so a block is one session of each arm with
    `launches` launches, and the median of a session is what counts; "build": likewise, and each
    session has another build of its arm. `layout` "duet": the arms of a block are launched at the
    same time, each on its half of the cores. `decides`: a benchmark goes on until its headline is
    decided, or until its cases are as well; "sizes": and not before there are blocks enough for
    a band over its sizes (stats/band.py). `design` "few": looks from 6 blocks on, the first of
    them shuffled (stats/few.py); "auto": that one where a warm-up launch turns out expensive, else
    "standard"; "explain": combinations of the changes between two arms. See paribus.designs.
    """

    margin: float | None = None  # a share; None: the metric's own
    confidence: float = 0.95
    blocks: int = 60  # the most blocks of a benchmark
    budget_s: float | None = None  # seconds spent in launches
    seed: int | None = None  # None: drawn when the plan is frozen
    bind: Literal["core", "none"] = "core"
    unit: Literal["launch", "session", "build"] = "launch"
    launches: int = 5  # of a session
    layout: Literal["pairs", "duet"] = "pairs"
    decides: Literal["headline", "cases", "sizes"] = "headline"
    monitor: bool = False  # without end, judged by a confidence sequence, valid at any moment
    every_s: float = 0.0  # of a monitored study: seconds from block to block
    same_nodes: bool = False  # all arms and allocations have the nodes of the first allocation
    allocations: int = 0  # of a scheduler, among which the blocks are divided; 0: as few as will do
    design: str = "standard"


PARTS = (
    *("messages_small", "messages_middle", "messages_large"),
    *("collectives_small", "collectives_middle", "collectives_large"),
    *("one_sided", "storage", "waiting", "other", "outside"),
)
"""The parts of an application's time: what native/profile counts in MPI, and what is outside."""


FEW_CPUS = 0.9
"""CPU time over time below which a profile may be of other programs: the busy waits of MPI use all
of a core. LAMMPS with 58, 50 and 20 % of its cores spent 38, 50 and 60 % of its time in MPI."""


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The MPI calls of an application, which the benchmark `replay` makes again."""

    calls: str  # as the parameter `calls` of `replay`
    seconds: float  # of wall clock that they took
    computing: float  # share of the time outside MPI, without that lost to other programs
    spread: float = 0.0  # how far the times of several runs were apart, as a share


@dataclass(frozen=True, slots=True)
class Profile:
    """Where an application spends its time: `shares` of PARTS, which sum to 1.

    They are means over `ranks`, of the time between MPI_Init and MPI_Finalize. `source` is who
    measured a profile that ships. Those of before `paribus.profile/2` have no skeleton.
    """

    name: str
    command: str
    ranks: int
    shares: Mapping[str, float]
    taken: str = ""
    machine: str = ""
    library: str = ""
    source: str = ""
    skeleton: Skeleton | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """One question: factor, arms (the first is the reference), benchmarks, plan.

    `explains` are keys of facts that the factor explains beyond its own. `hosts` are those that
    the command line named, by arm. `asked` holds the values of other keys of lenses.
    """

    question: str
    factor: str
    arms: tuple[Arm, ...]
    benchmarks: tuple[Selection, ...]
    settings: Settings
    explains: tuple[str, ...] = ()
    path: str = ""
    scaling: Scaling | None = None
    profile: Profile | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)

    def sizes_of(self, benchmark: str) -> tuple[Selection, ...]:
        """Return the selections that are sizes of `benchmark`, the smallest first."""
        return tuple(one for one in self.benchmarks if one.of == benchmark)

    def sizes_with(self, label: str) -> tuple[str, ...]:
        """Return the labels of all sizes of the benchmark that `label` is a size of, or itself."""
        of = next((one.of for one in self.benchmarks if one.label == label), "")
        return tuple(one.label for one in self.sizes_of(of)) if of else (label,)


def arm_at(arm: Arm, selection: Selection) -> Arm:
    """Return `arm` with only those of its hosts that a launch of `selection` takes."""
    if not (arm.hosts and selection.hosts):
        return arm
    each = selection.ranks // selection.hosts
    return replace(arm, hosts=arm.hosts.first(selection.hosts), ranks_per_host=each)


def nodes_of(arm: Arm, selection: Selection) -> int:
    """Return the number of nodes that the ranks of a benchmark are on in an arm."""
    arm = arm_at(arm, selection)
    if arm.hosts is None or not selection.ranks:
        return 1
    return len(set(nodes_of_ranks(arm.hosts, selection.ranks, arm.ranks_per_host)))


def check_sound(study: Study) -> None:
    """Raise ValueError for settings that no study file can have, as a forged plan may."""
    settings = study.settings
    counts = min(settings.blocks, settings.launches, len(study.arms) - 1, len(study.benchmarks))
    margin = 1.0 if settings.margin is None else settings.margin
    shares = 0 < settings.confidence < 1 and 0 < margin < MOST_MARGIN
    if counts < 1 or (settings.seed or 0) < 0 or not shares:
        raise ValueError("its settings are of no study")
    for arm in study.arms:
        if arm.hosts and not arm.hosts.names:
            raise ValueError(f"arm {arm.name} has hosts, and none is named")
        if arm.price:
            parse_price(arm.price)
