"""nccl-tests: collectives of NCCL between GPUs, by the tables of its programs."""

from __future__ import annotations

from collections.abc import Iterable

from paribus.benchmarks.parameters import doubled, doubling, flag, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.nccl_tests import FACTORS, READER


def command(request: Request) -> Program:
    """Return the command line: a GPU per rank, or all in one process."""
    asked = request.parameters
    checked = "0" if asked.get("checked") is False else "1"
    argv = [path_or(request, f"{asked['collective']}_perf"), "-c", checked, "-f", "2"]
    argv += ["-b", str(asked["bytes"][0]), "-e", str(asked["bytes"][-1])]
    single = bool(asked.get("one_process"))
    argv += ["-g", str(request.ranks if single else 1)]
    argv += options(request, {"iterations": "-n", "type": "-d", "redop": "-o"})
    return Program(tuple(argv), mpi=not single)


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return every metric at every size that is measured."""
    measured = doubled(request.parameters["bytes"])
    return [(name, Case.of(bytes=size)) for name in ("time", "bus_bandwidth") for size in measured]


def passed(request: Request) -> set[Case]:
    """Return the cases that are measured although they were not asked for."""
    asked = request.parameters["bytes"]
    return {Case.of(bytes=size) for size in doubled(asked) if size not in asked}


BENCHMARK = tool(
    READER,
    layer="gpu",
    summary="nccl-tests: a collective of NCCL between GPUs, out of place and in place",
    metrics=(
        Metric("time", "us", "lower", margin=0.05),
        Metric("bus_bandwidth", "GB/s", "higher", margin=0.05),
        Metric("time_in_place", "us", "lower", margin=0.05),
        Metric("bus_bandwidth_in_place", "GB/s", "higher", margin=0.05),
    ),
    command=command,
    cases=cases,
    passed=passed,
    optional=("time_in_place", "bus_bandwidth_in_place"),
    parameters={
        "collective": Parameter("all_reduce", one_of(*FACTORS), "which program: NAME_perf"),
        "bytes": Parameter(
            doubling("1 KiB : 128 MiB"), doubling, "sizes; all that double between are measured too"
        ),
        "iterations": Parameter(None, positive, "-n: iterations, instead of 20"),
        "type": Parameter(None, one_of("float", "half", "double", "int32", "bfloat16"), "-d"),
        "redop": Parameter(None, one_of("sum", "prod", "max", "min", "avg"), "-o"),
        "checked": Parameter(True, flag, "-c: whether the data are checked"),
        "one_process": Parameter(False, flag, "one process with all GPUs (-g), without MPI"),
    },
    program="all_reduce_perf",
    get="https://github.com/NVIDIA/nccl-tests: make MPI=1",
)
