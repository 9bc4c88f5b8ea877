"""STREAM (stream.c of John D. McCalpin), where the site has it built."""

from __future__ import annotations

from paribus.benchmarks.parameters import positive, threads, wanted_threads
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.stream import READER


def command(request: Request) -> Program:
    """Return the program: array size and repetitions were compiled in."""
    program = path_or(request, "stream")
    return Program((program,), mpi=False, threads=wanted_threads(request.parameters))


BENCHMARK = tool(
    READER,
    layer="memory",
    summary="STREAM: memory bandwidth of four simple loops, best of the repetitions",
    metrics=tuple(Metric(name, "MB/s", "higher") for name in ("triad", "add", "scale", "copy")),
    command=command,
    parameters={
        "threads": Parameter("all", threads, "OpenMP threads, each on a core of its own, or all"),
        "elements": Parameter(None, positive, "the array size that was compiled in, to be checked"),
    },
    program="stream",
    get="https://www.cs.virginia.edu/stream: cc -O3 -fopenmp -DSTREAM_ARRAY_SIZE=80000000 stream.c",
    ranks=1,
)
