"""nccl-tests: collectives of NCCL between GPUs, by the tables of its programs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from paribus.benchmarks.parameters import flag, one_of, positive, sizes
from paribus.benchmarks.tool import path_or, tool
from paribus.model import Case, Metric, Parameter, Program, Request
from paribus.readers.nccl_tests import FACTORS, READER, case_of


def command(request: Request) -> Program:
    """Return the command line: a GPU per rank, or all in one process."""
    asked = request.parameters
    checked = "0" if asked.get("checked") is False else "1"
    argv = [path_or(request, f"{asked['collective']}_perf"), "-c", checked, "-f", "2"]
    argv += ["-b", str(asked["bytes"][0]), "-e", str(asked["bytes"][-1])]
    single = bool(asked.get("one_process"))
    argv += ["-g", str(request.ranks if single else 1)]
    for key, option in (("iterations", "-n"), ("type", "-d"), ("redop", "-o")):
        if asked.get(key):
            argv += [option, str(asked[key])]
    return Program(tuple(argv), mpi=not single)


def _doubling(value: object) -> list[int]:
    found = sizes(value)
    if any(after != 2 * before for before, after in pairwise(found)):
        raise ValueError('sizes double from one to the next: write "8 B : 128 MiB"')
    return found


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return every metric at every size."""
    return [
        (name, case_of(size))
        for name in ("time", "bus_bandwidth")
        for size in request.parameters["bytes"]
    ]


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
    optional=("time_in_place", "bus_bandwidth_in_place"),
    parameters={
        "collective": Parameter("all_reduce", one_of(*FACTORS), "which program: NAME_perf"),
        "bytes": Parameter(sizes("1 KiB : 128 MiB"), _doubling, "a range that doubles"),
        "iterations": Parameter(None, positive, "-n: iterations, instead of 20"),
        "type": Parameter(None, one_of("float", "half", "double", "int32", "bfloat16"), "-d"),
        "redop": Parameter(None, one_of("sum", "prod", "max", "min", "avg"), "-o"),
        "checked": Parameter(True, flag, "-c: whether the data are checked"),
        "one_process": Parameter(False, flag, "one process with all GPUs (-g), without MPI"),
    },
    program="all_reduce_perf",
    get="https://github.com/NVIDIA/nccl-tests: make MPI=1",
)
