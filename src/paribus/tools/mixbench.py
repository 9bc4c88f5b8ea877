"""mixbench, where the site has it built: the roofline of a CPU or GPU, by measurement."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from paribus.benchmarks.parameters import one_of, threads, wanted_threads
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Reading, Request
from paribus.tools.readers.mixbench import READER

ROWS = {
    "cpu": (
        *(0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 104, 120, 128),
        *(160, 192, 256, 320, 512),
    ),
    "hip": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 256, 512),
    "gpu": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1024),
    "ocl": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256),
}
ROWS["sycl"] = ROWS["ocl"]
"""The rows, by iterations, that each program prints, by the word in its title; that of CUDA has
none, and is "gpu". From mix_kernels_*.cpp of versions 0.03 and 0.04."""

SHORTER = ("v0.02", "v0.03")
"""Versions whose CUDA program may end where OpenCL's does, as that of v0.03-2."""


def command(request: Request) -> Program:
    """Return the program of one back end."""
    asked = request.parameters
    cpu = asked["backend"] == "cpu"
    return Program(
        (path_or(request, f"mixbench-{asked['backend']}"),),
        mpi=False,
        threads=wanted_threads(asked) if cpu else None,
    )


def printed(reading: Reading) -> Iterable[tuple[str, Case]]:
    """Return every row of the program that the title names, of each type that the device has.

    The reader has checked that a type which is missing has "inf" in every row.
    """
    name = str(reading.parameters["program"]).partition("/")[0]
    rows = ROWS.get(name)
    of_any = {sample.case for sample in reading.samples}
    beyond = {Case.of(iterations=n) for n in (512, 1024)}
    if name == "gpu" and reading.version.startswith(SHORTER) and not of_any & beyond:
        rows = ROWS["ocl"]
    cases = [Case.of(iterations=n) for n in rows] if rows else of_any
    return list(product({"sp", *(sample.metric for sample in reading.samples)}, cases))


BENCHMARK = tool(
    READER,
    layer="compute",
    summary="mixbench: speed of a CPU or GPU from memory-bound to compute-bound, by iterations",
    metrics=(
        Metric("sp", "Gflop/s", "higher"),  # first: what every device has decides
        Metric("dp", "Gflop/s", "higher"),
        Metric("int", "Giop/s", "higher"),
        Metric("hp", "Gflop/s", "higher"),
    ),
    command=command,
    printed=printed,
    parameters={
        "backend": Parameter(
            "cpu", one_of("cpu", "cuda", "hip", "ocl", "sycl"), "which of its programs"
        ),
        "threads": Parameter("all", threads, "OpenMP threads of cpu", needs=("backend", "cpu")),
    },
    program="mixbench-cpu",
    get="https://github.com/ekondis/mixbench: cmake and make in mixbench-cpu, -cuda or -hip",
    ranks=1,
)
