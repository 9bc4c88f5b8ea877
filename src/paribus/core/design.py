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
    """Return how many hosts `ranks` ranks see: containers that stand for hosts, or this machine."""
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
"""Stands for the directory of an arm's build, where programs, wrappers and variables name files."""


SEED = "{seed}"
"""Stands in the commands of a build for a number: another one for each build of a study."""


class Built(NamedTuple):
    """Where the build of an arm is, and the SHA-256 of its files.

    Where each block has a build of its own, `folder` is that of the first, the digest is one of
    them all, and `seeds` are their numbers, block by block.
    """

    folder: str
    digest: str
    seeds: tuple[int, ...] = ()


class Step(NamedTuple):
    """A command that switches the platform: its words, and the host that runs it.

    `on` is the name of a host or a hypervisor of the arm, "" for this machine. With `limit_s`, the
    seconds that it may take, it is a command of Paribus itself, and its words are those of one.
    """

    argv: tuple[str, ...]
    on: str = ""
    limit_s: float = 0.0

    def __str__(self) -> str:
        words = " ".join(self.argv)
        return f"{self.on}: {words}" if self.on else words


@dataclass(frozen=True, slots=True)
class Arm:
    """The platform at one level of the factor: a stack of layers around the program.

    `hosts` of None is this machine; `adapter` is what their messages take. `ranks_per_host` counts
    on hosts, 0 for an equal share, and where containers stand for hosts, 0 for all. What `observe`
    prints is the level that `before` switched to; with `level` it must be this one. `argv` replaces
    that of the benchmarks that have the parameter, and `wrap` is put before the program, or before
    the launcher. `build` makes the arm's programs in a copy of `source`; `built` is what it made,
    while launches are made. `price` is that of one node, as units.parse_price reads it.
    """

    name: str
    mpi: str | None = None
    transport: Transport = "auto"
    container: Container | None = None
    hosts: Hosts | None = None
    adapter: Adapter | None = None
    ranks_per_host: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    observe: tuple[Step, ...] = ()
    level: str = ""
    argv: tuple[str, ...] = ()
    wrap: tuple[str, ...] = ()
    wrap_around: Literal["rank", "launcher"] = "rank"
    build: tuple[tuple[str, ...], ...] = ()
    source: str = ""
    built: Built | None = None
    price: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """A benchmark as one study uses it; `label` is unique within the study.

    `timeout_s` is the limit of a launch; None means one drawn from the warm-up launches. The
    first of `endpoints` decides; the others are reported beside it, each on its own. In a study
    that scales, each size is a selection: `of` is the benchmark that it is a size of, and `hosts`
    how many hosts of each arm it takes, the first ones; 0 for as many as the ranks need.
    """

    label: str
    benchmark: str
    ranks: int
    parameters: Mapping[str, Any]
    timeout_s: float | None = None
    file: str | None = None
    file_sha256: str | None = None
    endpoints: tuple[Endpoint, ...] = ("median", "p99", "p25", "min")
    of: str = ""
    hosts: int = 0

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
"""Above it no figure would ever differ."""

MOST_BUILDS = 100
"""Builds of an arm at most: each is a copy of its source."""

SHUFFLED = 6
"""Launches of each arm in the random order with which a study of few launches begins."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The [plan] table: everything about the design that is fixed before the first launch.

    `margin` of None means the metric's own; `blocks` is the most blocks per benchmark; `seed` of
    None means one drawn when the plan is frozen.

    `unit` "session": the factor is expensive to switch, so a block is a pair (or more) of
    sessions of `launches` launches each, and the median of a session is what counts. "build": so it
    is, and each session has another build of its arm. `layout` "duet": the arms of a block are
    launched at the same time, each on its half of the cores. `decides`: a benchmark goes on until
    its headline is decided, or until its cases are as well; "sizes": and not before there are
    blocks for a band over its sizes (stats/band.py).
    `monitor`: open-ended; judged by a confidence sequence that is valid at any moment.
    `same_nodes`: all arms, and all allocations, have the nodes of the first allocation.
    `allocations`: into how many of a scheduler the blocks are divided, 0 for as few as will do.
    `design` "few": looks from 6 blocks on, the first of them shuffled (stats/few.py); "auto": that
    one where a warm-up launch turns out expensive, else "standard"; "explain": combinations of what
    two arms differ in. Which design that is, and what it does, stands in paribus.designs.
    """

    margin: float | None = None
    confidence: float = 0.95
    blocks: int = 60
    budget_s: float | None = None
    seed: int | None = None
    bind: Literal["core", "none"] = "core"
    unit: Literal["launch", "session", "build"] = "launch"
    launches: int = 5
    layout: Literal["pairs", "duet"] = "pairs"
    decides: Literal["headline", "cases", "sizes"] = "headline"
    monitor: bool = False
    every_s: float = 0.0
    same_nodes: bool = False
    allocations: int = 0
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
    """The calls of an application, which the benchmark `replay` makes: its parameter of that name.

    They took `seconds` by the clock; `computing` is the share outside MPI of what was not lost to
    others on its cores, and `spread` how far the times of several runs were apart.
    """

    calls: str
    seconds: float
    computing: float
    spread: float = 0.0


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

    `hosts` are those that the command line named, as it did, by arm. `asked` are the values of
    other keys of lenses, by key.
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
    """Return `arm` with the hosts that a launch of `selection` takes of it."""
    if not (arm.hosts and selection.hosts):
        return arm
    each = selection.ranks // selection.hosts
    return replace(arm, hosts=arm.hosts.first(selection.hosts), ranks_per_host=each)


def nodes_of(arm: Arm, selection: Selection) -> int:
    """Return the number of nodes that the ranks of a benchmark are on in an arm."""
    its = arm_at(arm, selection)
    if its.hosts is None or not selection.ranks:
        return 1
    return len(set(nodes_of_ranks(its.hosts, selection.ranks, its.ranks_per_host)))


def check_sound(study: Study) -> None:
    """Raise ValueError for figures that no study file may have."""
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
