"""HPC Challenge: seven benchmarks in one program, which exits 0 whatever happened."""

from __future__ import annotations

from paribus.benchmarks.parameters import positive, threads
from paribus.benchmarks.tool import tool
from paribus.core import Metric, Parameter, Program, Request, UserError
from paribus.tools import linpack
from paribus.tools.readers.hpcc import READER


def command(request: Request) -> Program:
    """Return hpcc with an hpccinf.txt made of the parameters; it writes hpccoutf.txt."""
    asked = request.parameters
    n, nb, p, q = ([asked[key]] for key in ("n", "nb", "p", "q"))
    linpack.check_grid(request, "hpcc", p, q)
    if request.ranks < 2:
        raise UserError(
            "one rank has no other to exchange messages with, and HPCC measures that as well",
            place="hpcc: ranks = 1",
            fix="ask for two or more, with p times q as many",
        )
    text = linpack.input_file(n, nb, p, q, device=8) + (
        "##### this line is a separator #####\n"
        "0 Number of additional problem sizes for PTRANS\n1200 values of N\n"
        "0 number of additional blocking sizes for PTRANS\n64 values of NB\n"
    )
    files = {"hpccinf.txt": text}
    return linpack.program(request, "hpcc", files=files, outputs=("hpccoutf.txt",))


BENCHMARK = tool(
    READER,
    layer="compute",
    summary="HPC Challenge: HPL, DGEMM, STREAM, PTRANS, RandomAccess, FFT, ping-pong",
    metrics=(
        Metric("hpl", "Gflop/s", "higher"),
        Metric("dgemm", "Gflop/s", "higher"),
        Metric("stream_triad", "GB/s", "higher"),
        Metric("ptrans", "GB/s", "higher", margin=0.05),
        Metric("random_access", "GUP/s", "higher", margin=0.05),
        Metric("fft", "Gflop/s", "higher", margin=0.05),
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("bandwidth", "GB/s", "higher"),
    ),
    command=command,
    parameters={
        "n": Parameter(4000, positive, "order of HPL's matrix; the other sizes follow from it"),
        "nb": Parameter(128, positive, "block size of HPL"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "p": Parameter(1, positive, "rows of the process grid"),
        "q": Parameter(2, positive, "columns of the process grid; p times q is ranks"),
    },
    program="hpcc",
    get="Debian: apt install hpcc libopenblas0; https://hpcchallenge.org",
)
