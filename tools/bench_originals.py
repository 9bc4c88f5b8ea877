"""Compares the kernels of NPB with the original programs, and memory_bandwidth with BabelStream.

    python tools/bench_originals.py --npb DIRECTORY/bin [--only cg.A.1] [--pairs 11] [--mpi PREFIX]
    python tools/bench_originals.py --babelstream PROGRAM [--only copy.1] [--pairs 11]

A launch of each, in random order, makes a pair; both with the same MPI, bound to cores. A row has
the original's median, the ratio of the kernel's figure to the original's (Hodges-Lehmann, with the
exact interval of the signed ranks), and the largest resident size of a rank of each.
docs/fidelity.md says how to build the originals, and what was measured.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paribus.command import Mpi
from paribus.platform.machine import HERE
from paribus.platform.toolchain import find_mpi, kernel_path
from paribus.readers import babelstream, kernel, npb
from paribus.stats.estimate import compare

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LOOPS = {"copy": "copy", "mul": "scale", "add": "add", "triad": "triad", "dot": "dot"}
"""BabelStream's names, and those of memory_bandwidth."""
DOUBLES = 1 << 25
"""In an array of BabelStream, all threads together: its default."""
SAMPLES = 15


@dataclass(frozen=True)
class Launched:
    """What one launch printed, and the largest resident size of a rank, in MiB."""

    stdout: str
    mib: float


@dataclass(frozen=True)
class Side:
    """A program: how it is started, and its figures by name."""

    start: Callable[[], Launched]
    figures: Callable[[str], dict[str, float]]


def launch(argv: Sequence[str], ranks: int, mpi: Mpi, **more: str) -> Launched:
    """Launch a program, and return what it printed; an exit code other than 0 ends this tool."""
    to = "none" if "OMP_NUM_THREADS" in more else "core"
    bound = ["--bind-to", to] if mpi.family == "openmpi" else []
    command = [mpi.mpirun, *bound, "-n", str(ranks), *argv]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **mpi.env, **ROOT, **more}
    )
    assert started.stdout is not None
    stdout = started.stdout.read()
    # The usage of a launcher that was waited for holds that of the ranks it waited for.
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{' '.join(command)}: ended with {started.returncode}")
    return Launched(stdout, usage.ru_maxrss / 1024)


def of_npb(program: Path, ours: str, mpi: Mpi) -> tuple[Side, Side]:
    """Return an original program of NPB and the kernel, in seconds of the timed region."""
    name, size, ranks = program.name.split(".")
    count = int(ranks)
    argv = [ours, name, "--class", size, "--samples", "1", "--max-case-s", "1"]

    def seconds(stdout: str) -> dict[str, float]:
        read = kernel.READER.read if '{"paribus_kernel"' in stdout else npb.READERS[name].read
        return {one.metric: one.values[0] for one in read(stdout).samples if one.metric == "time"}

    return (
        Side(lambda: launch([str(program)], count, mpi), seconds),
        Side(lambda: launch(argv, count, mpi), seconds),
    )


def of_stream(program: Path, ours: str, ranks: int, mpi: Mpi) -> tuple[Side, Side]:
    """Return BabelStream with as many threads as ranks and the kernel, in MB/s of each loop.

    Its figure is that of its fastest pass, so the fastest of the kernel's is compared.
    """
    theirs = [str(program), "--arraysize", str(DOUBLES), "--numtimes", str(SAMPLES + 1)]
    size = str(8 * DOUBLES // ranks)
    argv = [ours, "--bytes", size, "--samples", str(SAMPLES), "--max-case-s", "20"]
    bound = {"OMP_NUM_THREADS": str(ranks), "OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}

    def original(stdout: str) -> dict[str, float]:
        found = babelstream.READER.read(stdout).samples
        return {LOOPS[one.metric]: one.values[0] for one in found}

    def kernels(stdout: str) -> dict[str, float]:
        found = kernel.READER.read(stdout).samples
        return {str(one.case.get("op")): 1000 * max(one.values) for one in found}

    return (
        Side(lambda: launch(theirs, 1, mpi, **bound), original),
        Side(lambda: launch(argv, ranks, mpi), kernels),
    )


def rows(title: str, sides: tuple[Side, Side], pairs: int) -> list[str]:
    """Return a row of each figure that both sides have."""
    found: list[tuple[dict[str, float], dict[str, float]]] = []
    mib = [0.0, 0.0]
    for _ in range(pairs):
        figures: dict[int, dict[str, float]] = {}
        for which in random.sample((0, 1), 2):
            launched = sides[which].start()
            figures[which] = sides[which].figures(launched.stdout)
            mib[which] = max(mib[which], launched.mib)
        found.append((figures[0], figures[1]))
    made = []
    for name in found[0][0]:
        original = statistics.median(one[name] for one, _ in found)
        ratio = compare([math.log(b[name] / a[name]) for a, b in found], 0.95)
        ends = f"[{ratio.low:.3f}, {ratio.high:.3f}]"
        cells = f"{title} {name} | {original:.4g} | {ratio.ratio:.3f} {ends} | {pairs}"
        made.append(f"| {cells} | {mib[1]:.0f}, {mib[0]:.0f} |")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--npb", type=Path, help="where programs like cg.A.1 lie")
    parser.add_argument("--babelstream", type=Path, help="BabelStream's OpenMP program")
    parser.add_argument("--mpi", help="prefix or family, as in a study")
    parser.add_argument("--only", action="append", help="cg.A.1, or stream.2 (repeatable)")
    parser.add_argument("--pairs", type=int, default=11)
    how = parser.parse_args()
    mpi = find_mpi(how.mpi, HERE)
    sides: dict[str, tuple[Side, Side]] = {}
    if how.npb:
        ours = str(kernel_path("npb", mpi, HERE))
        for program in sorted(how.npb.glob("*.[SWABC].*")):
            sides[program.name] = of_npb(program, ours, mpi)
    if how.babelstream:
        ours = str(kernel_path("memory_bandwidth", mpi, HERE))
        for ranks in (1, 2):
            sides[f"stream.{ranks}"] = of_stream(how.babelstream, ours, ranks, mpi)
    chosen = [name for name in sides if not how.only or name in how.only]
    if not chosen:
        print("nothing to compare: --npb DIRECTORY or --babelstream PROGRAM", file=sys.stderr)
        return 2
    print(f"{mpi}, load {os.getloadavg()[0]:.1f}")
    print("| program, figure | original | ratio [95 %] | pairs | MiB of a rank: kernel, original |")
    print("|---|---|---|---|---|")
    for name in chosen:
        print("\n".join(rows(name, sides[name], how.pairs)), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
