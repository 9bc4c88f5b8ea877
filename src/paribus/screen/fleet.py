"""The nodes of a screen: each reached, made ready and launched on by itself.

What one node lacks costs no other anything: it is absent, with the reason. So is a node of a
partition of Slurm that is down, drained or another user's.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from paribus.core import (
    Address,
    Arm,
    Hosts,
    ParibusError,
    Scheduler,
    Selection,
    Settings,
    Study,
    UserError,
    count,
    fold,
)
from paribus.hosts.host_machine import HostMachine
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.arms import Ready
from paribus.launch.gathering import gather_arm
from paribus.launch.interfaces import check_network
from paribus.launch.local import LocalStation, capture
from paribus.launch.ready import make_ready
from paribus.schedulers.allocations import Allocations, LentStation
from paribus.schedulers.known import in_job
from paribus.screen.course import gpu_of, nodes_of
from paribus.screen.plan import MOST_GPUS
from paribus.store import Gathered

ANSWER_S = 60.0
FREE = "idle"
PLACE = "paribus screen"


@dataclass(frozen=True, slots=True)
class Reached:
    """Hosts as they are asked for and as they are reached, and why others cannot be had.

    `station` makes that of a node, or of two. Launches are made `until` then (seconds since the
    epoch). `singly`: each node is lent by itself. `families`: as Screen has it.
    """

    hosts: Hosts
    there: Sequence[Host]
    absent: Mapping[str, str] = field(default_factory=dict)
    station: Callable[[Sequence[Host], LocalStation], HostStation] = HostStation
    until: float = math.inf
    singly: bool = False
    families: float = 1.0


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
    tell: Callable[[str], None],
    wanted: Sequence[str] = (),
    network: str = "",
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
        tell(f"not screened because they are not idle: {fold(absent)}")
    asked = Scheduler("slurm", len(chosen), time_s, partition=partition)
    with Allocations({ARM: asked}, key, PLACE, tell, in_job("slurm"), chosen) as held:

        def station(hosts: Sequence[Host], local: LocalStation) -> HostStation:
            return LentStation(hosts, local, held, tied=held.dialect.TIED)

        there = held.hosts[asked]
        yield Reached(named(there, network), there, absent, station, held.ends_at)


def named(there: Sequence[Host], network: str) -> Hosts:
    """Return hosts that are lent as a study asks for them."""
    return Hosts(tuple(Address(one.name, one.name) for one in there), network=network)


AT_ONCE = 64
"""Nodes that are asked or connected to at the same time."""

ARM = "fleet"

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
BY_ADDRESS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""How a launch is shown one GPU of its node; by default CUDA numbers them by their speed."""

R = TypeVar("R")


@dataclass(slots=True)
class Fleet:
    """Nodes that can be launched on, by name, and why others are absent.

    `paired` makes the station of two nodes, not entered yet, and their arm over a network, ""
    for that of all. `singly`: each node is lent by itself.
    """

    stations: dict[str, HostStation] = field(default_factory=dict)
    ready: dict[str, Ready] = field(default_factory=dict)
    study: Study | None = None
    absent: dict[str, str] = field(default_factory=dict)
    paired: Callable[[Sequence[str], str], tuple[HostStation, Ready]] | None = None
    singly: bool = False

    @contextmanager
    def reached(self, unit: str, network: str = "") -> Iterator[tuple[HostStation, Ready]]:
        """Yield the station of a unit and its arm: of a GPU that node's, of a pair one of its own.

        Raises as a station does that cannot be entered.
        """
        names, gpu = nodes_of(unit), gpu_of(unit)
        if len(names) == 1:
            ready = self.ready[names[0]]
            visible = dict.fromkeys(VISIBLE, gpu) | BY_ADDRESS if gpu else {}
            arm = replace(ready.arm, env={**ready.arm.env, **visible})
            yield self.stations[names[0]], replace(ready, arm=arm)
            return
        assert self.paired is not None
        station, ready = self.paired(names, network)
        with station:
            yield station, ready


class _Corner(LocalStation):
    """A part of this machine's station for one node, whose files have the names of any other's."""

    def __init__(self, local: LocalStation, number: int) -> None:
        super().__init__()
        self.scratch = local.scratch
        self._here = f"{local.here}/{number}"
        Path(self._here).mkdir(mode=0o700)

    @property
    def here(self) -> str:
        """Its directory."""
        return self._here


def answering(reached: Reached) -> tuple[Reached, int]:
    """Return the hosts that answer, with the others absent, and how many cores most of them have.

    Nodes with fewer cores are absent too: they are other nodes. Raises UserError where none
    answers.
    """
    by_name = {host.name: host for host in reached.there}
    nodes, absent = _each(by_name, lambda name: HostMachine(by_name[name]).node())
    if not nodes:
        raise _nobody(absent)
    numbers = [len(node.cores) for node in nodes.values()]
    usual = max(sorted(set(numbers), reverse=True), key=numbers.count)
    for name, node in nodes.items():
        if len(node.cores) < usual:
            absent[name] = f"has {count(len(node.cores), 'core')}, most others have {usual}"
    there = [host for name, host in by_name.items() if name not in absent]
    return replace(reached, there=there, absent={**absent, **reached.absent}), usual


@contextmanager
def opened(
    reached: Reached,
    local: LocalStation,
    selections: Sequence[Selection],
    mpi: str,
    tell: Callable[[str], None],
    networks: Sequence[str] = (),
) -> Iterator[Fleet]:
    """Yield the fleet that is `reached`, ready for launches of `selections`; all ends with it.

    Each node has all `networks`, where they are several. Programs are compiled on the first node
    and sent to the others. Raises UserError where no node can be used.
    """
    fleet = Fleet(absent=dict(reached.absent), singly=reached.singly)
    by_name = {host.name: host for host in reached.there}
    ready = _made_ready(fleet, reached.hosts, by_name, local, selections, mpi, tell, networks)
    with ExitStack() as stack:
        make = reached.station
        corners = {name: _Corner(local, number) for number, name in enumerate(by_name)}
        stations = {name: make([host], corners[name]) for name, host in by_name.items()}
        fleet.stations, absent = _each(stations, lambda name: stations[name].__enter__())
        for one in fleet.stations.values():
            stack.push(one)
        fleet.absent |= absent
        fleet.ready = {name: _alone(ready, [name]) for name in fleet.stations}
        fleet.paired = lambda names, network: (
            make([by_name[name] for name in names], corners[names[0]]),
            _alone(ready, names, network),
        )
        if not fleet.stations:
            raise _nobody(fleet.absent)
        yield fleet


def facts_of(fleet: Fleet) -> list[Gathered]:
    """Return the facts of each node, as those of an arm of its name; a node that gives none is
    left out."""
    study = fleet.study
    assert study is not None

    def gathered(name: str) -> list[Gathered]:
        own = replace(study, arms=(fleet.ready[name].arm,))
        return gather_arm(own, fleet.ready[name], fleet.stations[name])

    found, _ = _each(fleet.stations, gathered)
    return [replace(one, arm=name, node=name) for name, several in found.items() for one in several]


def gpus_of(gathered: Iterable[Gathered]) -> dict[str, int]:
    """Return how many GPUs each node has, by its facts; nodes with none are left out."""
    counts = {one.node: one.facts.get("gpu.count") for one in gathered}
    return {
        node: min(number, MOST_GPUS)
        for node, number in counts.items()
        if isinstance(number, int) and number > 0
    }


def _made_ready(
    fleet: Fleet,
    hosts: Hosts,
    by_name: dict[str, Host],
    local: LocalStation,
    selections: Sequence[Selection],
    mpi: str,
    tell: Callable[[str], None],
    networks: Sequence[str],
) -> Ready:
    """Return the arm on all nodes that can be made ready; others leave `by_name`."""

    def made(names: Sequence[str], say: Callable[[str], None]) -> Ready:
        addresses = tuple(Address(name, name) for name in names)
        arm = Arm(ARM, mpi=mpi or None, hosts=replace(hosts, addresses=addresses))
        study = Study(
            question="Which nodes are slow?",
            factor="nothing",
            arms=(arm,),
            benchmarks=tuple(selections),
            settings=Settings(bind="core"),
            path="screen",
        )
        fleet.study = study
        # Constructing a station starts nothing: it only carries the hosts.
        there = [by_name[name] for name in names]
        ready = make_ready(study, say, {ARM: HostStation(there, local)})[ARM]
        for network in networks[1:]:
            arm = replace(ready.arm, hosts=replace(hosts, network=network))
            check_network(arm, study.path, [HostMachine(one) for one in there])
        return ready

    try:
        return made([*by_name], tell)
    except UserError as error:
        if len(by_name) == 1:
            raise
        # One node may lack what the others have: each is asked by itself.
        _, lacking = _each(by_name, lambda name: made([name], lambda _: None))
        if not lacking or len(lacking) == len(by_name):
            raise error
    for name, why in lacking.items():
        del by_name[name]
        fleet.absent[name] = why
    return made([*by_name], tell)


def _alone(ready: Ready, names: Sequence[str], network: str = "") -> Ready:
    """Return the arm of one node or two: what was made ready for all, on these, over `network`."""
    hosts = ready.arm.hosts
    assert hosts is not None
    addresses = tuple(Address(name, name) for name in names)
    own = replace(
        hosts,
        addresses=addresses,
        pocket=min(len(names), hosts.pocket),
        network=network or hosts.network,
    )
    nodes = {name: ready.nodes[name] for name in names if name in ready.nodes}
    return replace(ready, arm=replace(ready.arm, name="|".join(names), hosts=own), nodes=nodes)


def _each(names: Collection[str], do: Callable[[str], R]) -> tuple[dict[str, R], dict[str, str]]:
    """Return what `do` returns of each name, and why it failed for others."""
    found: dict[str, R] = {}
    wrong: dict[str, str] = {}

    def one(name: str) -> None:
        try:
            found[name] = do(name)
        except ParibusError as error:
            said = error.cause if isinstance(error, UserError) else str(error)
            wrong[name] = " ".join(said.split())

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(names)))) as pool:
        list(pool.map(one, names))
    there = {name: found[name] for name in names if name in found}
    return there, {name: wrong[name] for name in names if name in wrong}


def _nobody(absent: Mapping[str, str]) -> UserError:
    name, why = next(iter(absent.items()))
    return UserError(
        f"no node can be screened: {why}",
        place=name,
        fix="see what is wrong: paribus cluster check HOSTS",
    )
