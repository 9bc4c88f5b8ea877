"""Facts of every node of an arm, read from inside: same launcher, container and environment.

One launch asks all nodes of an arm; those whose answer is missing, cut off or wrong are asked
alone, each within its own limit, so that one that hangs costs no other its facts.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paribus import probes
from paribus.audit.classes import of_hypervisor
from paribus.audit.values import ERROR, NODES
from paribus.benchmarks import benchmark_of
from paribus.core import (
    Arm,
    Facts,
    LaunchError,
    MachineError,
    ParseError,
    Study,
    arm_at,
    hosts_for,
    nodes_of_ranks,
)
from paribus.launch.arms import Ready, asked_of, program
from paribus.launch.asking import Heard, ask
from paribus.launch.machine import Machine
from paribus.launch.memory import check_memory
from paribus.launch.programs import check_there
from paribus.launch.ready import machines_of
from paribus.launch.station import Station
from paribus.launch.unswitched import Switching
from paribus.probes.archive import Archive
from paribus.probes.variables import prefixes
from paribus.store import Gathered
from paribus.studyfile.switches import server_tree, tree_fact

HYPERVISOR_S = 30.0
"""Seconds in which a hypervisor must have said what it is. Reading takes well under one."""


def beside(arm: Arm, station: Station, guests: Sequence[Gathered]) -> list[Gathered]:
    """Return the facts of the nodes of `arm`, those of their hypervisors added to each.

    Raises UserError, naming it, for a hypervisor that does not answer.
    """
    if not (arm.hosts and arm.hosts.hypervisors):
        return list(guests)
    from paribus.launch.others import switched

    if not (there := switched(station)):
        return list(guests)
    nonce = f"n{secrets.token_hex(8)}"
    words = ("/bin/sh", "-c", probes.script(), "paribus-facts", nonce, "all")
    said = there.said_below(words, HYPERVISOR_S)
    known = {name: _facts(name, text) for name, text in said.items()}
    return [
        replace(one, facts={**one.facts, **known[arm.hosts.below(number)]})
        for number, one in enumerate(guests)
    ]


def _facts(name: str, said: str) -> Facts:
    try:
        return of_hypervisor(probes.facts_from_stream(said))
    except ParseError as error:
        cause = f"this hypervisor gave no facts: {error.cause}"
        raise MachineError(cause, place=name, fix=f"try it: ssh {name} true") from error


LIMIT_S = 15.0
"""Seconds that a launch may take that asks a node. Reading takes well under one."""

NODE_S = 0.05
"""Seconds more for every further node that the launch asks: launchers start many one by one."""

ALONE_S = 60.0
"""Seconds after which no more nodes of an arm are asked alone: then something else is wrong."""

SLOW = "screen.slow"
"""The fact that holds what `paribus screen` said of a node (screen/before.py)."""

_MAY_COMPUTE = ("display", "coprocessor", "accelerator")
"""Kinds of PCI devices, as probes/pci.py names them, among which GPUs are."""

OF_PROGRAM = ("lib.", "program.")
"""Facts of a program, of which a study may start several."""


def gather(
    study: Study,
    ready: Mapping[str, Ready],
    stations: Mapping[str, Station],
    switches: Switching,
    notify: Callable[[str], None],
) -> list[Gathered]:
    """Return the facts of every node of every arm, each arm switched to by its own commands.

    `notify` hears of each arm, and of the commands that switch it, before they are run.
    What goes wrong on a node is its fact `facts.error`; raises ParibusError only for a command of
    the study that fails.
    """
    found: list[Gathered] = []
    for arm in study.arms:
        words = [str(step) for step in (*arm.before, *arm.observe)]
        notify(f"{arm.name}: facts" + (f", after `{'; '.join(words)}`" if words else ""))
        with switches.at([arm]):
            found += gather_arm(study, ready[arm.name], stations[arm.name])
            if fallen := switches.fallen([arm]):
                raise fallen
    return found


def gather_arm(study: Study, ready: Ready, station: Station) -> list[Gathered]:
    """Return the facts of every node of an arm that is switched to already.

    Raises UserError for a program or a network that is not there although the arm is switched to,
    for a node without the arm's adapter or the memory that a kernel takes, and for a hypervisor
    that does not answer.
    """
    check_switched(study, ready.arm, ready.machine)
    if ready.arm.before and ready.arm.hosts and ready.arm.hosts.network:
        from paribus.launch.interfaces import check_network

        check_network(ready.arm, study.path, machines_of(station))
    ranks, programs = nodes_of(study, ready), _programs(study, ready)
    # Not bound to the cores of a rank: what is asked is which cores the arm leaves to all of them.
    # One rank on each node is enough to ask it.
    free = replace(ready, cores=(), arm=replace(ready.arm, ranks_per_host=1))
    set_here = frozenset(name for arm in study.arms for name in arm.env)

    def answers(turn: int | None) -> tuple[dict[int, tuple[str, Facts]], dict[int, str]]:
        scratch = f"{station.scratch}/facts"
        limit_s = LIMIT_S + NODE_S * (ranks - 1)
        turns = range(ranks) if turn is None else (turn,)
        try:
            heard = ask(free, station, ranks, programs, turn=turn, limit_s=limit_s, scratch=scratch)
        except (LaunchError, OSError) as error:
            return {}, dict.fromkeys(turns, _one_line(error))
        return _understood(heard, turns, scratch, set_here)

    known, wrong = answers(None)
    begin = time.monotonic()
    for rank in sorted(wrong):
        if time.monotonic() - begin < ALONE_S:
            again, still = answers(rank)
            known, wrong = {**known, **again}, {**wrong, **still}
    check_memory(study, ready, {rank: facts for rank, (_, facts) in known.items()})
    tree = server_tree(ready.arm)
    for rank, (name, said) in known.items():
        facts: Facts = {**said, **tree, **screened(study, name)}
        if adapter := ready.arm.adapter:
            from paribus.launch.adapters import with_adapter

            place = f"{study.path}: arms.{ready.arm.name}.adapter"
            facts = with_adapter(adapter, name, facts, place)
        known[rank] = name, facts
    return beside(ready.arm, station, _named(ready.arm.name, ranks, known, wrong))


def screened(study: Study, name: str) -> Facts:
    """Return what a screen said of the node `name`, for a study that is given one."""
    if "screen" not in study.asked:
        return {}
    slow = {node.partition(".")[0]: said for node, said in study.asked["screen"].items()}
    return {SLOW: slow.get(name.partition(".")[0], "no")}


def _understood(
    heard: Heard, ranks: Collection[int], scratch: str, set_here: Collection[str]
) -> tuple[dict[int, tuple[str, Facts]], dict[int, str]]:
    """Return name and facts of the nodes that answered, and what is wrong with the others."""
    known: dict[int, tuple[str, Facts]] = {}
    wrong: dict[int, str] = {}
    for rank in ranks:
        if rank not in heard.texts:
            wrong[rank] = _one_line(heard.wrong(rank))
            continue
        try:
            several = [read_answer(text, set_here) for text in heard.texts[rank]]
        except (LaunchError, ValueError) as error:
            wrong[rank] = _one_line(error)
            continue
        name, facts = several[0]
        facts = {**facts, **_of_programs([one for _, one in several])}
        # Scratch is another directory each time, and stands in variables of launchers.
        own = Path(scratch).parent.name
        texts = {key: value for key, value in facts.items() if isinstance(value, str)}
        changed = {key: value.replace(own, "SCRATCH") for key, value in texts.items()}
        known[rank] = name, {**facts, **changed}
    return known, wrong


def _named(
    arm: str, ranks: int, known: Mapping[int, tuple[str, Facts]], wrong: Mapping[int, str]
) -> list[Gathered]:
    """Return what came of each node, in order; nodes of one name have numbers."""
    at, names = time.time(), [name for name, _ in known.values()]
    found = []
    for rank in range(ranks):
        shown = number = f"node {rank + 1} of {ranks}"
        if rank in known:
            name, facts = known[rank]
            shown = name if names.count(name) == 1 else f"{name} ({number})"
        else:
            facts = {ERROR: wrong[rank], NODES: ranks}
        found.append(Gathered(arm, shown, at, facts))
    return found


def check_switched(study: Study, arm: Arm, machine: Machine) -> None:
    """Raise UserError for a program that is still missing when the platform is switched to `arm`.

    Before that, only programs can be checked that the arm's commands have no part in.
    """
    for one in study.benchmarks if arm.before else ():
        benchmark = benchmark_of(one)
        place = f"{study.path}: {one.label} in {arm.name}, after its `before` commands"
        check_there(arm, benchmark, program(arm, one, benchmark), place, machine, switched=True)


def nodes_of(study: Study, ready: Ready) -> int:
    """Return how many nodes the launches of an arm use: its containers that stand for hosts."""
    arm = ready.arm
    most = 1
    for one in study.benchmarks:
        wanted, its = program(arm, one, benchmark_of(one)), arm_at(arm, one)
        ranks = one.ranks if wanted.mpi else 1 + bool(wanted.server and arm.hosts)
        if its.hosts:
            nodes = len(set(nodes_of_ranks(its.hosts, ranks, its.ranks_per_host)))
        else:
            nodes = hosts_for(its.container, ranks, its.ranks_per_host)
        most = max(most, nodes)
    return most


def asked(
    study: Study, ready: Mapping[str, Ready], switches: Switching
) -> dict[str, dict[str, list[Facts]]]:
    """Return what is known of launches before the first; see `known_before`."""
    return {
        selection.label: {
            name: [known_before(study, one, selection.label, switches)]
            for name, one in ready.items()
        }
        for selection in study.benchmarks
    }


def known_before(study: Study, ready: Ready, label: str, switches: Switching) -> Facts:
    """Return the facts of a launch of benchmark `label` before it starts.

    What the study asks for, the level of the arm, and what was built.
    """
    built = {"kernel.build": ready.facts[label]} if label in ready.facts else {}
    seen = {**switches.facts(ready.arm), **ready.container, **built}
    return {**asked_of(ready.arm, study.arms), **seen}


def _programs(study: Study, ready: Ready) -> tuple[str, ...]:
    """Return the programs of the study; one of our kernels stands for all: built alike."""
    found: dict[str, str] = {}
    for selection in study.benchmarks:
        wanted = program(ready.arm, selection, benchmark_of(selection))
        # Behind a shell is the program whose libraries count.
        behind = wanted.needs if wanted.argv[:1] in (("sh",), ("/bin/sh",)) else ()
        path = (*ready.kernels.get(selection.label, ()), *behind, *wanted.argv)[0]
        found.setdefault("kernel" if wanted.kernel else path, path)
    return tuple(found.values())


def _of_programs(several: Sequence[Facts]) -> dict[str, Any]:
    """Return the facts of programs, where they differ among these all values."""
    found: dict[str, list[Any]] = {}
    for facts in several:
        for key, value in facts.items():
            if key.startswith(OF_PROGRAM) and value not in found.setdefault(key, []):
                found[key].append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def read_answer(text: str, set_here: Collection[str] = ()) -> tuple[str, Facts]:
    """Return the name of the node that answered and its facts; raises ParseError for no answer.

    `set_here` are the variables that the study itself sets in some arm: each is a fact by itself,
    so their names are not among those of all others.
    """
    archive = probes.from_stream(text)
    rest = [
        line
        for line in archive.lists.get("environment", ())
        if line.startswith(prefixes()) or line.partition("=")[0] not in set_here
    ]
    lists = {**archive.lists, "environment": rest} if "environment" in archive.lists else {}
    facts = probes.facts_of(replace(archive, lists=lists or archive.lists))
    return archive.host, {**facts, **_tree(archive, facts)}


def _tree(archive: Archive, facts: Facts) -> Facts:
    """Return the PCIe tree of a node as a fact, where it has devices that may be GPUs."""
    there = facts.get("pci.devices")
    if not isinstance(there, Mapping) or there.keys().isdisjoint(_MAY_COMPUTE):
        return {}
    from paribus.topology.sysfs import tree_of

    return tree_fact(lambda: tree_of(archive))


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
