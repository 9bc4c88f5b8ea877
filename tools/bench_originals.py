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
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paribus.core import Mpi
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.readers import kernel
from paribus.stats.estimate import compare
from paribus.tools.readers import babelstream, npb

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LOOPS = {"copy": "copy", "mul": "scale", "add": "add", "triad": "triad", "dot": "dot"}
"""BabelStream's names, and those of memory_bandwidth."""
DOUBLES = 1 << 25
"""In an array of BabelStream, all threads together: its default."""
SAMPLES = 15


RANK = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
open(os.path.join(sys.argv[1], str(pid)), "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Starts a rank's program and writes its largest resident size, in KiB; it needs 8 MiB itself."""


@dataclass(frozen=True)
class Side:
    """A program: its arguments, ranks and environment, and its figures by name."""

    argv: tuple[str, ...]
    ranks: int
    figures: Callable[[str], dict[str, float]]
    env: Mapping[str, str] = field(default_factory=dict)

    def launch(self, mpi: Mpi, *before: str) -> dict[str, float]:
        """Return the figures of a launch; an exit code other than 0 ends this tool."""
        to = "none" if self.env else "core"
        bound = ["--bind-to", to] if mpi.family == "openmpi" else []
        command = [mpi.mpirun, *bound, "-n", str(self.ranks), *before, *self.argv]
        env = {**os.environ, **mpi.env, **ROOT, **self.env}
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=True)
        return self.figures(ended.stdout)

    def mib(self, mpi: Mpi) -> float:
        """Return the largest resident size of a rank, of a launch of its own."""
        with tempfile.TemporaryDirectory() as folder:
            self.launch(mpi, sys.executable, "-ISc", RANK, folder)
            return max(int(one.read_text()) for one in Path(folder).iterdir()) / 1024


def of_npb(program: Path, ours: str) -> tuple[Side, Side]:
    """Return an original program of NPB and the kernel, in seconds of the timed region."""
    name, size, ranks = program.name.split(".")
    argv = (ours, name, "--class", size, "--samples", "1", "--max-case-s", "1")

    def seconds(stdout: str) -> dict[str, float]:
        read = kernel.READER.read if '{"paribus_kernel"' in stdout else npb.READERS[name].read
        return {one.metric: one.values[0] for one in read(stdout).samples if one.metric == "time"}

    return Side((str(program),), int(ranks), seconds), Side(argv, int(ranks), seconds)


def of_stream(program: Path, ours: str, ranks: int) -> tuple[Side, Side]:
    """Return BabelStream with as many threads as ranks and the kernel, in MB/s of each loop.

    Its figure is that of its fastest pass, so the fastest of the kernel's is compared.
    """
    theirs = (str(program), "--arraysize", str(DOUBLES), "--numtimes", str(SAMPLES + 1))
    size = str(8 * DOUBLES // ranks)
    argv = (ours, "--bytes", size, "--samples", str(SAMPLES), "--max-case-s", "20")
    env = {"OMP_NUM_THREADS": str(ranks), "OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}

    def original(stdout: str) -> dict[str, float]:
        found = babelstream.READER.read(stdout).samples
        return {LOOPS[one.metric]: one.values[0] for one in found}

    def kernels(stdout: str) -> dict[str, float]:
        found = kernel.READER.read(stdout).samples
        return {str(one.case.get("op")): 1000 * max(one.values) for one in found}

    return Side(theirs, 1, original, env), Side(argv, ranks, kernels)


def rows(title: str, sides: tuple[Side, Side], pairs: int, mpi: Mpi) -> list[str]:
    """Return a row of each figure that both sides have."""
    found: list[tuple[dict[str, float], dict[str, float]]] = []
    for _ in range(pairs):
        figures = {which: sides[which].launch(mpi) for which in random.sample((0, 1), 2)}
        found.append((figures[0], figures[1]))
    theirs, ours = (side.mib(mpi) for side in sides)
    made = []
    for name in found[0][0]:
        original = statistics.median(one[name] for one, _ in found)
        ratio = compare([math.log(b[name] / a[name]) for a, b in found], 0.95)
        ends = f"[{ratio.low:.3f}, {ratio.high:.3f}]"
        cells = f"{title} {name} | {original:.4g} | {ratio.ratio:.3f} {ends} | {pairs}"
        made.append(f"| {cells} | {ours:.0f}, {theirs:.0f} |")
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
            sides[program.name] = of_npb(program, ours)
    if how.babelstream:
        ours = str(kernel_path("memory_bandwidth", mpi, HERE))
        for ranks in (1, 2):
            sides[f"stream.{ranks}"] = of_stream(how.babelstream, ours, ranks)
    chosen = [name for name in sides if not how.only or name in how.only]
    if not chosen:
        print("nothing to compare: --npb DIRECTORY or --babelstream PROGRAM", file=sys.stderr)
        return 2
    print(f"{mpi}, load {os.getloadavg()[0]:.1f}")
    print("| program, figure | original | ratio [95 %] | pairs | MiB of a rank: kernel, original |")
    print("|---|---|---|---|---|")
    for name in chosen:
        print("\n".join(rows(name, sides[name], how.pairs, mpi)), flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
