"""Compares Paribus' kernels with the programs whose definitions they can follow.

    python tools/bench_fidelity.py [--pairs 11] [--osu DIRECTORY]

IMB-MPI1 comes from the impi-rt wheel, into a virtual environment of its own, and the kernels are
compiled with the same MPI library. Pairs of launches follow each other in random order, pinned to
the same cores, with the same iteration counts; what is compared is the median of the pairs' ratios.
A launch repeats its loop and gives the median: both programs print means over a loop, and one
interruption by other work on the machine spoils a mean.
Ends with 1 if a median is off by more than the bound, and 2 if nothing could be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "src" / "paribus" / "native"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "paribus" / "fidelity"
SIZES = (8, 4096, 65536, 1048576)
IMB = {
    "PingPong": "latency",
    "Uniband": "bandwidth",
    "Biband": "bibandwidth",
    "Bcast": "bcast",
    "Allgather": "allgather",
    "Allreduce": "allreduce",
    "Alltoall": "alltoall",
}
OSU = {
    "osu_latency": "latency",
    "osu_bw": "bandwidth",
    "osu_bcast": "bcast",
    "osu_allgather": "allgather",
    "osu_allreduce": "allreduce",
    "osu_alltoall": "alltoall",
}
WINDOWED = ("Uniband", "Biband", "osu_bw")  # an iteration is a window of 64 messages
SECTIONS = 15
PRINT_STEP = 0.01  # IMB and OSU print two decimals

Figures = dict[int, float]


def count_for(program: str, size: int) -> int:
    """Return iterations that take about a millisecond: mostly less than between interruptions."""
    if program in WINDOWED:
        return 200 if size < 1024 else 64 if size < 16384 else 16 if size < 262144 else 4
    return 2000 if size < 1024 else 1000 if size < 16384 else 200 if size < 262144 else 40


@dataclass(frozen=True)
class Row:
    """One size of one program: medians of both, and the pairs' ratio with its quartiles."""

    program: str
    size: int
    theirs: float
    ours: float
    ratio: float
    low: float
    high: float
    rounding: float


def run(argv: Sequence[str | Path], env: dict[str, str]) -> str:
    """Return the standard output of `argv`; ends the program where it fails."""
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, argv))}\nended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def set_up_intel(folder: Path) -> dict[str, str]:
    """Return the environment in which `mpirun`, `mpicxx` and `IMB-MPI1` are Intel's."""
    if not (folder / "bin" / "IMB-MPI1").exists():
        print(f"setting up Intel MPI and its benchmarks in {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True)
        run([folder / "bin" / "pip", "-q", "install", "impi-devel", "impi-rt"], dict(os.environ))
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("two cores are needed: two ranks on one core measure the scheduler")
    return {
        **os.environ,
        "I_MPI_ROOT": str(folder),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{folder / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "I_MPI_PIN_PROCESSOR_LIST": f"{cores[0]},{cores[1]}",
    }


def compile_kernels(kernels: Sequence[str], env: dict[str, str], folder: Path) -> None:
    for kernel in kernels:
        flags = ["-O2", "-std=c++17", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-pthread"]
        source = str(NATIVE / f"{kernel}.cpp")
        run(["mpicxx", *flags, source, "-o", folder / kernel, "-ldl"], env)


def read_kernel(text: str) -> Figures:
    """Return the value by size, the median of the samples."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["case"]["bytes"]: statistics.median(line["samples"]) for line in lines[1:-1]}


def read_imb(text: str, program: str) -> Figures:
    """Return us by size (MB/s of windows), the median of the sections.

    PingPong is taken from Mbytes/sec, which has more digits, the collectives from t_avg.
    """
    seen: dict[int, list[float]] = {}
    for line in text.split("# Benchmarking", 1)[1].splitlines():
        if not re.fullmatch(r"\s*\d+(\s+[\d.]+){3,}", line):
            continue
        numbers = [float(text) for text in line.split()]
        size = int(numbers[0])
        if program in WINDOWED:
            value = numbers[2]
        else:
            value = size / numbers[3] if program == "PingPong" else numbers[4]
        seen.setdefault(size, []).append(value)
    return {size: statistics.median(values) for size, values in seen.items()}


def read_osu(text: str) -> Figures:
    rows = re.findall(r"^(\d+)\s+([\d.]+)\s*$", text, re.MULTILINE)
    return {int(size): float(value) for size, value in rows}


def compare(
    program: str,
    size: int,
    theirs: Callable[[], float],
    ours: Callable[[], float],
    pairs: int,
    rounding: Callable[[float], float],
) -> Row:
    """Return the comparison of `pairs` pairs of launches, each pair in the order of a coin."""
    seen: list[tuple[float, float]] = []
    for _ in range(pairs):
        if random.random() < 0.5:
            first = theirs()
            seen.append((first, ours()))
        else:
            second = ours()
            seen.append((theirs(), second))
    ratios = sorted(b / a for a, b in seen)
    low, middle, high = statistics.quantiles(ratios, n=4)
    a, b = (statistics.median(column) for column in zip(*seen, strict=True))
    return Row(program, size, a, b, middle, low, high, rounding(a))


def compare_imb(program: str, pairs: int, env: dict[str, str], folder: Path, size: int) -> Row:
    count = str(count_for(program, size))
    lengths = folder / "lengths"
    lengths.write_text(f"{size}\n")
    mpirun = ["mpirun", "-ppn", "2", "-n", "2"]
    fixed = ["-iter", count, "-iter_policy", "off", "-time", "1000", "-msglen", str(lengths)]

    def theirs() -> float:
        return read_imb(run([*mpirun, "IMB-MPI1", *fixed, *[program] * SECTIONS], env), program)[
            size
        ]

    def ours() -> float:
        like = ["--like", "imb", "--iterations", count, "--samples", str(SECTIONS)]
        like += ["--bytes", str(size)]
        return read_kernel(run([*mpirun, folder / IMB[program], *like], env))[size]

    def rounding(value: float) -> float:
        return 0.0 if program == "PingPong" else PRINT_STEP / 2 / value

    return compare(program, size, theirs, ours, pairs, rounding)


def compare_osu(program: Path, pairs: int, env: dict[str, str], folder: Path, size: int) -> Row:
    """`program` must have been built with the MPI library whose mpirun is first on the PATH."""
    count = str(count_for(program.name, size) * 10)
    warmup = str(int(count) // 10)
    mpirun = ["mpirun", "-ppn", "2", "-n", "2"]

    def theirs() -> float:
        fixed = ["-m", f"{size}:{size}", "-i", count, "-x", warmup]
        return read_osu(run([*mpirun, program, *fixed], env))[size]

    def ours() -> float:
        like = ["--like", "osu", "--iterations", count, "--warmup", warmup, "--bytes", str(size)]
        return read_kernel(run([*mpirun, folder / OSU[program.name], *like], env))[size]

    return compare(program.name, size, theirs, ours, pairs, lambda v: PRINT_STEP / 2 / v)


def find_osu(folder: Path | None) -> list[Path]:
    """Return OSU's programs, below `folder` or on the PATH."""
    if folder is None:
        return [Path(found) for name in OSU if (found := shutil.which(name))]
    return [path for name in OSU for path in sorted(folder.rglob(name)) if path.is_file()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=11, help="pairs of launches (default 11)")
    parser.add_argument("--bound", type=float, default=3.0, help="allowed deviation in %%")
    parser.add_argument("--osu", type=Path, help="where OSU's programs lie, built with Intel MPI")
    parser.add_argument("--venv", type=Path, default=CACHE, help="where Intel MPI is installed")
    parser.add_argument("--only", action="append", help="a program, such as Bcast (repeatable)")
    parser.add_argument("--bytes", type=int, action="append", help="a size (repeatable)")
    arguments = parser.parse_args()
    if arguments.pairs < 2:
        parser.error("--pairs must be at least 2")

    env = set_up_intel(arguments.venv.absolute())
    osu = find_osu(arguments.osu)
    if not osu:
        print("OSU's programs were not found on the PATH: not compared (see --osu)")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_kernels(sorted({*IMB.values(), *OSU.values()}), env, folder)
        print(f"{'program':<14}{'bytes':>9}{'theirs':>11}{'ours':>11}{'ratio':>8}  quartiles")
        wanted: list[tuple[str, Callable[[int], Row]]] = [
            *((p, partial(compare_imb, p, arguments.pairs, env, folder)) for p in IMB),
            *((p.name, partial(compare_osu, p, arguments.pairs, env, folder)) for p in osu),
        ]
        for program, function in wanted:
            if arguments.only and program not in arguments.only:
                continue
            for size in arguments.bytes or SIZES:
                row = function(size)
                rows.append(row)
                allowed = arguments.bound / 100 + row.rounding
                mark = "" if abs(row.ratio - 1) <= allowed else f"  beyond {100 * allowed:.1f} %"
                print(
                    f"{row.program:<14}{row.size:>9}{row.theirs:>11.4g}{row.ours:>11.4g}"
                    f"{row.ratio:>8.3f}  {row.low:.3f} to {row.high:.3f}{mark}",
                    flush=True,
                )
    off = [r for r in rows if abs(r.ratio - 1) > arguments.bound / 100 + r.rounding]
    print(f"{len(rows) - len(off)} of {len(rows)} within {arguments.bound:g} %", end=" ")
    print("(plus half a step of the two printed decimals)")
    return 2 if not rows else 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
