"""An arm made ready: its MPI found, its kernels compiled, its container engine checked.

From then on a launch of it is pure composition: program, binding, container, launcher, container.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from paribus import containers, launchers, toolchain
from paribus.errors import ParibusError, StudyError, UserError
from paribus.host import capture
from paribus.model import (
    Arm,
    Benchmark,
    Command,
    Mpi,
    Placement,
    Program,
    Request,
    Selection,
    Study,
)
from paribus.probes.machine import cores
from paribus.study.load import benchmark_of


@dataclass(frozen=True, slots=True)
class Ready:
    """What the launches of one arm need and share. `kernels`: path and options by benchmark."""

    arm: Arm
    mpi: Mpi | None
    cores: tuple[int, ...]
    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


def make_ready(
    study: Study, tell: Callable[[str], None], *, build: bool = True
) -> dict[str, Ready]:
    """Return every arm of `study`, ready; compiles what is not in the cache yet.

    `tell` hears what takes time. Without `build`, kernels are named and not compiled: enough to
    show commands. Raises UserError with the mend for whatever is missing.
    """
    programs = {s.label: program(s, benchmark_of(s)) for s in study.benchmarks}
    available = cores(allowed=frozenset(os.sched_getaffinity(0)))
    _check_cores(study, programs, available)
    return {arm.name: _arm(study, arm, programs, available, tell, build) for arm in study.arms}


def program(selection: Selection, benchmark: Benchmark) -> Program:
    """Return the program that `selection` asks for."""
    return benchmark.command(Request(selection.parameters, selection.ranks))


def compose(
    ready: Ready, selection: Selection, benchmark: Benchmark, *, seed: int, scratch: str
) -> Command:
    """Return the whole command of one launch: pure, so that a dry run can print it."""
    wanted = program(selection, benchmark)
    ranks = selection.ranks if wanted.mpi else 1 + bool(wanted.server)
    container = ready.arm.container
    where = Placement(cores=ready.cores[:ranks])
    if container:
        where = containers.placement(container, ranks=ranks, cores=where.cores, scratch=scratch)
    label = selection.label
    argv = (*ready.kernels.get(label, ()), *wanted.argv, *ready.libraries.get(label, ()))
    env = {**wanted.env, **ready.arm.env, "PARIBUS_SEED": str(seed)}
    filled = partial(_filled, where=where, scratch=scratch)

    def placed(argv: Sequence[str], first: int) -> Command:
        """Return `argv` started by the launcher, its first rank in the given place."""
        own = replace(where, hosts=where.hosts[first:], cores=where.cores[first:])
        command = Command(
            tuple(map(filled, argv)), env={key: filled(value) for key, value in env.items()}
        )
        command = launchers.bind(command, own.cores)
        if container and container.each == "rank":
            command = containers.wrap_program(command, container, scratch=scratch)
        return launchers.launch(
            command,
            ranks=ranks,
            mpi=ready.mpi if wanted.mpi else None,
            placement=own,
            transport=ready.arm.transport,
            scratch=scratch,
        )

    command = placed(argv, 0)
    if wanted.server:
        port = launchers.port_of(scratch)
        listening = placed(launchers.listens(port), 1)
        command = launchers.serve(command, placed(wanted.server, 1), listening, port=port)
    if container and container.each == "host":
        command = containers.wrap_launcher(command, container, ranks=ranks, scratch=scratch)
    files = {name: filled(text) for name, text in wanted.files.items()}
    return replace(command, files={**files, **command.files}, outputs=wanted.outputs)


def _filled(text: str, where: Placement, scratch: str) -> str:
    """Return `text` with the words that a Program may leave open (model.Program)."""
    server = where.hosts[1][0] if len(where.hosts) > 1 else "127.0.0.1"
    for word, value in (
        ("{scratch}", scratch),
        ("{server}", server),
        ("{port}", str(launchers.port_of(scratch))),
    ):
        text = text.replace(word, value)
    return text


_SHOWN = (
    *("OMPI_", "PMIX_", "PRTE_", "MPIR_", "I_MPI_", "UCX_", "FI_", "NCCL_", "OMP_", "MKL_"),
    "PARIBUS_DELAY_",
)
"""Prefixes of variables whose values are facts; of all others only a hash is kept: they may be
secret."""


def asked_of(arm: Arm) -> dict[str, str]:
    """Return what the study itself makes different about an arm, as facts."""
    facts: dict[str, str] = {"mpi.transport": arm.transport}
    if arm.container:
        for key in ("engine", "network", "each"):
            facts[f"container.{key}"] = getattr(arm.container, key)
    for name, value in arm.env.items():
        digest = hashlib.sha256(value.encode()).hexdigest()[:8]
        facts[f"env.{name}"] = value if name.startswith(_SHOWN) else f"(hash {digest})"
    return facts


def _arm(
    study: Study,
    arm: Arm,
    programs: Mapping[str, Program],
    available: tuple[int, ...],
    tell: Callable[[str], None],
    build: bool,
) -> Ready:
    if arm.container:
        forbidden = containers.check(arm.container, capture)
        if forbidden:
            raise UserError(
                forbidden,
                place=f"{study.path}: arms.{arm.name}.container",
                mend="or run `paribus run mpi-transport`: shared memory against TCP needs no"
                " privilege",
            )
    mpi = toolchain.find_mpi(arm.mpi) if any(p.mpi for p in programs.values()) else None
    ready = Ready(arm, mpi, available if study.settings.bind == "core" else ())
    if mpi is None:
        return ready
    if not build:
        named = {label: (wanted.kernel,) for label, wanted in programs.items() if wanted.kernel}
        return replace(ready, kernels=named)
    kernels: dict[str, tuple[str, ...]] = {}
    libraries: dict[str, tuple[str, ...]] = {}
    facts: dict[str, str] = {}
    tell(f"{arm.name}: the programs to launch, with {mpi}")
    for label, wanted in programs.items():
        if wanted.kernel:
            kernels[label] = (str(toolchain.kernel_path(wanted.kernel, mpi)),)
            facts[label] = toolchain.kernel_identity(wanted.kernel, mpi)
        if wanted.libraries:
            count, functions = wanted.libraries
            path = toolchain.libraries_path(count, functions, mpi)
            libraries[label] = ("--libraries", str(path))
    return replace(ready, kernels=kernels, libraries=libraries, facts=facts)


def _check_cores(study: Study, programs: Mapping[str, Program], available: Sequence[int]) -> None:
    if study.settings.bind == "none":
        return
    parts = len(study.arms) if study.settings.layout == "duet" else 1
    each = len(available) // parts
    for selection in study.benchmarks:
        if programs[selection.label].mpi and selection.ranks > each:
            share = f", {each} for each arm of a duet" if parts > 1 else ""
            mend = (
                "ask for fewer ranks"
                if parts > 1
                else 'ask for fewer ranks, or set `bind = "none"` in [plan] to share cores'
                " (latencies then show the scheduler, not the platform)"
            )
            raise StudyError(
                f"{selection.label} asks for {selection.ranks} ranks and this machine lets Paribus"
                f" use {len(available)} cores{share}",
                place=study.path,
                mend=mend,
            )


def run_commands(commands: Sequence[Sequence[str]], arm: str, what: str) -> None:
    """Carry out an arm's `before` or `after` commands; raises ParibusError for one that fails."""
    for argv in commands:
        done = capture(argv, timeout_s=600.0)
        if done.exit_code != 0:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise ParibusError(
                f"exit code {done.exit_code}{': ' + last[0] if last else ''}",
                place=f"arms.{arm}.{what}: {' '.join(argv)}",
                mend="mend the command, then continue with --resume",
            )
