"""From an arm that was made ready (ready.py) to the command of a launch, without side effects.

The program is wrapped layer by layer: the binding of its ranks, a container of each rank, the
launcher (mpirun, srun), a container of each host. `./solver` in an arm with Apptainer becomes
`mpirun -n 4 ... apptainer exec image.sif ./solver`.
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
    """Return the slot of each rank: its node, of `names`, and the next `each` of its `cores`.

    `cores` are given by node. A rank for which a node has too few left is not bound at all.

    >>> bound(("a", "a", "b"), {"a": (0, 1, 2), "b": (0, 1)}, 2)
    (Slot(node='a', cores=(0, 1)), Slot(node='a', cores=()), Slot(node='b', cores=(0, 1)))
    """
    ranks_on: Counter[str] = Counter()
    slots = []
    for name in names:
        at = ranks_on[name] * each
        own = tuple(cores.get(name, ())[at : at + each])
        slots.append(Slot(name, own if len(own) == each else ()))
        ranks_on[name] += 1
    return tuple(slots)


def cores_of_ranks(slots: Sequence[Slot]) -> dict[str, tuple[int, ...]]:
    """Return the cores of all ranks by node, sorted; {} if some rank is not bound."""
    if not all(slot.cores for slot in slots):
        return {}
    found: dict[str, set[int]] = {}
    for slot in slots:
        found.setdefault(slot.node, set()).update(slot.cores)
    return {node: tuple(sorted(cores)) for node, cores in found.items()}


def crowd(names: Sequence[str]) -> int:
    """Return the number of ranks on the fullest node; `names` has the node of each rank."""
    return max(Counter(names).values(), default=0)


@dataclass(frozen=True, slots=True)
class Ready:
    """What the launches of one arm need and share."""

    arm: Arm
    mpi: Mpi | None
    cores: tuple[int, ...]  # that ranks here are bound to; none: they are not bound
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by label: path, options
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by label: options
    facts: Mapping[str, str] = field(default_factory=dict)
    share: int = 1  # the number of the arm's physical cores (on its smallest host), bound or not
    parts: Sequence[tuple[int, ...]] = ()  # equal shares of the cores: one for each arm of a duet
    shared: bool = False  # whether hosts share cores, as pocket hosts may
    nodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # as `cores`, by host
    machine: Machine = HERE  # where its launches begin, and its tools are
    container: Mapping[str, str] = field(default_factory=dict)  # facts of its engine
    pmi: str = ""  # that of command.Placement


def program(arm: Arm, selection: Selection, benchmark: Benchmark) -> Program:
    """Return the program of `selection`, with `argv` and the adapter of the arm.

    The arm's `argv` replaces the parameter; its adapter is used where a benchmark takes one and
    the study names none there.
    """
    asked = selection.parameters
    of_arm: dict[str, Any] = {"argv": list(arm.argv)} if arm.argv and "argv" in asked else {}
    if arm.adapter:
        parts = asdict(arm.adapter)
        of_arm |= {key: parts[key] for key in parts if key in asked and asked[key] is None}
    wanted = benchmark.command(Request({**asked, **of_arm}, selection.ranks))
    if arm.built is None:
        return wanted
    from paribus.launch.building import from_build

    return from_build(wanted, arm.built)


def concrete(ready: Ready, selection: Selection, benchmark: Benchmark) -> Selection:
    """Return `selection` with the parameter "threads", the number that a rank has in this arm.

    That is OMP_NUM_THREADS of the arm, which may be its factor; else what the program asks for;
    else the rank's share of the cores. Unchanged for a program without threads.
    """
    wanted = program(ready.arm, selection, benchmark)
    if wanted.threads is None:
        return selection
    # A program that sets the variable itself has threads of another kind on its cores.
    by_itself = "OMP_NUM_THREADS" in wanted.env
    of_arm = "" if by_itself else ready.arm.env.get("OMP_NUM_THREADS", "")
    ranks = selection.ranks if wanted.mpi else 1 + bool(wanted.server)
    number = int(of_arm) if re.fullmatch(r"[1-9]\d{0,5}", of_arm) else wanted.threads
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
    """Return the whole command of one launch, in its directory `scratch`; nothing is started."""
    selection = concrete(ready, selection, benchmark)
    ready = replace(ready, arm=_pinned(arm_at(ready.arm, selection), ready.container))
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
        """Return `argv` as the launcher starts it, in the slots from `first` on."""
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
    in_podman = container and container.engine == "podman"  # there, its hosts lack the directory
    cwd = "" if fabric and in_podman else filled(wanted.cwd)
    return replace(
        command,
        files={**files, **command.files},
        outputs=wanted.outputs,
        cwd=cwd,
        cores=cores_of_ranks(where.slots),
    )


def compose_ours(ready: Ready, program: Program, ranks: int, scratch: str) -> Command:
    """Return the command that runs `program`, which measures nothing, on the arm's nodes."""
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
    """Return a command that starts `server` in the second slot, and `client` once it listens."""
    from paribus.launch.launchers.serving import listens, serve

    return serve(client, placed(server, 1), placed(listens(port), 1), port=port)


def _within(command: Command, ready: Ready, hosts: int, scratch: str) -> Command:
    """Return the launcher's `command` within the first of the containers that stand for hosts."""
    from paribus import containers
    from paribus.containers import on_hosts

    container = ready.arm.container
    assert container is not None
    if ready.arm.hosts is None:
        return containers.wrap_launcher(command, container, hosts=hosts, scratch=scratch)
    prefix, pocket = containers.prefix_of(ready.mpi), ready.arm.hosts.pocket
    return on_hosts.wrap(command, container, hosts=pocket, scratch=scratch, prefix=prefix)


def _pinned(arm: Arm, engine: Mapping[str, str]) -> Arm:
    """Return `arm` with its image by its id, if a store has it: a name may get another image."""
    if arm.container is None or not (known := engine.get("container.image_digest")):
        return arm
    from paribus.containers.images import STORED

    stored = arm.container.engine in STORED
    return replace(arm, container=replace(arm.container, image=known)) if stored else arm


def _wrapped(command: Command, arm: Arm, around: str) -> Command:
    """Return `command` behind the wrapper of `arm`, if that goes `around` it."""
    wrap = arm.wrap if arm.wrap_around == around else ()
    return replace(command, argv=(*wrap, *command.argv))


def _cores_of_a_rank(ready: Ready, selection: Selection, wanted: Program) -> int:
    """Return how many cores a rank is bound to; 0: it is not bound, but in a duet."""
    if wanted.threads is not None:
        return int(selection.parameters["threads"])
    if wanted.bound:
        return 1
    return len(ready.cores) if len(ready.parts) > 1 else 0


def slots_of(ready: Ready, selection: Selection, benchmark: Benchmark) -> tuple[Slot, ...]:
    """Return the node and the one core of each rank, as its output is to confirm them.

    Ranks with several cores are bound by threads, and are not checked.
    """
    wanted = program(ready.arm, selection, benchmark)
    ranks = selection.ranks if wanted.mpi else 1
    return bound(names_of(arm_at(ready.arm, selection), wanted, ranks), _cores(ready), 1)


def names_of(arm: Arm, wanted: Program, ranks: int) -> tuple[str, ...]:
    """Return the name of the node of each rank, "" for this machine."""
    if arm.hosts is None:
        return ("",) * ranks
    # A program of two processes, client and server, measures between two hosts.
    apart = not wanted.mpi and len(arm.hosts.names) > 1
    return nodes_of_ranks(arm.hosts, ranks, 1 if apart else arm.ranks_per_host)


def _cores(ready: Ready) -> Mapping[str, tuple[int, ...]]:
    return ready.nodes if ready.arm.hosts else {"": ready.cores}


def _placement(ready: Ready, wanted: Program, ranks: int, each: int, scratch: str) -> Placement:
    """Return where the ranks of a launch are: on this machine, in containers, on hosts.

    `each` is the number of cores of a rank.
    """
    arm, names = ready.arm, names_of(ready.arm, wanted, ranks)
    where = Placement(bound(names, _cores(ready), each))
    cores = max(map(len, ready.parts), default=ready.share)
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

        # As with hosts: a program of two processes measures between two containers.
        per_host = arm.ranks_per_host if wanted.mpi else 1
        where = containers.placement(arm.container, where.slots, per_host=per_host, scratch=scratch)
    return replace(where, crowded=ready.shared or crowd(names) > cores)


def _filled(text: str, where: Placement, scratch: str) -> str:
    """Return `text` with the placeholders of model.Program replaced."""
    for word, value in (
        ("{scratch}", scratch),
        ("{first}", where.slots[0].node or "127.0.0.1"),
        ("{server}", where.slots[-1].node or "127.0.0.1"),
        ("{port}", str(launchers.port_of(scratch))),
    ):
        text = text.replace(word, value)
    return text


def asked_of(arm: Arm, arms: Sequence[Arm]) -> dict[str, str]:
    """Return what the study sets in `arm`, one of its `arms`, as facts.

    Of a variable that may be secret the fact is a number, counted over the arms: equal values have
    equal numbers, which show nothing of the value. From a hash, short values could be found by
    trying them out.
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
    """Return what a study asks of pods as facts of containers, whose engine is the scheduler."""
    facts = {"container.engine": asked.name, "container.image": asked.image}
    facts["container.options"] = " ".join(filter(None, (asked.pod, asked.container)))
    return {key: value for key, value in facts.items() if value}


def discreet(ready: Ready) -> Ready:
    """Return `ready` without secret values, to compose a command that is stored and shown.

    They must be gone before: wrappers put variables into command lines, quoted several times.
    """
    return replace(ready, arm=replace(ready.arm, env=discreet_env(ready.arm.env)))
