"""An arm made ready (ready.py says how), and its launches.

A launch is pure composition: program, binding, container, launcher, container.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from paribus.core import (
    Arm,
    Benchmark,
    Command,
    Mpi,
    Parsed,
    Placement,
    Program,
    Request,
    Scheduler,
    Selection,
    Slot,
    arm_at,
    nodes_of_ranks,
)
from paribus.launch import launchers
from paribus.launch.machine import HERE, Machine
from paribus.probes.variables import discreet_env, reported


def bound(names: Sequence[str], cores: Mapping[str, Sequence[int]], each: int) -> tuple[Slot, ...]:
    """Return the slots of ranks on the nodes `names`, each bound to `each` of its node's `cores`.

    Cores are counted on every node for itself. What is left over at the end is no rank's: a rank
    has all of its cores, or none.
    """
    so_far: Counter[str] = Counter()
    slots = []
    for name in names:
        at = so_far[name] * each
        own = tuple(cores.get(name, ())[at : at + each])
        slots.append(Slot(name, own if len(own) == each else ()))
        so_far[name] += 1
    return tuple(slots)


def cores_of_ranks(slots: Sequence[Slot]) -> dict[str, tuple[int, ...]]:
    """Return the cores of all ranks by node, none where some rank is not bound."""
    if not all(slot.cores for slot in slots):
        return {}
    found: dict[str, set[int]] = {}
    for slot in slots:
        found.setdefault(slot.node, set()).update(slot.cores)
    return {node: tuple(sorted(cores)) for node, cores in found.items()}


def crowd(names: Sequence[str]) -> int:
    """Return how many ranks the fullest node has."""
    return max(Counter(names).values(), default=0)


@dataclass(frozen=True, slots=True)
class Ready:
    """What the launches of one arm need and share. `kernels`: path and options by benchmark.

    `cores` are those that ranks are bound to, none where they are not bound; of an arm with hosts,
    `nodes` has them. `share` is how many physical cores are the arm's (on its smallest host), bound
    to them or not; `parts` are the equal shares of which the arms of a duet get one each; `shared`
    says that hosts share cores, as pocket hosts may. `machine` is where its launches begin, and
    where its tools are; `container` are facts of its engine. `pmi` is that of command.Placement.
    """

    arm: Arm
    mpi: Mpi | None
    cores: tuple[int, ...]
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    share: int = 1
    parts: Sequence[tuple[int, ...]] = ()
    shared: bool = False
    nodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    machine: Machine = HERE
    container: Mapping[str, str] = field(default_factory=dict)
    pmi: str = ""


def program(arm: Arm, selection: Selection, benchmark: Benchmark) -> Program:
    """Return the program that `selection` asks for; an arm's own argv replaces its.

    The arm's adapter is that of a benchmark which takes one and names none.
    """
    asked = selection.parameters
    own: dict[str, Any] = {"argv": list(arm.argv)} if arm.argv and "argv" in asked else {}
    if arm.adapter:
        of_arm = asdict(arm.adapter)
        own |= {key: of_arm[key] for key in of_arm if key in asked and asked[key] is None}
    wanted = benchmark.command(Request({**asked, **own}, selection.ranks))
    if arm.built is None:
        return wanted
    from paribus.launch.building import from_build

    return from_build(wanted, arm.built)


def concrete(ready: Ready, selection: Selection, benchmark: Benchmark) -> Selection:
    """Return `selection` with the parameter "threads" as the number that a rank has in this arm.

    That is OMP_NUM_THREADS of the arm, which may be its factor; what the program asks for; or the
    rank's share of the cores. Unchanged for a program that is not one of threads.
    """
    wanted = program(ready.arm, selection, benchmark)
    if wanted.threads is None:
        return selection
    own = "OMP_NUM_THREADS" in wanted.env  # then its cores are not those of OpenMP's threads
    said = "" if own else ready.arm.env.get("OMP_NUM_THREADS", "")
    ranks = selection.ranks if wanted.mpi else 1 + bool(wanted.server)
    number = int(said) if re.fullmatch(r"[1-9]\d{0,5}", said) else wanted.threads
    names = names_of(arm_at(ready.arm, selection), wanted, ranks)
    number = number or max(1, ready.share // crowd(names))
    return replace(selection, parameters={**selection.parameters, "threads": number})


def _openmp(threads: int, *, bound: bool) -> dict[str, str]:
    """Return the variables that give an OpenMP program its threads, each on a core of its own."""
    placed = {"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"} if bound and threads > 1 else {}
    return {"OMP_NUM_THREADS": str(threads), **placed}


def compose(
    ready: Ready, selection: Selection, benchmark: Benchmark, *, seed: int, scratch: str
) -> Command:
    """Return the whole command of one launch: pure, so that a dry run can print it."""
    selection = concrete(ready, selection, benchmark)
    ready = replace(ready, arm=arm_at(ready.arm, selection))
    wanted = program(ready.arm, selection, benchmark)
    ranks = selection.ranks if wanted.mpi else 1 + bool(wanted.server)
    each = _cores_of_a_rank(ready, selection, wanted)
    container = ready.arm.container
    where = _placement(ready, wanted, ranks, each, scratch)
    label = selection.label
    argv = (*ready.kernels.get(label, ()), *wanted.argv, *ready.libraries.get(label, ()))
    openmp = {} if wanted.threads is None else _openmp(each, bound=bool(ready.cores))
    adapter = launchers.adapter_env(ready.arm.adapter) if ready.arm.adapter else {}
    env = {**openmp, **adapter, **wanted.env, **ready.arm.env, "PARIBUS_SEED": str(seed)}
    filled = partial(_filled, where=where, scratch=scratch)

    def placed(argv: Sequence[str], first: int) -> Command:
        """Return `argv` started by the launcher, its first rank in the given place."""
        own = replace(where, slots=where.slots[first:])
        if ready.arm.hosts and not wanted.mpi and not first:
            own = replace(own, slots=(replace(own.slots[0], node=""),))  # the launch begins there
        command = Command(
            tuple(map(filled, argv)), env={key: filled(value) for key, value in env.items()}
        )
        command = launchers.bind(_wrapped(command, ready.arm, "rank"), own.slots)
        if container and container.each == "rank":
            from paribus import containers

            prefix = containers.prefix_of(ready.mpi)
            command = containers.wrap_program(command, container, scratch=scratch, prefix=prefix)
        command = launchers.launch(
            command,
            ranks=ranks,
            mpi=ready.mpi if wanted.mpi else None,
            placement=own,
            transport=ready.arm.transport,
            scratch=scratch,
        )
        return _wrapped(command, ready.arm, "launcher")

    command = placed(argv, 0)
    if wanted.server:
        command = _served(command, wanted.server, placed, launchers.port_of(scratch))
    if container and container.each == "host":
        command = _within(command, ready, len(where.hosts), scratch)
    files = {name: filled(text) for name, text in wanted.files.items()}
    fabric = container and container.each == "host" and not ready.arm.hosts
    own_root = container and container.engine == "podman"  # that of a fabric lacks the directory
    cwd = "" if fabric and own_root else filled(wanted.cwd)
    return replace(
        command,
        files={**files, **command.files},
        outputs=wanted.outputs,
        cwd=cwd,
        cores=cores_of_ranks(where.slots),
    )


def compose_ours(ready: Ready, program: Program, ranks: int, scratch: str) -> Command:
    """Return the command of a launch that measures nothing: `program` on the arm's nodes."""
    benchmark = Benchmark(
        name="",
        layer="",
        summary="no benchmark",
        metrics=(),
        command=lambda _: program,
        parse=lambda _text, _request: Parsed(()),
    )
    selection = Selection("", "", ranks, {})
    return compose(ready, selection, benchmark, seed=0, scratch=scratch)


def _served(
    client: Command,
    server: Sequence[str],
    placed: Callable[[Sequence[str], int], Command],
    port: int,
) -> Command:
    """Return `client` after a `server` listens on `port` where the second rank is `placed`."""
    from paribus.launch.launchers.serving import listens, serve

    return serve(client, placed(server, 1), placed(listens(port), 1), port=port)


def _within(command: Command, ready: Ready, hosts: int, scratch: str) -> Command:
    """Return the launcher's `command` where containers stand for hosts: in that of the first."""
    from paribus import containers
    from paribus.containers import on_hosts

    container = ready.arm.container
    assert container is not None
    if ready.arm.hosts is None:
        return containers.wrap_launcher(command, container, hosts=hosts, scratch=scratch)
    prefix, pocket = containers.prefix_of(ready.mpi), ready.arm.hosts.pocket
    return on_hosts.wrap(command, container, hosts=pocket, scratch=scratch, prefix=prefix)


def _wrapped(command: Command, arm: Arm, around: str) -> Command:
    """Return `command` behind the wrapper of `arm`, if that goes there."""
    wrap = arm.wrap if arm.wrap_around == around else ()
    return replace(command, argv=(*wrap, *command.argv))


def _cores_of_a_rank(ready: Ready, selection: Selection, wanted: Program) -> int:
    """Return how many cores a rank is bound to; 0: to none, as no duet shares them out."""
    if wanted.threads is not None:
        return int(selection.parameters["threads"])
    if wanted.bound:
        return 1
    return len(ready.cores) if len(ready.parts) > 1 else 0


def slots_of(ready: Ready, selection: Selection, benchmark: Benchmark) -> tuple[Slot, ...]:
    """Return the node and the one core of each rank, as far as ranks can be asked about them.

    Containers name nodes of their own, and of ranks with several cores threads are bound.
    """
    wanted = program(ready.arm, selection, benchmark)
    ranks = selection.ranks if wanted.mpi else 1
    return bound(names_of(arm_at(ready.arm, selection), wanted, ranks), _cores(ready), 1)


def names_of(arm: Arm, wanted: Program, ranks: int) -> tuple[str, ...]:
    """Return the name of the node of each rank, "" for this machine."""
    if arm.hosts is None:
        return ("",) * ranks
    # A program of two processes measures between hosts, whatever an arm gives ranks.
    alone = not wanted.mpi and len(arm.hosts.names) > 1
    return nodes_of_ranks(arm.hosts, ranks, 1 if alone else arm.ranks_per_host)


def _cores(ready: Ready) -> Mapping[str, tuple[int, ...]]:
    return ready.nodes if ready.arm.hosts else {"": ready.cores}


def _placement(ready: Ready, wanted: Program, ranks: int, each: int, scratch: str) -> Placement:
    """Return where the ranks of a launch are: on this machine, in containers, on hosts."""
    arm, names = ready.arm, names_of(ready.arm, wanted, ranks)
    where = Placement(bound(names, _cores(ready), each))
    most = max(map(len, ready.parts), default=ready.share)
    if arm.hosts:
        network = arm.hosts.network
        if arm.hosts.pocket and not network:
            from paribus.containers.fabric import NETWORK

            network = NETWORK
        agent = str(PurePosixPath(scratch).parent / "agent.sh")
        if arm.container and arm.container.each == "host":
            from paribus.containers import on_hosts

            agent = on_hosts.agent(scratch)
            network = on_hosts.BRIDGED if arm.container.network == "bridge" else network
        where = replace(where, agent=agent, network=network or None, pmi=ready.pmi)
    elif arm.container:
        from paribus import containers

        # As hosts: a program of two processes measures between them.
        per_host = arm.ranks_per_host if wanted.mpi else 1
        where = containers.placement(arm.container, where.slots, per_host=per_host, scratch=scratch)
    return replace(where, crowded=ready.shared or crowd(names) > most)


def _filled(text: str, where: Placement, scratch: str) -> str:
    """Return `text` with the words that a Program may leave open (model.Program)."""
    for word, value in (
        ("{scratch}", scratch),
        ("{first}", where.slots[0].node or "127.0.0.1"),
        ("{server}", where.slots[-1].node or "127.0.0.1"),
        ("{port}", str(launchers.port_of(scratch))),
    ):
        text = text.replace(word, value)
    return text


def asked_of(arm: Arm, arms: Sequence[Arm]) -> dict[str, str]:
    """Return what the study itself makes different about one of its `arms`, as facts.

    A variable that may be secret is reported by a number, counted over the arms: equal values have
    equal ones, and nothing of the value is in it. A hash without salt would let everybody who has
    the report try out short values, and one with salt those who have the study as well.
    """
    facts: dict[str, str] = {"mpi.transport": arm.transport}
    if arm.hosts:
        facts["placement.hosts"] = str(len(arm.hosts.names))
        facts["placement.ranks_per_host"] = str(arm.ranks_per_host or "equal share")
        facts["placement.order"] = arm.hosts.order
        facts["placement.network"] = arm.hosts.network or "not given"
        facts["placement.link"] = str(arm.hosts.link)
        facts["placement.launcher"] = arm.hosts.launcher or "of the MPI"
        facts["placement.scheduler"] = str(arm.hosts.scheduler or "none")
        if arm.hosts.scheduler and arm.hosts.scheduler.image:
            facts |= _pods(arm.hosts.scheduler)
    if arm.adapter:
        index = arm.adapter.gid_index
        facts["placement.adapter"] = f"{arm.adapter}{'' if index is None else f' GID {index}'}"
    if arm.container:
        from paribus import containers

        facts |= containers.asked(arm.container)
        if arm.container.each == "host" and not arm.hosts:
            facts["container.ranks"] = str(arm.ranks_per_host or "all")
    if arm.argv:
        facts["command.argv"] = shlex.join(arm.argv)
    if arm.built:
        facts["build.command"] = "; ".join(map(shlex.join, arm.build))
        facts["build.digest"] = arm.built.digest
    if arm.wrap:
        facts["wrapper.argv"], facts["wrapper.around"] = shlex.join(arm.wrap), arm.wrap_around
    for name, value in arm.env.items():
        values = list(dict.fromkeys(one.env[name] for one in arms if name in one.env))
        number = f"(not shown, value {values.index(value) + 1})"
        known = reported(name, value)
        facts[f"env.{name}"] = number if known is None else known
    return facts


def _pods(asked: Scheduler) -> dict[str, str]:
    """Return what a study asks for of pods: they are containers of another engine."""
    facts = {"container.engine": asked.name, "container.image": asked.image}
    facts["container.options"] = " ".join(filter(None, (asked.pod, asked.container)))
    return {key: value for key, value in facts.items() if value}


def discreet(ready: Ready) -> Ready:
    """Return `ready` to compose what is stored and shown of a command, which must hold no secret.

    Wrappers put variables into command lines, quoted once or several times.
    """
    return replace(ready, arm=replace(ready.arm, env=discreet_env(ready.arm.env)))
