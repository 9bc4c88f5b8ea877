"""The kernels of the NAS Parallel Benchmarks (3.2 to 3.4) as benchmarks: command line, class."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.parameters import one_of
from paribus.benchmarks.tool import path_or, tool
from paribus.model import (
    Benchmark,
    Metric,
    Parameter,
    Program,
    Request,
)
from paribus.readers.npb import READERS

GET = (
    "https://www.nas.nasa.gov/software/npb.html: make KERNEL CLASS=A NPROCS=2 (3.4: without NPROCS)"
)


def npb(kernel: str, summary: str) -> Benchmark:
    """Return the benchmark of one kernel, such as "bt"."""
    mops = Metric("mops", "Mop/s", "higher")
    seconds = Metric("time", "s", "lower")
    return tool(
        READERS[kernel],
        layer="compute",
        summary=f"NPB {kernel.upper()}: {summary}",
        metrics=(mops, seconds),
        command=partial(command, kernel),
        parameters={
            "class": Parameter("A", one_of(*"SWABCDEF"), "size of the problem, S to F"),
            "suffix": Parameter(
                "ranks",
                one_of("ranks", "x"),
                'name of the program: "ranks" bt.A.4 (3.3), "x" bt.A.x (3.4)',
            ),
        },
        program=f"{kernel}.A.2",
        get=GET.replace("KERNEL", kernel),
        ranks=4 if kernel in ("bt", "sp") else 2,
    )


def command(kernel: str, request: Request) -> Program:
    """Return the program's command line: NPB takes everything from its name."""
    asked = request.parameters
    last = request.ranks if asked.get("suffix") == "ranks" else "x"
    return Program(
        (path_or(request, f"{kernel}.{asked['class']}.{last}"),), env={"OMP_NUM_THREADS": "1"}
    )


BENCHMARKS = (
    npb("bt", "block-tridiagonal solver, pseudo-application; a square number of ranks"),
    npb("cg", "conjugate gradient: irregular memory access and messages"),
    npb("ep", "random numbers: floating point without messages"),
    npb("ft", "three-dimensional Fourier transform: all-to-all messages"),
    npb("is", "sort of integer keys: random memory access and all-to-all messages"),
    npb("lu", "lower-upper Gauss-Seidel solver, pseudo-application"),
    npb("mg", "multigrid on a sequence of meshes: memory and long- and short-distance messages"),
    npb("sp", "scalar-pentadiagonal solver, pseudo-application; a square number of ranks"),
)
