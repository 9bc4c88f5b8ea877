"""High-Performance Linpack, where the site has it built; every N, NB, P and Q is a case."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from paribus.benchmarks.parameters import threads
from paribus.benchmarks.tool import tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools import linpack
from paribus.tools.readers.hpl import READER, case_of


def command(request: Request) -> Program:
    """Return xhpl with an HPL.dat made of the parameters; it prints to stdout."""
    asked = request.parameters
    linpack.check_grid(request, "hpl", asked["p"], asked["q"])
    text = linpack.input_file(asked["n"], asked["nb"], asked["p"], asked["q"], device=6)
    return linpack.program(request, "xhpl", files={"HPL.dat": text})


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return a case per N, NB and process grid."""
    asked = request.parameters
    grids = zip(asked["p"], asked["q"], strict=True)
    every = product(asked["n"], asked["nb"], grids)
    return [("gflops", case_of(n, nb, p, q, "")) for n, nb, (p, q) in every]


BENCHMARK = tool(
    READER,
    layer="compute",
    summary="HPL: a dense linear system solved by LU factorisation, all ranks",
    metrics=(Metric("gflops", "Gflop/s", "higher"),),
    command=command,
    cases=cases,
    parameters={
        "n": Parameter([8000], linpack.counts, "order of the matrix, or several"),
        "nb": Parameter([192], linpack.counts, "block size, or several"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "p": Parameter([1], linpack.grid, "rows of the process grid, or several"),
        "q": Parameter([2], linpack.grid, "columns, as many; p times q is ranks"),
    },
    program="xhpl",
    get="https://www.netlib.org/benchmark/hpl: make arch=..., with the site's BLAS",
)
