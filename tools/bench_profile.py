"""What the profiler costs an MPI program, with it and without it in turns. Called by bench.py."""

from __future__ import annotations

import os
import subprocess
import tempfile
from math import log
from pathlib import Path
from statistics import median, quantiles

from paribus.core import Mpi, percent
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path, profiler_path
from paribus.profile.profiler import read_records, summed
from paribus.readers.kernel import read
from paribus.stats.estimate import compare

PAIRS = 21
PROGRAMS = (
    ("messages of 8 B, nothing else", "latency", ("--bytes", "8", "--samples", "10000")),
    ("exchange of 64 KiB with neighbours", "halo", ("--bytes", "65536", "--samples", "2000")),
    ("NPB CG, class W", "npb", ("cg", "--class", "W")),
    ("NPB LU, class W", "npb", ("lu", "--class", "W", "--samples", "3")),
    ("NPB IS, class W", "npb", ("is", "--class", "W")),
)


def profiler_cost(prefix: str | None = None) -> list[tuple[str, str, str]]:
    """Return rows of bench.py, of the MPI at `prefix`: what, how much, the goal."""
    mpi = find_mpi(prefix, HERE)
    rows = []
    for what, kernel, options in PROGRAMS:
        program = str(kernel_path(kernel, mpi, HERE))
        logs, bare, own, timed = [], [], [], []
        for pair in range(PAIRS):
            with tempfile.TemporaryDirectory() as folder:
                order = (True, False) if pair % 2 else (False, True)
                took = {on: _time(mpi, [program, *options], folder, on) for on in order}
                logs.append(log(took[True] / took[False]))
                bare.append(took[False])
                taken = summed(read_records(Path(folder), kernel), kernel, kernel)
            own.append(taken.own)
            timed.append(taken.timed)
        ratio = compare(logs, 0.95)
        low, middle, high = (100 * (one - 1) for one in (ratio.low, ratio.ratio, ratio.high))
        shown = f"{middle:+.1f} % [{low:+.1f}, {high:+.1f}] of {median(bare):.4g}"
        said = f"{percent(median(own))} by its own figure, {percent(median(timed))} of calls timed"
        rows.append((f"profiler, {what}", f"{shown}; {said}", "2 %"))
    return rows


def _time(mpi: Mpi, argv: list[str], folder: str, on: bool) -> float:
    """Return the lower quartile of the samples of a launch: what other programs disturb least."""
    env = {**os.environ, **mpi.env, "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    if on:
        env |= {"LD_PRELOAD": str(profiler_path(mpi, HERE)), "PARIBUS_PROFILE": folder}
    done = subprocess.run(
        [mpi.mpirun, "-n", "2", *argv], env=env, capture_output=True, text=True, check=True
    )
    samples = {one.metric: one for one in read(done.stdout).samples}
    known = samples.get("time") or next(iter(samples.values()))
    return quantiles(known.values, n=4)[0]
