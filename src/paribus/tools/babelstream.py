"""BabelStream, where the site has it built: memory bandwidth of CPUs and GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from paribus.benchmarks.parameters import flag, one_of, positive, threads, wanted_threads
from paribus.benchmarks.tool import options, path_or, tool, with_stderr
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.babelstream import CLASSIC, READER


def command(request: Request) -> Program:
    """Return the program of one back end, with stderr in its output: there it says what failed."""
    asked = request.parameters
    arguments = options(request, {"times": "-n", "elements": "-s"})
    arguments += ["--float"] if asked["precision"] == "float" else []
    arguments += ["--only", "Triad"] if asked["triad_only"] else []
    program = path_or(request, f"{asked['backend']}-stream")
    return Program(
        with_stderr(program, *arguments),
        mpi=False,
        needs=(program,),
        threads=wanted_threads(asked) if asked["backend"] == "omp" else None,
    )


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return the five kernels, or Triad alone."""
    names = ["Triad"] if request.parameters["triad_only"] else CLASSIC
    return [(name.lower(), Case()) for name in names]


BENCHMARK = tool(
    READER,
    layer="memory",
    summary="BabelStream: memory bandwidth of five simple loops on a CPU or GPU, best of all",
    metrics=tuple(
        Metric(name, "MB/s", "higher") for name in ("triad", "copy", "mul", "add", "dot", "nstream")
    ),
    command=command,
    cases=cases,
    optional=("copy", "mul", "add", "dot", "nstream"),
    parameters={
        "backend": Parameter("omp", one_of("omp", "cuda", "hip"), "which of its programs"),
        "elements": Parameter(33554432, positive, "elements of each of the three arrays"),
        "times": Parameter(100, positive, "repetitions; the first is not counted"),
        "precision": Parameter("double", one_of("double", "float"), "type of the elements"),
        "triad_only": Parameter(False, flag, "only Triad"),
        "threads": Parameter("all", threads, "OpenMP threads of omp", needs=("backend", "omp")),
    },
    program="omp-stream",
    get="https://github.com/UoB-HPC/BabelStream: cmake -Bbuild -DMODEL=omp, cmake --build build",
    ranks=1,
)
