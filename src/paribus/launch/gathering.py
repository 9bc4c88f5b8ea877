"""Gathering the facts of every node of an arm, by the arm's own launcher, containers, environment.

One launch asks all nodes of an arm; those whose answer is missing, cut off or wrong are asked
again one by one, each with a time limit, so that facts of the others are not lost with them.
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
"""Seconds that a hypervisor may take to send its facts. Reading them takes well under one."""


def beside(arm: Arm, station: Station, guests: Sequence[Gathered]) -> list[Gathered]:
    """Return `guests`, the facts of the nodes of `arm`, with those of their hypervisors added.

    Raises UserError, naming it, for a hypervisor that does not answer.
    """
    if not (arm.hosts and arm.hosts.hypervisors):
        return list(guests)
    from paribus.launch.others import switched

    if not (hosts := switched(station)):
        return list(guests)
    nonce = f"n{secrets.token_hex(8)}"
    words = ("/bin/sh", "-c", probes.script(), "paribus-facts", nonce, "all")
    printed = hosts.said_below(words, HYPERVISOR_S)
    known = {name: _facts(name, text) for name, text in printed.items()}
    return [
        replace(one, facts={**one.facts, **known[arm.hosts.below(number)]})
        for number, one in enumerate(guests)
    ]


def _facts(name: str, text: str) -> Facts:
    """Return the facts that the hypervisor `name` printed as `text`; raises MachineError."""
    try:
        return of_hypervisor(probes.facts_from_stream(text))
    except ParseError as error:
        cause = f"this hypervisor gave no facts: {error.cause}"
        raise MachineError(cause, place=name, fix=f"try it: ssh {name} true") from error


LIMIT_S = 15.0
"""Seconds that a launch which asks a node may take. Reading takes well under one."""

NODE_S = 0.05
"""Additional seconds for every further node: launchers start many one by one."""

ALONE_S = 60.0
"""Seconds after which no more nodes of an arm are asked one by one: something else is wrong."""

SLOW = "screen.slow"
"""The fact that holds the result of `paribus screen` for a node (screen/before.py)."""

_MAY_COMPUTE = ("display", "coprocessor", "accelerator")
"""Kinds of PCI devices, as probes/pci.py names them, among which GPUs are."""

OF_PROGRAM = ("lib.", "program.")
"""How the keys of facts of a program begin, of which a study may start several."""


def gather(
    study: Study,
    ready: Mapping[str, Ready],
    stations: Mapping[str, Station],
    switches: Switching,
    notify: Callable[[str], None],
) -> list[Gathered]:
    """Switch to each arm in turn, and return the facts of every node of all arms.

    `notify` gets a message on each arm, with the commands that switch it, before they are run. A
    node that cannot be asked has the fact `facts.error`. Raises ParibusError if a command of the
    study fails.
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
    """Return the facts of every node of an arm to which the platform is switched already.

    Raises UserError for a program or a network that is missing, for a node without the arm's
    adapter or the memory that a kernel needs, and for a hypervisor that does not answer.
    """
    check_switched(study, ready.arm, ready.machine)
    if ready.arm.before and ready.arm.hosts and ready.arm.hosts.network:
        from paribus.launch.interfaces import check_network

        check_network(ready.arm, study.path, machines_of(station))
    ranks, programs = nodes_of(study, ready), _programs(study, ready)
    # One rank on each node, not bound: it is to see all cores that the arm leaves to its ranks.
    free = replace(ready, cores=(), arm=replace(ready.arm, ranks_per_host=1))
    set_here = frozenset(name for arm in study.arms for name in arm.env)

    def answers(turn: int | None) -> tuple[dict[int, tuple[str, Facts]], dict[int, str]]:
        """Ask all nodes, or that of rank `turn`; return as _understood."""
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
    for rank, (name, read) in known.items():
        facts: Facts = {**read, **tree, **screened(study, name)}
        if adapter := ready.arm.adapter:
            from paribus.launch.adapters import with_adapter

            place = f"{study.path}: arms.{ready.arm.name}.adapter"
            facts = with_adapter(adapter, name, facts, place)
        known[rank] = name, facts
    return beside(ready.arm, station, _named(ready.arm.name, ranks, known, wrong))


def screened(study: Study, name: str) -> Facts:
    """Return the fact SLOW of the node `name`, none if the study was given no screen."""
    if "screen" not in study.asked:
        return {}
    slow = {node.partition(".")[0]: why for node, why in study.asked["screen"].items()}
    return {SLOW: slow.get(name.partition(".")[0], "no")}


def _understood(
    heard: Heard, ranks: Collection[int], scratch: str, set_here: Collection[str]
) -> tuple[dict[int, tuple[str, Facts]], dict[int, str]]:
    """Return name and facts of the nodes that answered, and errors of the others, by rank.

    `set_here` are the variables that the study sets.
    """
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
        # Variables of launchers have the name of the scratch directory, another each time.
        own = Path(scratch).parent.name
        texts = {key: value for key, value in facts.items() if isinstance(value, str)}
        changed = {key: value.replace(own, "SCRATCH") for key, value in texts.items()}
        known[rank] = name, {**facts, **changed}
    return known, wrong


def _named(
    arm: str, ranks: int, known: Mapping[int, tuple[str, Facts]], wrong: Mapping[int, str]
) -> list[Gathered]:
    """Return the facts of each node in the order of ranks, or its error; nodes of one name are
    numbered."""
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
    """Raise UserError for a program that is missing although the platform is switched to `arm`.

    Before that, programs could not be checked that the arm's commands may bring about.
    """
    for one in study.benchmarks if arm.before else ():
        benchmark = benchmark_of(one)
        place = f"{study.path}: {one.label} in {arm.name}, after its `before` commands"
        check_there(arm, benchmark, program(arm, one, benchmark), place, machine, switched=True)


def nodes_of(study: Study, ready: Ready) -> int:
    """Return the most nodes that a launch of an arm uses: hosts, or containers that stand for
    hosts."""
    arm = ready.arm
    most = 1
    for one in study.benchmarks:
        wanted, at_size = program(arm, one, benchmark_of(one)), arm_at(arm, one)
        ranks = one.ranks if wanted.mpi else 1 + bool(wanted.server and arm.hosts)
        if at_size.hosts:
            nodes = len(set(nodes_of_ranks(at_size.hosts, ranks, at_size.ranks_per_host)))
        else:
            nodes = hosts_for(at_size.container, ranks, at_size.ranks_per_host)
        most = max(most, nodes)
    return most


def asked(
    study: Study, ready: Mapping[str, Ready], switches: Switching
) -> dict[str, dict[str, list[Facts]]]:
    """Return the facts of `known_before` by benchmark and arm, as if of one launch each."""
    return {
        selection.label: {
            name: [known_before(study, one, selection.label, switches)]
            for name, one in ready.items()
        }
        for selection in study.benchmarks
    }


def known_before(study: Study, ready: Ready, label: str, switches: Switching) -> Facts:
    """Return the facts of a launch of benchmark `label` that are known before it starts.

    These are what the study sets in the arm, the level of the arm, and what was built.
    """
    built = {"kernel.build": ready.facts[label]} if label in ready.facts else {}
    seen = {**switches.facts(ready.arm), **ready.container, **built}
    return {**asked_of(ready.arm, study.arms), **seen}


def _programs(study: Study, ready: Ready) -> tuple[str, ...]:
    """Return the paths of the study's programs; one of our kernels stands for all of them."""
    found: dict[str, str] = {}
    for selection in study.benchmarks:
        wanted = program(ready.arm, selection, benchmark_of(selection))
        # The libraries of the program behind a shell count, not those of the shell.
        behind = wanted.needs if wanted.argv[:1] in (("sh",), ("/bin/sh",)) else ()
        path = (*ready.kernels.get(selection.label, ()), *behind, *wanted.argv)[0]
        found.setdefault("kernel" if wanted.kernel else path, path)
    return tuple(found.values())


def _of_programs(several: Sequence[Facts]) -> dict[str, Any]:
    """Return the facts of programs; of one that differs among them, the list of its values."""
    found: dict[str, list[Any]] = {}
    for facts in several:
        for key, value in facts.items():
            if key.startswith(OF_PROGRAM) and value not in found.setdefault(key, []):
                found[key].append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def read_answer(text: str, set_here: Collection[str] = ()) -> tuple[str, Facts]:
    """Return the name of the node that printed `text`, and its facts; raises ParseError.

    `set_here` are the variables that the study sets in some arm. Each of these is a fact by
    itself, so it is left out of the list of other variables.
    """
    archive = probes.from_stream(text)
    variables = [
        line
        for line in archive.lists.get("environment", ())
        if line.startswith(prefixes()) or line.partition("=")[0] not in set_here
    ]
    lists = {**archive.lists, "environment": variables} if "environment" in archive.lists else {}
    facts = probes.facts_of(replace(archive, lists=lists or archive.lists))
    return archive.host, {**facts, **_tree(archive, facts)}


def _tree(archive: Archive, facts: Facts) -> Facts:
    """Return the fact TREE of a node, none if it has no devices that may be GPUs."""
    devices = facts.get("pci.devices")
    if not isinstance(devices, Mapping) or devices.keys().isdisjoint(_MAY_COMPUTE):
        return {}
    from paribus.topology.sysfs import tree_of

    return tree_fact(lambda: tree_of(archive))


def _one_line(error: object) -> str:
    return " ".join(str(error).split())[:300]
