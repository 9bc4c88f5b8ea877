"""Whether other people's programs are there before they are launched, and which MPI they need.

A program that is linked with one MPI and started by the launcher of another fails late, and does
not say why: every rank takes itself for the only one, or MPI_Init gives up.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from paribus.core import Arm, Benchmark, Command, Mpi, Placement, Program, UserError, typed
from paribus.launch import launchers
from paribus.launch.machine import Machine, first_errors, only_here
from paribus.launch.toolchain import GPU, find_mpi, mpi_of_library

ASK_S = 60.0
"""Seconds that a wrapper may take to look for a program: it may start a container."""

# A line of ldd: "libmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f...)"
_LIBRARY = re.compile(r"^\s*(libmpi\w*\.so\S*) => (/\S+)", re.M)


def check_there(
    arm: Arm,
    benchmark: Benchmark,
    program: Program,
    place: str,
    machine: Machine,
    *,
    switched: bool = False,
) -> None:
    """Raise UserError if `machine` lacks a program, file or module that a launch needs.

    The error says how to get it; `place` is that of the arm or benchmark in the study file. The
    contents of an image are not checked, nor, until the platform is `switched` to the arm, paths
    that the arm's `before` may bring about.
    """
    if arm.container and arm.container.image:
        return
    path = 'give its path, path = "/...", or ' if "path" in benchmark.parameters else ""
    fix = f"{path}get it: {benchmark.get}" if benchmark.get else f"{path}install it"
    _check_wrapper(arm, place, machine, switched)
    for name in started(program):
        found = _where(name, arm, machine) or _unknown(name, arm, switched)
        if not (found or _behind(name, arm, machine, switched)):
            raise _missing(name, machine, machine.at(place), fix)
    if program.cwd and "{" not in program.cwd and not machine.is_directory(program.cwd):
        fix = 'give directory = "..." that is there, or "{scratch}" for one of each launch\'s own'
        fix = f"{here}; or {fix}" if (here := only_here(program.cwd, machine)) else fix
        raise UserError(f"no directory {program.cwd}", place=machine.at(place), fix=fix)
    for name in program.needs:
        found = _where(name, arm, machine) or machine.readable(name)
        if not (found or _unknown(name, arm, switched)):
            what = "no file that can be read at" if "/" in name else "no program on the PATH called"
            raise UserError(
                f"{what} {name}", place=machine.at(place), fix=only_here(name, machine) or fix
            )
    if program.modules and not _unknown(program.argv[0], arm, switched):
        argv = [*arm.wrap, program.argv[0]]
        if lacks := missing_modules(argv, program.modules, arm.env, machine):
            cause = f"{program.argv[0]} has no module {' and no module '.join(lacks)}"
            fix = f'get {benchmark.get}, and name it: python = "/.../bin/python3"'
            raise UserError(cause, place=machine.at(place), fix=fix)


def lacking(program: Program, machine: Machine) -> list[str]:
    """Return what `machine` lacks for a program of ours: names of programs, compilers, modules."""
    names = [one for one in program.needs if not machine.find_program(one)]
    compilers = machine.executables(place / "mpicxx" for place in machine.places())
    if program.kernel and not compilers:
        names.append("mpicxx")
    if program.kernel == GPU:
        from paribus.launch import gpu_toolchain

        names += gpu_toolchain.lacking(machine)
    if not program.modules:
        return names
    modules = missing_modules(program.argv[:1], program.modules, {}, machine)
    if modules:
        names.append(f"the Python module{'s' * (len(modules) > 1)} {' and '.join(modules)}")
    return names


def missing_modules(
    python: Sequence[str], modules: Sequence[str], env: Mapping[str, str], machine: Machine
) -> list[str]:
    """Return those of `modules` that a Python does not find, all if it does not answer.

    The modules are not loaded.
    """
    ask = "import importlib.util as u, sys; print(*(m for m in sys.argv[1:] if not u.find_spec(m)))"
    answer = machine.capture([*python, "-c", ask, *modules], env=env, timeout_s=ASK_S)
    return list(modules) if answer.exit_code else answer.stdout.split()


def find_mpi_for(arm: Arm, programs: Iterable[Program], place: str, machine: Machine) -> Mpi:
    """Return the MPI of `machine` for an arm: the one it names, or one that fits its programs.

    If it names none, that is the usual one (toolchain.find_mpi), or the one that the programs are
    linked with. Raises UserError if there is none, or if a program is linked with another.
    """
    paths = [path for one in programs if one.mpi and (path := _executable(one, arm, machine))]
    if arm.container and arm.container.image:
        paths = []
    if arm.mpi is not None:
        mpi = find_mpi(arm.mpi, machine)
        if misfit := _misfit(paths, mpi, arm, machine):
            raise UserError(misfit[0], place=machine.at(place), fix=misfit[1])
        return mpi
    candidates: list[Mpi] = []
    missing: UserError | None = None
    try:
        candidates.append(find_mpi(None, machine))
    except UserError as error:
        missing = error
    for path in paths:
        candidates += own_mpis(_libraries(["ldd", path], arm.env, machine), machine)
    misfits = []
    for mpi in candidates:
        if not (misfit := _misfit(paths, mpi, arm, machine)):
            return mpi
        misfits.append(misfit)
    if missing is not None and not misfits:
        raise missing
    raise UserError(misfits[0][0], place=machine.at(place), fix=misfits[0][1])


def own_mpis(libraries: Mapping[str, Path], machine: Machine) -> list[Mpi]:
    """Return the MPI installations to which `libraries` (paths by name) belong, each once."""
    found: dict[str, Mpi] = {}
    for path in libraries.values():
        if (mpi := mpi_of_library(path, machine)) is not None:
            found.setdefault(mpi.mpirun, mpi)
    return list(found.values())


def _misfit(paths: Sequence[str], mpi: Mpi, arm: Arm, machine: Machine) -> tuple[str, str] | None:
    """Return why `mpi` cannot start one of the programs, and the fix; None if it can.

    The loader is asked in the launcher's own environment: some launchers put their libraries first.
    """
    for path in paths:
        ask = Command(("ldd", path), env=arm.env)
        asked = launchers.launch(
            ask, ranks=1, mpi=mpi, placement=Placement(), transport="auto", scratch="ldd"
        )
        libraries = _libraries(asked.argv, asked.env, machine)
        others = [one for one in own_mpis(libraries, machine) if not _same(one, mpi)]
        if not others:
            continue
        linked = ", ".join(
            f"{name} of {file.parent}"
            for name, file in libraries.items()
            if (owner := mpi_of_library(file, machine)) and not _same(owner, mpi)
        )
        cause = (
            f"{path} is linked with {others[0]} ({linked}), and the arm starts it with {mpi}"
            f" ({mpi.mpirun}): its ranks would not connect"
        )
        prefix = Path(others[0].mpirun).parent.parent
        return cause, f'give the arm mpi = "{prefix}", or a program that was built with {mpi}'
    return None


def _same(one: Mpi, other: Mpi) -> bool:
    """Return whether the launcher of one MPI starts programs that are linked with the other.

    MPICH and Intel MPI share their binary interface and the protocol of their launchers.
    """
    if one.family == "openmpi" or other.family == "openmpi":
        return one.family == other.family and one.version[:1] == other.version[:1]
    return True


def _libraries(argv: Sequence[str], env: Mapping[str, str], machine: Machine) -> dict[str, Path]:
    """Return the paths of MPI's libraries by name, from the output of ldd, which `argv` runs."""
    printed = machine.capture(argv, env=env, timeout_s=30.0).stdout
    return {name: Path(path) for name, path in _LIBRARY.findall(printed)}


def _executable(program: Program, arm: Arm, machine: Machine) -> str | None:
    """Return the path of the program that calls MPI: behind `sh`, the first that it needs.

    None for a kernel of ours, and for a program that is missing.
    """
    if program.kernel:
        return None
    behind = program.needs if program.argv[0] in ("sh", "/bin/sh") else ()
    return _where((*behind, program.argv[0])[0], arm, machine)


def started(program: Program) -> tuple[str, ...]:
    """Return the names of the programs that a launch starts: its own and that of the server."""
    return (*(() if program.kernel else program.argv[:1]), *program.server[:1])


def _unknown(name: str, arm: Arm, switched: bool) -> bool:
    """Return whether it is unknown yet if `name` is there: a placeholder, or made by `before`."""
    return "{" in name or ("/" in name and bool(arm.before) and not switched)


def _check_wrapper(arm: Arm, place: str, machine: Machine, switched: bool) -> None:
    for name in arm.wrap[:1]:
        if not (_where(name, arm, machine) or _unknown(name, arm, switched)):
            fix = "install it, give its path, or remove it from the arm"
            raise _missing(name, machine, machine.at(f"{place}: wrap of {arm.name}"), fix)


def _missing(name: str, machine: Machine, place: str, fix: str) -> UserError:
    """Return the error for a program that is not there, or is there and not executable."""
    if "/" not in name:
        return UserError(f"no program on the PATH called {name}", place=place, fix=fix)
    if machine.is_directory(name):
        return UserError(f"{name} is a directory, not a program", place=place, fix=fix)
    if machine.readable(name):
        fix = f"`{typed(('chmod', '+x', name))}`, if it is the program"
        return UserError(f"{name} is not executable", place=place, fix=fix)
    return UserError(f"no executable file {name}", place=place, fix=only_here(name, machine) or fix)


def _behind(name: str, arm: Arm, machine: Machine, switched: bool) -> bool:
    """Return whether a program that the machine lacks is there behind the arm's wrapper.

    A wrapper may enter a container. Raises UserError, with what it prints, if it finds none.
    """
    if not arm.wrap or (arm.before and not switched):
        return bool(arm.wrap)
    ask = (*arm.wrap, "/bin/sh", "-c", 'command -v "$0"', name)
    answer = machine.capture(ask, env=arm.env, timeout_s=ASK_S)
    if answer.exit_code == 0:
        return True
    errors = "" if answer.exit_code == 127 else f" ({first_errors(answer)})"
    raise UserError(
        f"no program {name}, neither here nor behind `{shlex.join(arm.wrap)}`{errors}",
        place=machine.at(f"wrap of {arm.name}"),
        fix="give its path, as it is behind the wrapper, or correct the wrapper",
    )


def _where(name: str, arm: Arm, machine: Machine) -> str | None:
    return machine.find_program(name, arm.env.get("PATH"))
