"""The parts of IMB-MPI1 of the Intel MPI Benchmarks as benchmarks: command line and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from paribus.benchmarks.parameters import flag, need_ranks, positive, sizes
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.tools.readers.imb import PARTS, READERS, case_of, doubled

_LATENCY = (Metric("latency", "us", "lower", small_us=2.0),)
_BANDWIDTH = (Metric("bandwidth", "MB/s", "higher"),)
_ALONE = (
    *("Bcast", "Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Barrier"),
    *("Gather", "Gatherv", "Reduce", "Reduce_scatter", "Reduce_scatter_block"),
    *("Scatter", "Scatterv"),
)
"""Parts that one rank can start; the others take two or more."""

_COLLECTIVE = (
    Metric("time", "us", "lower", margin=0.05),
    Metric("time_max", "us", "lower", margin=0.05),
)


def imb(name: str, layer: str, summary: str, metrics: tuple[Metric, ...]) -> Benchmark:
    """Return the benchmark of one part of IMB-MPI1."""
    part, _ = PARTS[name]
    parameters = {
        "bytes": Parameter(sizes("8 B : 1 MiB"), sizes, 'message sizes: ["8 B", "4 KiB"]'),
        "iterations": Parameter(
            None, positive, "-iter, the same for every size; without it fewer for large ones"
        ),
        "multi": Parameter(None, _group, "-multi: groups at once, 0 for the slowest, 1 for each"),
        "growing": Parameter(False, flag, "also with 2, 4, ... processes, not with all alone"),
    }
    if part == "Barrier":
        del parameters["bytes"]
    return tool(
        READERS[name],
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=partial(command, name, part),
        cases=partial(cases, part, metrics),
        parameters=parameters,
        program="IMB-MPI1",
        get="`pip install impi-rt` (binary), or https://github.com/intel/mpi-benchmarks: make",
    )


def _group(value: object) -> int:
    if isinstance(value, bool) or value not in (0, 1):
        raise ValueError("use 0 (the slowest group) or 1 (each group)")
    return int(str(value))


def command(name: str, part: str, request: Request) -> Program:
    """Return the program's command line: exactly the sizes asked for, all ranks."""
    need_ranks(request, name, least=1 if part in _ALONE else 2)
    asked = request.parameters
    argv, files = [path_or(request, "IMB-MPI1"), part], {}
    if asked.get("bytes"):
        files["imb-lengths"] = "".join(f"{size}\n" for size in asked["bytes"])
        argv += ["-msglen", "{scratch}/imb-lengths"]
    if asked.get("iterations"):
        argv += ["-iter", str(asked["iterations"]), "-iter_policy", "off", "-time", "100000"]
    if asked.get("multi") is not None:
        argv += ["-multi", str(asked["multi"])]
    elif not asked.get("growing"):
        argv += ["-npmin", str(request.ranks)]
    return Program(tuple(argv), files=files)


def cases(part: str, metrics: Iterable[Metric], request: Request) -> list[tuple[str, Case]]:
    """Return the cases asked for: sizes, by number of processes and group where there are any."""
    asked, multi = request.parameters, request.parameters.get("multi")
    fixed = part in ("PingPong", "PingPing")
    counts = [2 if fixed else request.ranks]
    if (asked.get("growing") or multi is not None) and not fixed:
        counts = doubled(2, request.ranks)
    found = []
    for processes in counts:
        groups = request.ranks // processes if multi == 1 else 1
        for size in asked.get("bytes") or [None]:
            found += [
                case_of(processes if len(counts) > 1 else None, group if multi == 1 else None, size)
                for group in range(groups)
            ]
    return [(metric.name, case) for metric in metrics for case in found]


_SUMMARIES = {
    "PingPong": "half the round trip of a message between two ranks",
    "PingPing": "a message that meets one of the other rank on its way",
    "Uniband": "windows of messages from each rank of one half to one of the other, summed",
    "Biband": "windows of messages in both directions at once, summed",
    "Sendrecv": "a message to the next rank of a ring, and one from the last",
    "Exchange": "messages to and from both neighbours in a ring",
    "Bcast": "a message from one rank to all, the root changing",
    "Allgather": "every rank's message to every rank",
    "Allgatherv": "as Allgather, with counts",
    "Allreduce": "the sum of a vector at every rank",
    "Alltoall": "a message from each rank to each rank",
    "Alltoallv": "as Alltoall, with counts",
    "Barrier": "a barrier",
    "Gather": "every rank's message to one rank, the root changing",
    "Gatherv": "as Gather, with counts",
    "Reduce": "the sum of a vector at one rank, the root changing",
    "Reduce_scatter": "a part of the sum of a vector at every rank",
    "Reduce_scatter_block": "an equal part of the sum of a vector at every rank",
    "Scatter": "a message of its own to every rank, the root changing",
    "Scatterv": "as Scatter, with counts",
}
_BETWEEN = ("PingPong", "PingPing", "Uniband", "Biband", "Sendrecv", "Exchange")
_METRICS = {
    ("latency",): _LATENCY,
    ("bandwidth",): _BANDWIDTH,
    ("time", "time_max"): _COLLECTIVE,
}
BENCHMARKS = tuple(
    imb(
        name,
        "point to point" if part in _BETWEEN else "collective",
        f"IMB: {_SUMMARIES[part]}",
        _METRICS[metrics],
    )
    for name, (part, metrics) in PARTS.items()
)
