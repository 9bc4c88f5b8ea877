"""What the profiler costs an MPI program, with it and without it in turns. Called by bench.py."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median, quantiles

from paribus.command import Mpi
from paribus.platform.machine import HERE
from paribus.platform.profiler import read_records
from paribus.platform.toolchain import find_mpi, kernel_path, profiler_path
from paribus.readers.kernel import read

PAIRS = 20
PROGRAMS = (
    ("latency", "messages of 8 B, nothing else", ("--bytes", "8")),
    ("halo", "exchange of 64 KiB with neighbours", ("--bytes", "65536")),
)


def profiler_cost() -> list[tuple[str, str, str]]:
    """Return rows of bench.py: what, how much, the goal."""
    mpi = find_mpi(None, HERE)
    rows = []
    each: list[float] = []
    for kernel, what, options in PROGRAMS:
        program = str(kernel_path(kernel, mpi, HERE))
        ratios, bare = [], []
        for pair in range(PAIRS):
            with tempfile.TemporaryDirectory() as folder:
                order = (True, False) if pair % 2 else (False, True)
                took = {on: _time(mpi, [program, *options], folder, on) for on in order}
                ratios.append(took[True] / took[False])
                bare.append(took[False])
                for one in read_records(Path(folder), kernel):
                    each.append(one["own_s"] / sum(call[2] for call in one["calls"]))
        low, middle, high = (100 * (one - 1) for one in quantiles(ratios, n=4))
        shown = f"{middle:+.1f} % (quartiles {low:+.1f} to {high:+.1f} %) of {median(bare):.2f} us"
        rows.append((f"profiler, {what}", shown, "2 %"))
    rows.append(("profiler, each MPI call", f"{1e9 * median(each):.0f} ns", ""))
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
    (sample,) = read(done.stdout).samples
    return quantiles(sample.values, n=4)[0]
