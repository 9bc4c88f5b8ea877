"""The parts of IMB-MPI1 of the Intel MPI Benchmarks as benchmarks: command line and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from paribus.benchmarks.parameters import flag, need_ranks, positive, sizes
from paribus.benchmarks.tool import path_or, tool
from paribus.model import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.readers.imb import PARTS, READERS, case_of, doubled

_LATENCY = (Metric("latency", "us", "lower", small_us=2.0),)
_BANDWIDTH = (Metric("bandwidth", "MB/s", "higher"),)
_ALONE = ("Bcast", "Allgather", "Allreduce", "Alltoall", "Barrier")
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


BENCHMARKS = (
    imb(
        "imb_pingpong",
        "point to point",
        "IMB: half the round trip of a message between two ranks",
        _LATENCY,
    ),
    imb(
        "imb_uniband",
        "point to point",
        "IMB: windows of messages from each rank of one half to one of the other, summed",
        _BANDWIDTH,
    ),
    imb(
        "imb_biband",
        "point to point",
        "IMB: windows of messages in both directions at once, summed",
        _BANDWIDTH,
    ),
    imb(
        "imb_bcast",
        "collective",
        "IMB: a message from one rank to all, the root changing",
        _COLLECTIVE,
    ),
    imb("imb_allgather", "collective", "IMB: every rank's message to every rank", _COLLECTIVE),
    imb("imb_allreduce", "collective", "IMB: the sum of a vector at every rank", _COLLECTIVE),
    imb("imb_alltoall", "collective", "IMB: a message from each rank to each rank", _COLLECTIVE),
    imb("imb_barrier", "collective", "IMB: a barrier", _COLLECTIVE),
)
