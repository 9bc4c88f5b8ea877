"""A machine as toolchain.py and programs.py need it: looking for programs and files, compiling.

`Machine` is this one, `HERE` its instance; hosts/host_machine.py answers the same for another.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from paribus.border import cache_directory, draft_of, find_program, search_path, why_not
from paribus.core import Command, UserError
from paribus.launch.local import Captured, LocalStation, capture

BUILD_S = 600.0
"""Seconds that one command of a build may take."""

MADE = "made"
"""The name of the file or directory that a build makes, in its working directory."""

AT_ONCE = 16
"""The most hosts that are asked at the same time."""

T = TypeVar("T")
R = TypeVar("R")


def of_each(several: Sequence[T], do: Callable[[T], R], at_once: int = AT_ONCE) -> list[R]:
    """Return the results of `do` for each of `several`, `at_once` of them in parallel, in order.

    Raises the exception of the first that failed.
    """
    if not several:
        return []
    with ThreadPoolExecutor(min(at_once, len(several))) as pool:
        return list(pool.map(do, several))


def beside() -> tuple[Path, ...]:
    """Return the directory of the Python of Paribus: wheels with an MPI put its programs there."""
    return (Path(sys.executable).parent,)


class Machine:
    """The machine on which tools are looked for and kernels are compiled: this one.

    On another machine each call may cost a round trip. Paths are absolute and the machine's own.
    """

    @property
    def architecture(self) -> str:
        """The architecture of the processor, as `uname -m` prints it: x86_64."""
        return os.uname().machine

    def at(self, place: str) -> str:
        """Return `place` as an error names it: with the machine, unless that is this one."""
        return place

    def capture(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout_s: float = 60.0
    ) -> Captured:
        """Return what `argv` printed there and how it ended; see local.capture."""
        return capture(argv, env=env, timeout_s=timeout_s)

    def executables(self, paths: Iterable[Path]) -> list[Path]:
        """Return those of `paths` that are files and executable, in their order."""
        return [path for path in paths if os.access(path, os.X_OK) and path.is_file()]

    def find_program(self, name: str, path: str | None = None) -> str | None:
        """Return where `name` is in `path` (default: the machine's PATH), or None."""
        return find_program(name, path)

    def readable(self, path: str | Path) -> bool:
        """Return whether `path` can be read."""
        return os.access(path, os.R_OK)

    def is_directory(self, path: str | Path) -> bool:
        """Return whether `path` is a directory."""
        return Path(path).is_dir()

    def resolved(self, path: Path) -> Path:
        """Return `path` without symbolic links."""
        return path.resolve()

    def absolute(self, path: str) -> Path:
        """Return `path`, which may begin with ~ or be relative, as an absolute one."""
        return Path(path).expanduser().absolute()

    def variable(self, name: str) -> str:
        """Return a variable of the machine's environment, "" where it is not set."""
        return os.environ.get(name, "")

    def places(self) -> list[Path]:
        """Return the directories in which MPI is looked for: the absolute entries of the PATH.

        On this machine, those of wheels beside this Python follow.
        """
        path = search_path(os.environ.get("PATH")).split(os.pathsep)
        return [*map(Path, path), *beside()]

    def cache(self) -> Path:
        """Return the directory on the machine for what Paribus can make again."""
        return cache_directory()

    def build(
        self,
        target: Path,
        files: Mapping[str, bytes],
        commands: Sequence[Sequence[str]],
        env: Mapping[str, str],
    ) -> None:
        """Make `target`, complete or not at all, unless it is there already.

        The commands are run one after another in a new directory that holds `files`. What
        they leave there as MADE becomes `target`. Raises UserError for the first that fails (with
        its first errors and the path of the whole log), and if the cache cannot be written, or
        others can change it.
        """
        # A station runs them, and ends all processes: a compiler outlives its driver.
        _refuse_others(target)
        if target.exists():
            _refuse_others(*(target.iterdir() if target.is_dir() else ()))
            return
        with draft_of(target) as (draft, work), LocalStation() as station:
            for name, data in files.items():
                (work / name).parent.mkdir(exist_ok=True)
                (work / name).write_bytes(data)
            out, err = work / "build.out", work / "build.err"
            for argv in commands:
                done = station.run(
                    Command(tuple(argv), env={**env, "TMPDIR": str(work)}),
                    stdout=str(out),
                    stderr=str(err),
                    timeout_s=BUILD_S,
                    scratch=f"{station.scratch}/build",
                    cwd=str(work),
                )
                if done.exit_code or done.timed_out:
                    printed = [one.read_text(errors="replace") for one in (out, err)]
                    log_of(target).write_text(f"$ {' '.join(argv)}\n{''.join(printed)}")
                    raise not_built(self, target, argv, Captured(done.exit_code, *printed))
            for made in (draft, *(draft.iterdir() if draft.is_dir() else ())):
                made.chmod(0o755)


HERE = Machine()


def only_here(path: str | Path, machine: Machine) -> str:
    """Return the fix for a path that `machine` lacks, if this machine has it; else ""."""
    if machine is HERE or "/" not in str(path) or not Path(path).exists():
        return ""
    return (
        "it is on this machine, and not there, as where the home directory is not shared: put it in"
        " a directory that both see at this path"
    )


def log_of(target: Path) -> Path:
    """Return the log of a build of `target` that failed."""
    return target.with_name(f"{target.name}.log")


def not_built(machine: Machine, target: Path, argv: Sequence[str], answer: Captured) -> UserError:
    """Return the error for a command of a build of `target` that failed."""
    return UserError(
        f"does not compile with {argv[0]}: {first_errors(answer)}",
        place=machine.at(target.name.partition("-")[0]),
        fix=f"the full log is {machine.at(str(log_of(target)))}",
    )


def first_errors(answer: Captured) -> str:
    """Return the first three lines that look like errors, else the first three, with "; "."""
    printed = (answer.stderr or answer.stdout).splitlines()
    lines = [line.strip() for line in printed if re.search(r"\w", line)]  # Open MPI draws rules
    errors = [line for line in lines if re.search(r"error|cannot|not found|No such", line)]
    shown = errors or lines or [f"exit code {answer.exit_code}"]
    return "; ".join([*dict.fromkeys(shown)][:3])


def distrusted(place: str, reason: str) -> UserError:
    """Return the error for a cache at `place` that others can change, while ranks execute it."""
    return UserError(
        f"others could change what launches execute: {reason}",
        place=place,
        fix="remove what you did not put there, then make it writable only by you (`chown`,"
        " `chmod go-w`); or set PARIBUS_CACHE to a directory of your own",
    )


def _refuse_others(*paths: Path) -> None:
    for path in paths:
        if reason := why_not(path):
            raise distrusted(str(path), reason)
