"""GROMACS mdrun: what it writes into its log, md.log."""

from __future__ import annotations

from paribus.benchmarks.parameters import absolute, positive, threads, wanted_threads
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.gromacs import READER


def command(request: Request) -> Program:
    """Return the command line; the log that it writes is read."""
    asked = request.parameters
    argv = [path_or(request, "gmx_mpi"), "-quiet", "mdrun", "-g", "md.log", "-noconfout"]
    argv += options(request, {"input": "-s", "threads": "-ntomp", "steps": "-nsteps"})
    needs = (str(asked["input"]),)
    return Program(tuple(argv), outputs=("md.log",), threads=wanted_threads(asked), needs=needs)


BENCHMARK = tool(
    READER,
    layer="application",
    summary="GROMACS mdrun: molecular dynamics of a run input file of your own",
    metrics=(Metric("ns_per_day", "ns/day", "higher"), Metric("wall", "s", "lower")),
    command=command,
    optional=("wall",),
    parameters={
        "input": Parameter(
            None, absolute, "the run input file (.tpr), as an absolute path", required=True
        ),
        "steps": Parameter(None, positive, "-nsteps: time steps, instead of the input's"),
        "threads": Parameter(1, threads, '-ntomp: OpenMP threads of each rank, or "all"'),
    },
    program="gmx_mpi",
    get="apt install gromacs; https://www.gromacs.org",
)
