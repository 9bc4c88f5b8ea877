"""The parts of the Intel MPI Benchmarks as benchmarks: command line and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from paribus.benchmarks.parameters import between, flag, need_ranks, positive, sizes
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.readers.imb_parts import MODES, PARTS, Part
from paribus.tools.readers.imb import READERS, case_of, doubled

_METRICS = {
    "latency": Metric("latency", "us", "lower", small_us=2.0),
    "bandwidth": Metric("bandwidth", "MB/s", "higher"),
    "time": Metric("time", "us", "lower", margin=0.05),
    "time_max": Metric("time_max", "us", "lower", margin=0.05),
    "pure_time": Metric("pure_time", "us", "lower", margin=0.05),
}
_POINT_TO_POINT = ("PingP", "Uniband", "Biband", "Sendrecv", "Exchange")
"""The beginnings of parts of IMB-MPI1 that need two ranks or more."""

_OF_AN_INT = 4
"""Bytes of an atomic operation, which takes no size."""


def imb(name: str) -> Benchmark:
    """Return the benchmark of one part of a program."""
    part = PARTS[name]
    metrics = tuple(_METRICS[metric] for metric in part.metrics)
    parameters = {
        "bytes": Parameter(sizes("8 B : 1 MiB"), sizes, 'message sizes: ["8 B", "4 KiB"]'),
        "iterations": Parameter(
            None, positive, "-iter, the same for every size; without it fewer for large ones"
        ),
        "multi": Parameter(None, _group, "-multi: groups at once, 0 for the slowest, 1 for each"),
        "growing": Parameter(False, flag, "also with 2, 4, ... processes, not with all alone"),
    }
    if not part.sized:
        del parameters["bytes"]
    return tool(
        READERS[name],
        layer=_layer(part),
        summary=f"IMB: {_summary(part)}",
        metrics=metrics,
        command=partial(command, name, part),
        cases=partial(cases, part, metrics),
        parameters=parameters,
        program=part.program,
        get="`pip install impi-rt` (binary), or https://github.com/intel/mpi-benchmarks: make",
    )


_group = between(0, 1, "use 0 (the slowest group) or 1 (each group)")


def command(name: str, part: Part, request: Request) -> Program:
    """Return the program's command line: exactly the sizes asked for, all ranks."""
    alone = part.program == "IMB-MPI1" and not part.name.startswith(_POINT_TO_POINT)
    need_ranks(request, name, least=1 if alone else 2)
    asked = request.parameters
    argv, files = [path_or(request, part.program), part.name], {}
    if asked.get("bytes"):
        files["imb-lengths"] = "".join(f"{size}\n" for size in asked["bytes"])
        argv += ["-msglen", "{scratch}/imb-lengths"]
    if asked.get("iterations"):
        argv += ["-iter", str(asked["iterations"]), "-iter_policy", "off", "-time", "100000"]
    if asked.get("multi") is None and not asked.get("growing"):
        argv += ["-npmin", str(request.ranks)]
    argv += options(request, {"multi": "-multi"})
    return Program(tuple(argv), files=files)


def cases(part: Part, metrics: Iterable[Metric], request: Request) -> list[tuple[str, Case]]:
    """Return the cases asked for: sizes, by number of processes and group where there are any."""
    asked, multi = request.parameters, request.parameters.get("multi")
    counts = [2 if part.two else request.ranks]
    if (asked.get("growing") or multi is not None) and not part.two:
        counts = doubled(2, request.ranks)
    found = []
    for processes in counts:
        groups = request.ranks // processes if multi == 1 else 1
        for size in asked.get("bytes") or [_OF_AN_INT if part.modes else None]:
            found += [
                case_of(
                    processes if len(counts) > 1 else None,
                    group if multi == 1 else None,
                    size,
                    mode,
                )
                for group in range(groups)
                for mode in (MODES if part.modes else (None,))
            ]
    return [(metric.name, case) for metric in metrics for case in found]


_SUMMARIES = {
    "PingPong": "half the round trip of a message between two ranks",
    "PingPongSpecificSource": "as PingPong, from a named rank",
    "PingPongAnySource": "as PingPong, from whichever rank",
    "PingPing": "a message that meets one of the other rank on its way",
    "PingPingSpecificSource": "as PingPing, from a named rank",
    "PingPingAnySource": "as PingPing, from whichever rank",
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
    "Reduce_local": "the sum of two vectors of a rank, without communication",
    "Scatter": "a message of its own to every rank, the root changing",
    "Scatterv": "as Scatter, with counts",
    "Unidir_put": "MPI_Put to the other rank",
    "Unidir_get": "MPI_Get from the other rank",
    "Bidir_put": "MPI_Put of two ranks to each other",
    "Bidir_get": "MPI_Get of two ranks from each other",
    "Put_local": "MPI_Put, completed at the origin alone",
    "Get_local": "MPI_Get, completed at the origin alone",
    "Accumulate": "MPI_Accumulate to the other rank",
    "Get_accumulate": "MPI_Get_accumulate at the other rank",
    "Fetch_and_op": "MPI_Fetch_and_op at the other rank",
    "Compare_and_swap": "MPI_Compare_and_swap at the other rank",
    "One_put_all": "MPI_Put of one rank to every other",
    "One_get_all": "MPI_Get of one rank from every other",
    "Put_all_local": "as One_put_all, completed at the origin alone",
    "Get_all_local": "as One_get_all, completed at the origin alone",
    "All_put_all": "MPI_Put of each rank to every other",
    "All_get_all": "MPI_Get of each rank from every other",
    "Exchange_put": "MPI_Put of each rank to both neighbours",
    "Exchange_get": "MPI_Get of each rank from both neighbours",
    "Truly_passive_put": "MPI_Put to a rank that computes, and to one that waits",
}


def _summary(part: Part) -> str:
    if part.program != "IMB-NBC":
        return _SUMMARIES[part.name]
    alone = part.name.removesuffix("_pure")
    how = "alone" if alone != part.name else "while a rank computes, and alone"
    return f"MPI_{alone}, {how}: {_SUMMARIES[alone[1:].capitalize()]}"


def _layer(part: Part) -> str:
    if part.program == "IMB-RMA":
        return "one-sided"
    return "point to point" if part.name.startswith(_POINT_TO_POINT) else "collective"


BENCHMARKS = tuple(map(imb, PARTS))
