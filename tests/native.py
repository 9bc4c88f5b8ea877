"""The native kernels, their sources, and how they are compiled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from mpis import any_mpi
from paribus.launch.machine import HERE
from paribus.launch.toolchain import FLAGS, kernel_path
from processes import ran

NATIVE = Path(__file__).parents[1] / "src" / "paribus" / "native"
COLLECTIVES = ["bcast", "allgather", "allreduce", "alltoall"]
LIKES = ["latency", "bandwidth", "bibandwidth", "message_rate", *COLLECTIVES, "barrier"]
"""What can measure as other programs define it."""
SIZED = [*LIKES[:-1], "alltoallv", "halo", "ring", "triad"]
KERNELS = [*SIZED, "overlap", "pairs", "many_to_one", "barrier", "loader"]
NODE = ["memory_bandwidth", "random_access", "roofline", "conjugate_gradient"]
"""Kernels of memory and computation: tests/test_node_kernels.py."""
PROGRAMS = [*KERNELS, *NODE, "npb", "replay", "storage", "training_proxy"]
"""Each is a source; npb holds several benchmarks."""
COMMON = sorted(path.stem for path in (NATIVE / "common").glob("*.cpp"))
STRICT = ("-Wall", "-Wextra")  # users compile without: another compiler warns of other things


Ended = subprocess.CompletedProcess[str]


def program_of(kernel: str) -> Path:
    """Return the executable of `kernel` in the cache, compiled with the MPI that is here."""
    return kernel_path(kernel, any_mpi(), HERE)


def started(
    program: Path,
    *arguments: str,
    ranks: int,
    cwd: Path | None = None,
    code: int | None = None,
    **more: str,
) -> Ended:
    """Return how a launch of a program, with the MPI that is here and `more` variables, ended.

    It has ended with the exit `code`, where one is given.
    """
    mpi = any_mpi()
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ["--oversubscribe", "--bind-to", "none"] if mpi.family == "openmpi" else []
    argv = [mpi.mpirun, *options, "-n", str(ranks), str(program), *arguments]
    env = {**os.environ, **mpi.env, **root, **more}
    return ran(argv, code, timeout=250, cwd=cwd, env=env)


def together(several: Mapping[str, tuple[Path, Sequence[str], int]]) -> dict[str, Ended]:
    """Return how launches ended, each of a program with arguments and ranks; four run at a time.

    A launch of one rank takes two seconds, of which nearly all is the launcher's waiting. Each has
    a TMPDIR of its own: launchers of Open MPI remove the one session directory of their user.
    """

    def ended(program: Path, words: Sequence[str], ranks: int) -> Ended:
        with TemporaryDirectory() as scratch:
            return started(program, *words, ranks=ranks, TMPDIR=scratch)

    with ThreadPoolExecutor(4) as pool:
        ends = pool.map(lambda one: ended(*one), several.values())
        return dict(zip(several, ends, strict=True))


def compiled(source: Path, target: Path, *flags: str, cxx: str = "") -> str:
    """Compile a source, and return what the compiler said of it.

    `cxx` stands in for the wrapper's own compiler. Headers of MPI are the system's: their warnings
    do not count.
    """
    mpicxx = any_mpi().mpicxx
    shown = ran([mpicxx, "-show"], code=0).stdout
    system = [f"-isystem{word[2:]}" for word in shown.split() if word.startswith("-I")]
    others = dict.fromkeys(("OMPI_CXX", "MPICH_CXX", "I_MPI_CXX"), cxx) if cxx else {}
    argv = [mpicxx, *FLAGS, *STRICT, *system, *flags, str(source), "-o", str(target), "-ldl"]
    done = ran(argv, env=os.environ | others, timeout=120)
    return done.stderr or f"exit code {done.returncode}" * bool(done.returncode)
