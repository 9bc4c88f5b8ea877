"""High Performance Conjugate Gradients, where the site has it built; it writes two files."""

from __future__ import annotations

from paribus.benchmarks.parameters import positive, threads, wanted_threads
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.hpcg import READER


def command(request: Request) -> Program:
    """Return xhpcg with an hpcg.dat made of the parameters."""
    asked = request.parameters
    grid = " ".join(str(asked[key]) for key in ("nx", "ny", "nz"))
    text = f"HPCG benchmark input file\nwritten by Paribus\n{grid}\n{asked['seconds']}\n"
    return Program(
        (path_or(request, "xhpcg"),),
        files={"hpcg.dat": text},
        threads=wanted_threads(asked),
        outputs=("HPCG-Benchmark*.txt", "hpcg*.txt"),
    )


BENCHMARK = tool(
    READER,
    layer="compute",
    summary="HPCG: conjugate gradients with a multigrid preconditioner, all ranks",
    metrics=(Metric("gflops", "Gflop/s", "higher"),),
    command=command,
    parameters={
        "nx": Parameter(104, positive, "local grid in x, a multiple of 8"),
        "ny": Parameter(104, positive, "local grid in y, a multiple of 8"),
        "nz": Parameter(104, positive, "local grid in z, a multiple of 8"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "seconds": Parameter(60, positive, "how long it measures; official ratings need 1800"),
    },
    program="xhpcg",
    get="https://github.com/hpcg-benchmark/hpcg: ../configure Linux_MPI && make, in a folder build",
)
