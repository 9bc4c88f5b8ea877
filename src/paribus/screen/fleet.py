"""The nodes of a screen: each is reached, made ready and launched on by itself.

In go the hosts that the command line names or a scheduler lends (Reached), out comes a Fleet with a
station for each node that can be used. A node that cannot be used is `absent` with the reason,
such as "no MPI in PATH", and the others are screened without it.
"""

from __future__ import annotations

import math
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
    Selection,
    Settings,
    Study,
    UserError,
    count,
)
from paribus.hosts.host_machine import HostMachine
from paribus.hosts.reached import Host
from paribus.hosts.remote import HostStation
from paribus.launch.arms import Ready
from paribus.launch.gathering import gather_arm
from paribus.launch.interfaces import check_network
from paribus.launch.local import LocalStation
from paribus.launch.ready import make_ready
from paribus.screen.course import BAR, gpu_of, nodes_of
from paribus.screen.plan import MOST_GPUS
from paribus.store import Gathered

AT_ONCE = 64
"""Nodes that are asked or connected to at the same time."""

ARM = "fleet"

VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
BY_ADDRESS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""How a launch is shown one GPU of its node; by default CUDA numbers them by their speed."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Reached:
    """The hosts of a screen, as named (`hosts`) and as reached (`there`).

    `absent`: why other nodes cannot be used. `station`: makes the station of one node, or of two.
    `until`: when launches must end, in seconds since the epoch. `singly`: a scheduler lends each
    node in a job of its own. `families`: as in Screen.
    """

    hosts: Hosts
    there: Sequence[Host]
    absent: Mapping[str, str] = field(default_factory=dict)
    station: Callable[[Sequence[Host], LocalStation], HostStation] = HostStation
    until: float = math.inf
    singly: bool = False
    families: float = 1.0


@dataclass(slots=True)
class Fleet:
    """The nodes that can be launched on: the station and the arm, made ready, of each, by name.

    `absent`: why others cannot be used. `study`: what they were made ready for. `paired`: from two
    nodes and a network ("": that of the hosts) makes their station, not entered yet, and their arm;
    `singly`: as in Reached.
    """

    stations: dict[str, HostStation] = field(default_factory=dict)
    ready: dict[str, Ready] = field(default_factory=dict)
    study: Study | None = None
    absent: dict[str, str] = field(default_factory=dict)
    paired: Callable[[Sequence[str], str], tuple[HostStation, Ready]] | None = None
    singly: bool = False

    @contextmanager
    def reached(self, unit: str, network: str) -> Iterator[tuple[HostStation, Ready]]:
        """Yield the station and the arm of a unit, a pair over `network`.

        A GPU has its node's station, and environment variables that show it alone; a pair has a
        station of its own for as long. Raises what entering that raises.
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
    """A directory of this machine's station for one node: all nodes' files have the same names."""

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
    """Return the hosts that answer, the others absent, and the number of cores that most have.

    Nodes with fewer cores are absent too: they are of another kind. Raises UserError where none
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
    notify: Callable[[str], None],
    networks: Sequence[str],
) -> Iterator[Fleet]:
    """Yield the fleet of the hosts that are `reached`, ready for launches of `selections`.

    Its stations end with the context. Where there are several `networks`, a node that lacks one of
    them is absent. Programs are compiled on the first node and sent to the others. Raises UserError
    where no node can be used.
    """
    arm = Arm(ARM, mpi=mpi or None, hosts=reached.hosts)
    what, how = tuple(selections), Settings(bind="core")
    study = Study("Which nodes are slow?", "nothing", (arm,), what, how, path="screen")
    ready, lacking = _made_ready(study, reached.there, local, notify, networks[1:])
    by_name = {host.name: host for host in reached.there if host.name not in lacking}
    with ExitStack() as stack:
        make = reached.station
        corners = {name: _Corner(local, number) for number, name in enumerate(by_name)}
        stations = {name: make([host], corners[name]) for name, host in by_name.items()}
        stations, absent = _each(stations, lambda name: stations[name].__enter__())
        for one in stations.values():
            stack.push(one)
        absent = {**reached.absent, **lacking, **absent}
        if not stations:
            raise _nobody(absent)

        def paired(names: Sequence[str], network: str) -> tuple[HostStation, Ready]:
            hosts = [by_name[name] for name in names]
            return make(hosts, corners[names[0]]), _alone(ready, names, network)

        own = {name: _alone(ready, [name]) for name in stations}
        yield Fleet(stations, own, study, absent, paired, reached.singly)


def facts_of(fleet: Fleet) -> list[Gathered]:
    """Return the facts of each node, its name as that of the arm; nodes that fail are left out."""
    study = fleet.study
    assert study is not None

    def gathered(name: str) -> list[Gathered]:
        own = replace(study, arms=(fleet.ready[name].arm,))
        return gather_arm(own, fleet.ready[name], fleet.stations[name])

    found, _ = _each(fleet.stations, gathered)
    return [replace(one, arm=name, node=name) for name, several in found.items() for one in several]


def gpus_of(gathered: Iterable[Gathered]) -> dict[str, int]:
    """Return the number of GPUs of each node, by its facts; nodes with none are left out."""
    counts = ((one.node, one.facts.get("gpu.count")) for one in gathered)
    return {node: min(n, MOST_GPUS) for node, n in counts if isinstance(n, int) and n > 0}


def _made_ready(
    study: Study,
    there: Sequence[Host],
    local: LocalStation,
    notify: Callable[[str], None],
    networks: Sequence[str],
) -> tuple[Ready, dict[str, str]]:
    """Return the arm, made ready on all hosts where it can be, and why the others cannot."""
    [arm] = study.arms
    hosts, by_name = arm.hosts, {host.name: host for host in there}
    assert hosts is not None

    def made(names: Sequence[str], say: Callable[[str], None]) -> Ready:
        some, own = [by_name[name] for name in names], replace(hosts, addresses=addressed(names))
        asked = replace(study, arms=(replace(arm, hosts=own),))
        # The station is never entered: it only holds the hosts.
        ready = make_ready(asked, say, {ARM: HostStation(some, local)})[ARM]
        for network in networks:
            over = replace(ready.arm, hosts=replace(hosts, network=network))
            check_network(over, study.path, [HostMachine(one) for one in some])
        return ready

    try:
        return made([*by_name], notify), {}
    except UserError:
        # One node may lack what the others have: find out which, each by itself.
        alone = by_name if len(there) > 1 else {}
        _, lacking = _each(alone, lambda name: made([name], lambda _: None))
        if not 0 < len(lacking) < len(there):
            raise
    return made([name for name in by_name if name not in lacking], notify), lacking


def _alone(ready: Ready, names: Sequence[str], network: str = "") -> Ready:
    """Return the arm that was made ready for all, on one or two of its nodes, over `network`."""
    hosts = ready.arm.hosts
    assert hosts is not None
    pocket, over = min(len(names), hosts.pocket), network or hosts.network
    own = replace(hosts, addresses=addressed(names), pocket=pocket, network=over)
    nodes = {name: ready.nodes[name] for name in names if name in ready.nodes}
    return replace(ready, arm=replace(ready.arm, name=BAR.join(names), hosts=own), nodes=nodes)


def addressed(names: Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses of nodes whose addresses are their names."""
    return tuple(Address(name, name) for name in names)


def _each(names: Collection[str], do: Callable[[str], R]) -> tuple[dict[str, R], dict[str, str]]:
    """Call `do` for all names at once; return its results, and why it failed for others."""
    found: dict[str, R] = {}
    wrong: dict[str, str] = {}

    def done(name: str) -> None:
        try:
            found[name] = do(name)
        except ParibusError as error:
            cause = error.cause if isinstance(error, UserError) else str(error)
            wrong[name] = " ".join(cause.split())

    with ThreadPoolExecutor(min(AT_ONCE, max(1, len(names)))) as pool:
        list(pool.map(done, names))
    there = {name: found[name] for name in names if name in found}
    return there, {name: wrong[name] for name in names if name in wrong}


def _nobody(absent: Mapping[str, str]) -> UserError:
    """Return the error where no node is left, with the reason of the first."""
    name, why = next(iter(absent.items()))
    fix = "see what is wrong: paribus cluster check HOSTS"
    return UserError(f"no node can be screened: {why}", place=name, fix=fix)
