"""Making arms ready: finding their MPI, compiling kernels, checking programs, cores, containers.

An Arm of a study goes in, a Ready (arms.py) comes out, or a UserError with the fix.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from paribus.benchmarks import benchmark_of
from paribus.core import (
    Address,
    Arm,
    Container,
    Hosts,
    Mpi,
    Program,
    Study,
    StudyError,
    UserError,
    arm_at,
    count,
    together,
)
from paribus.designs import design_of
from paribus.launch import toolchain
from paribus.launch.arms import Ready, concrete, names_of, program
from paribus.launch.local import LocalStation, this_node
from paribus.launch.machine import HERE, Machine, first_errors, of_each
from paribus.launch.programs import check_there, find_mpi_for
from paribus.launch.station import Node, Station
from paribus.launch.toolchain import read_version
from paribus.launch.unswitched import Switching
from paribus.probes.machine import shares
from paribus.words.lists import listed

if TYPE_CHECKING:
    from paribus.hosts.host_machine import HostMachine

VERSION_S = 15.0
"""Seconds in which a launcher must have printed its version."""


def make_ready(
    study: Study,
    notify: Callable[[str], None],
    opened: Mapping[str, Station] | None = None,
    *,
    node: Node | None = None,
    build: bool = True,
) -> dict[str, Ready]:
    """Return every arm of `study`, ready, by name; compiles what is not in the cache yet.

    `opened` are the stations of arms with hosts, by name; other arms are made ready on `node`, by
    default this machine. `notify` gets messages on what takes time. Without `build`, kernels are
    named and not compiled, which is enough to show commands. Raises UserError, with the fix, for
    anything that is missing.
    """
    programs = {
        arm.name: {s.label: program(arm, s, benchmark_of(s)) for s in study.benchmarks}
        for arm in study.arms
    }
    machines = {arm.name: machines_of((opened or {}).get(arm.name)) for arm in study.arms}
    for arm in study.arms:
        # The `before` commands of an arm may bring its network about.
        if arm.hosts and arm.hosts.network and not arm.before:
            from paribus.launch.interfaces import check_network

            check_network(arm, study.path, machines[arm.name])
    if build:
        _check_programs(study, programs, machines, notify)
    cores = (node or this_node()).cores
    known: dict[Hosts, tuple[Node, ...]] = {}
    ready = {}
    for arm in study.arms:
        if arm.hosts is None:
            bare = _here(study, arm, cores)
        else:
            if arm.hosts not in known:
                known[arm.hosts] = _nodes(machines[arm.name])
            nodes = known[arm.hosts]
            bare = _there(study, _with_nodes(arm, nodes), nodes, machines[arm.name][0])
        _check_transport(study, bare.arm, programs[arm.name])
        _check_cores(study, bare, programs[arm.name])
        ready[arm.name] = _arm(study, bare, programs[arm.name], machines[arm.name])
    # Last, so that what an arm lacks is reported before another's programs compile for a minute.
    return {
        name: _compiled(one, programs[name], notify, build, machines[name]) if one.mpi else one
        for name, one in ready.items()
    }


@contextmanager
def built(
    study: Study, place: Path | None, notify: Callable[[str], None], *, again: bool
) -> Iterator[Study]:
    """Yield `study` with the programs of each arm built in a directory of its name below `place`.

    If each block has its own build, that directory has numbered ones; the arm's programs are those
    of the first until `of_block` names others. With `again`, a study is continued, and builds that
    are there are kept. Without a `place` one build of each arm is made in a temporary directory,
    and removed at the end. Raises UserError for a command that fails, for a source that is too
    large, and for a `place` that is not Paribus' own.
    """
    if not any(arm.build for arm in study.arms):
        yield study
        return
    builds = design_of(study).builds
    from paribus.launch.building import build

    with ExitStack() as stack:
        if place is None:
            place = Path(mkdtemp(prefix="paribus-build-"))
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            builds = min(1, builds)
        yield build(study, place.absolute(), notify, again=again, builds=builds)


def digests(study: Study) -> dict[str, str]:
    """Return the hash of each arm's build, by the name that errors use: "the build of a"."""
    return {f"the build of {arm.name}": arm.built.digest for arm in study.arms if arm.built}


def make_switched_ready(
    study: Study,
    notify: Callable[[str], None],
    opened: Mapping[str, Station],
    switches: Switching,
) -> dict[str, Ready]:
    """Return every arm, ready, as make_ready does; first switch to arms whose hosts are off."""
    asleep = [arm for arm in study.arms if opened[arm.name].asleep]
    awake = tuple(arm for arm in study.arms if arm not in asleep)
    ready = make_ready(replace(study, arms=awake), notify, opened)
    for arm in asleep:
        notify(f"{arm.name}: its hosts, by `{'; '.join(map(str, arm.before))}`")
        with switches.at([arm]):
            ready |= make_ready(replace(study, arms=(arm,)), notify, opened)
    return {arm.name: ready[arm.name] for arm in study.arms}


def machines_of(station: Station | None) -> tuple[HostMachine, ...]:
    """Return the hosts of a station as Machines; none for the station of this machine."""
    if station is None or isinstance(station, LocalStation):
        return ()
    from paribus.hosts.host_machine import HostMachine
    from paribus.hosts.remote import HostStation

    return tuple(map(HostMachine, station.hosts)) if isinstance(station, HostStation) else ()


def _first(machines: Sequence[HostMachine]) -> Machine:
    return machines[0] if machines else HERE


def _nodes(machines: Sequence[HostMachine]) -> tuple[Node, ...]:
    from paribus.hosts.host_machine import HostMachine

    return tuple(of_each(machines, HostMachine.node))


def _here(study: Study, arm: Arm, cores: Sequence[tuple[int, ...]]) -> Ready:
    """Return an arm on this machine with its cores; the arms of a duet share them."""
    number = len(study.arms) if design_of(study).at_once else 1
    parts = shares(cores, number)
    bound = parts[0] if _bound(study) else ()
    return Ready(arm, None, bound, share=len(cores) // number, parts=parts)


def _with_nodes(arm: Arm, nodes: Sequence[Node]) -> Arm:
    """Return an arm with the nodes of its allocation in place of n1, n2, ..., if it has one."""
    if arm.hosts is None or arm.hosts.scheduler is None:
        return arm
    addresses = tuple(Address(node.name, node.name) for node in nodes)
    return replace(arm, hosts=replace(arm.hosts, addresses=addresses))


def _there(study: Study, arm: Arm, nodes: Sequence[Node], machine: Machine) -> Ready:
    """Return an arm on hosts with the cores of each."""
    cores = {node.name: shares(node.cores, 1)[0] for node in nodes}
    smallest = min(cores.values(), key=len)
    share = min(len(node.cores) for node in nodes)
    bound = cores if _bound(study) else {}
    every = [core for node in nodes for core in node.cores]
    shared = bool(arm.hosts and arm.hosts.pocket) and len(set(every)) < len(every)
    return Ready(
        arm, None, (), share=share, parts=(smallest,), shared=shared, nodes=bound, machine=machine
    )


def _bound(study: Study) -> bool:
    return study.settings.bind == "core"


def _arm(
    study: Study,
    ready: Ready,
    programs: Mapping[str, Program],
    machines: Sequence[HostMachine],
) -> Ready:
    """Return an arm with its MPI, its container engine checked."""
    arm, place = ready.arm, f"{study.path}: arms.{ready.arm.name}"
    machine = ready.machine
    if arm.container:
        asked = partial(_container_there, arm.container, place, on_hosts=bool(machines))
        found = of_each(machines or (machine,), asked)
        check_same_image(found, machines, place)
        ready = replace(ready, container=found[0])
    if not any(p.mpi for p in programs.values()):
        return ready
    mpi = find_mpi_for(arm, programs.values(), place, machine)
    _check_same(mpi, machines)
    if arm.container:
        _check_fits(arm.container, mpi, f"{place}.container")
    return replace(ready, mpi=mpi, pmi=_pmi(arm, mpi, place, machine))


def _check_fits(container: Container, mpi: Mpi, place: str) -> None:
    from paribus import containers

    if reason := containers.misfit(container, mpi):
        raise UserError(reason.cause, place=place, fix=reason.fix)


def _compiled(
    ready: Ready,
    programs: Mapping[str, Program],
    notify: Callable[[str], None],
    build: bool,
    machines: Sequence[HostMachine],
) -> Ready:
    """Return an arm with its kernels, on all its hosts; without `build` only named."""
    arm, mpi, machine = ready.arm, ready.mpi, ready.machine
    assert mpi is not None
    if not build:
        named = {label: (wanted.kernel,) for label, wanted in programs.items() if wanted.kernel}
        return replace(ready, kernels=named)
    kernels: dict[str, tuple[str, ...]] = {}
    libraries: dict[str, tuple[str, ...]] = {}
    facts: dict[str, str] = {}
    notify(f"{arm.name}: the programs to launch, with {mpi}")
    for label, wanted in programs.items():
        if wanted.kernel:
            made = toolchain.kernel_path(wanted.kernel, mpi, machine)
            kernels[label] = (str(made),)
            facts[label] = toolchain.kernel_identity(wanted.kernel, mpi, machine)
            _send(made, machines)
        if wanted.libraries:
            from paribus.launch.loaded import loaded_path

            made = loaded_path(*wanted.libraries, mpi, machine)
            libraries[label] = ("--libraries", str(made))
            _send(made, machines)
    return replace(ready, kernels=kernels, libraries=libraries, facts=facts)


def _pmi(arm: Arm, mpi: Mpi, place: str, machine: Machine) -> str:
    """Return the plug-in by which srun starts the ranks of `arm`, "" for the MPI's own launcher."""
    if arm.hosts is None or not arm.hosts.launcher:
        return ""
    from paribus.launch.launchers import srun

    answer = machine.capture(srun.LIST, timeout_s=VERSION_S)
    if answer.exit_code:
        raise UserError(
            f"srun cannot be used there: {first_errors(answer)}",
            place=machine.at(f"{place}.launcher"),
            fix="remove `launcher`: then the MPI's own starts the ranks",
        )
    # Older versions of srun print the list on stderr.
    offered = srun.read_plugins(answer.stdout + answer.stderr)
    if mpi.family == "intelmpi" and srun.INTEL not in arm.env:
        raise UserError(
            f"Intel MPI needs {srun.INTEL} where srun starts its ranks",
            place=f"{place}.env",
            fix=f'name Slurm\'s library there: env = {{ {srun.INTEL} = "/usr/lib64/libpmi2.so" }}',
        )
    return srun.choose_plugin(mpi, offered, place)


def _container_there(
    container: Container, place: str, machine: Machine, *, on_hosts: bool
) -> dict[str, str]:
    """Return facts of the engine on `machine`; raises UserError if it cannot make containers."""
    from paribus import containers
    from paribus.containers.images import described

    cache = str(machine.cache())
    if forbidden := containers.check(container, machine.capture, on_hosts=on_hosts, cache=cache):
        fix = 'or use engine = "namespace", which is part of Paribus'
        if container.engine == "namespace":
            fix = "or run `paribus run mpi-transport`: shared memory against TCP needs no privilege"
        raise UserError(forbidden, place=machine.at(f"{place}.container"), fix=fix)
    return {} if container.engine == "namespace" else described(container, machine.capture)


def check_same_image(
    found: Sequence[Mapping[str, str]], machines: Sequence[HostMachine], place: str
) -> None:
    """Raise UserError for a host whose image, or engine, is another than the first host's.

    `found` are the facts of the engine on each of `machines`.
    """
    for machine, facts in zip(machines[1:], found[1:], strict=True):
        for key in found[0]:
            if facts.get(key) != found[0][key]:
                raise UserError(
                    f"{key} is {facts.get(key)} on {machine.host.name}, but {found[0][key]} on"
                    f" {machines[0].host.name}",
                    place=machine.at(f"{place}.container"),
                    fix="install the same engine, and the same image, on every host of the arm",
                )


def _send(made: Path, machines: Sequence[HostMachine]) -> None:
    """Copy what the first machine of an arm has compiled to its others."""
    if len(machines) > 1:
        from paribus.hosts.host_machine import send

        send(made, machines[0], machines[1:])


def _check_same(mpi: Mpi, machines: Sequence[HostMachine]) -> None:
    """Raise UserError for a host that has another MPI than the first, or none, at the same path.

    A launcher starts its daemons, and the ranks load their library, from that path on every host.
    """

    def other_mpi(machine: HostMachine) -> str:
        """Return the name of another MPI that a host has there, "" for the same."""
        answer = machine.capture([mpi.mpirun, "--version"], env=mpi.env, timeout_s=VERSION_S)
        version = read_version(answer.stdout + answer.stderr)
        if version is None:
            return f"no MPI that answers ({first_errors(answer)})"
        return "" if version == (mpi.family, mpi.version) else str(Mpi(*version, "", ""))

    if len(machines) < 2:
        return
    first, *others = machines
    for machine, found in zip(others, of_each(others, other_mpi), strict=True):
        if found:
            raise UserError(
                f"{first.host.name} has {mpi} there, but this host has {found}",
                place=machine.at(mpi.mpirun),
                fix=f"install {mpi} at that path on every host of the arm, or name with `mpi` the"
                " prefix of one that all have",
            )


def _check_programs(
    study: Study,
    programs: Mapping[str, Mapping[str, Program]],
    machines: Mapping[str, Sequence[HostMachine]],
    notify: Callable[[str], None],
) -> None:
    """Raise UserError for all programs that are missing, each named once.

    `notify` gets those that the `before` commands of their arm must still bring about.
    """
    missing: dict[str, UserError] = {}
    for arm in study.arms:
        for one in study.benchmarks:
            place = f"{study.path}: {one.label}"
            first = _first(machines[arm.name])
            try:
                check_there(arm, benchmark_of(one), programs[arm.name][one.label], place, first)
            except UserError as error:
                missing.setdefault(str(error), error)
    if missing:
        raise together(list(missing.values()), study.path)
    for arm in study.arms:
        for one in study.benchmarks if arm.before and not arm.wrap else ():
            wanted, first = programs[arm.name][one.label], _first(machines[arm.name])
            try:
                check_there(arm, benchmark_of(one), wanted, one.label, first, switched=True)
            except UserError as error:
                changed = "unless its `before` commands change that"
                notify(f"{arm.name}: {one.label}: {error.cause}, {changed}")


def _check_transport(study: Study, arm: Arm, programs: Mapping[str, Program]) -> None:
    """Refuse transport = "shm" for ranks on several hosts, which have no memory in common."""
    for one in study.benchmarks if arm.hosts and arm.transport == "shm" else ():
        wanted = programs[one.label]
        hosts = dict.fromkeys(names_of(arm_at(arm, one), wanted, one.ranks)) if wanted.mpi else ()
        if len(hosts) > 1:
            raise StudyError(
                f"ranks of {one.label} on {listed(list(hosts), 2)} have no shared memory in common",
                place=f"{study.path}: arms.{arm.name}.transport",
                fix='use transport = "tcp" or "auto", or put all ranks on one host'
                " (`ranks_per_host`)",
            )


def _check_cores(study: Study, ready: Ready, programs: Mapping[str, Program]) -> None:
    """Refuse a benchmark whose ranks, times threads, are more than the cores they are bound to."""
    if not _bound(study):
        return
    for selection in study.benchmarks:
        wanted = programs[selection.label]
        threads, ranks = 1, selection.ranks if wanted.mpi else 1 + bool(wanted.server)
        if wanted.threads is not None:
            found = concrete(ready, selection, benchmark_of(selection))
            threads = int(found.parameters["threads"])
        if threads == 1 and not wanted.mpi:
            continue
        names = names_of(arm_at(ready.arm, selection), wanted, ranks)
        for name, here in Counter(names).items():
            available = len(ready.nodes[name] if name else ready.cores)
            if here * threads > available:
                what = count(here, "rank" if wanted.mpi else "process")
                each = "" if threads == 1 else f" of {threads} threads"
                on = f" on {name}" if name else ""
                raise _too_few(
                    study, f"{selection.label} needs {what}{each}{on}", available, name, threads
                )


def _too_few(study: Study, needs: str, available: int, name: str, threads: int) -> StudyError:
    design = design_of(study)
    fewer = "fewer ranks" if threads == 1 else "fewer ranks or threads"
    fix = f"ask for {fewer}"
    if not design.at_once:
        fix += (
            ', or set `bind = "none"` in [plan] to share cores'
            " (latencies then show the scheduler, not the platform)"
        )
    machine = name or "this machine"
    return StudyError(
        f"{needs}, but {machine} lets Paribus use {count(available, 'core')}{design.share}",
        place=study.path,
        fix=fix,
    )
