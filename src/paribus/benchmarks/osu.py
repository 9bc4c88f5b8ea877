"""The OSU Micro-Benchmarks (5.x to 7.x) as benchmarks: command line, parameters and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from paribus.benchmarks.parameters import doubled, doubling, flag, need_ranks, one_of, positive
from paribus.benchmarks.tool import path_or, tool
from paribus.model import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.readers.osu import READERS, case_of

GET = "https://mvapich.cse.ohio-state.edu/benchmarks: ./configure CC=mpicc CXX=mpicxx && make"

_SEVERAL = ("osu_mbw_mr", "osu_multi_lat")
"""Programs between pairs of ranks that take any number of pairs; the others take one."""

_TYPES = ("mpi_char", "mpi_int", "mpi_float")


def osu(
    program: str,
    layer: str,
    summary: str,
    metric: Metric,
    *,
    sized: bool = True,
    tail: bool = True,
) -> Benchmark:
    """Return the benchmark of one OSU program.

    `sized`: its table has a column of sizes. `tail`: it can print percentiles of its iterations.
    """
    p99 = Metric(f"{metric.name}_p99", metric.unit, metric.better, margin=0.1)
    options = {
        "iterations": Parameter(None, positive, "iterations, instead of the program's own"),
        "full": Parameter(False, flag, "-f: also minimum and maximum over ranks"),
        "validation": Parameter(None, flag, "-c: every size's data must pass the check (6.0)"),
        "tail": Parameter(False, flag, "-z99: also the 99th percentile of the iterations (7.1)"),
        "datatype": Parameter(None, one_of(*_TYPES, "all"), "-T: MPI type, or all three (7.0)"),
    }
    drop = {"full"} if layer != "collective" else set()
    drop |= set() if tail else {"tail"}
    drop |= set() if sized else {"validation", "datatype"}
    parameters = {key: value for key, value in options.items() if key not in drop}
    if sized:
        told = 'message sizes: ["8 B", "4 KiB"] or "1 B : 1 MiB"; all between are measured too'
        parameters = {"bytes": Parameter(doubling("8 B : 1 MiB"), doubling, told), **parameters}
    metrics = (metric, p99) if tail else (metric,)
    return tool(
        READERS[program],
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=partial(command, program, layer),
        cases=partial(cases, metric.name),
        optional=(p99.name,),
        passed=passed if sized else None,
        parameters=parameters,
        program=program,
        get=GET,
    )


def command(program: str, layer: str, request: Request) -> Program:
    """Return the program's command line: from the smallest of the sizes to the largest."""
    pair = layer != "collective" and program not in _SEVERAL
    need_ranks(request, program, exactly=2 if pair else 0, least=2)
    asked = request.parameters
    argv = [path_or(request, program)]
    if asked.get("bytes"):
        argv += ["-m", f"{asked['bytes'][0]}:{asked['bytes'][-1]}"]
    if asked.get("iterations"):
        argv += ["-i", str(asked["iterations"])]
    for key, option in (("full", "-f"), ("validation", "-c"), ("tail", "-z99")):
        if asked.get(key):
            argv.append(option)
    if asked.get("datatype"):
        argv += ["-T", asked["datatype"]]
    return Program(tuple(argv))


def cases(metric: str, request: Request) -> Iterable[tuple[str, Case]]:
    """Return all that is measured: the sizes, of each type where all are asked for."""
    asked = request.parameters.get("bytes")
    names = (metric, f"{metric}_p99") if request.parameters.get("tail") else (metric,)
    every = [Case()] if asked is None else _at(doubled(asked), request)
    return [(name, case) for name in names for case in every]


def passed(request: Request) -> set[Case]:
    """Return the cases that are measured although they were not asked for."""
    asked = request.parameters["bytes"]
    return set(_at([size for size in doubled(asked) if size not in asked], request))


def _at(sizes: Iterable[int], request: Request) -> list[Case]:
    if request.parameters.get("datatype") != "all":
        return [case_of(size, "") for size in sizes]
    least = {"mpi_char": 1, "mpi_int": 4, "mpi_float": 4}
    return [case_of(n, name.upper()) for name in _TYPES for n in sizes if n >= least[name]]


def command_of_init(request: Request) -> Program:
    """Return the command line of osu_init."""
    return Program((path_or(request, "osu_init"),))


_TIME = Metric("time", "us", "lower", margin=0.05)
_LATENCY = Metric("latency", "us", "lower", small_us=2.0)
_BANDWIDTH = Metric("bandwidth", "MB/s", "higher")
BENCHMARKS = (
    osu(
        "osu_latency",
        "point to point",
        "OSU: half the round trip of a message, mean over iterations",
        _LATENCY,
    ),
    osu(
        "osu_bw",
        "point to point",
        "OSU: windows of 64 messages from rank 0 to rank 1",
        _BANDWIDTH,
        tail=False,
    ),
    osu(
        "osu_bibw",
        "point to point",
        "OSU: windows of 64 messages in both directions at once, summed",
        _BANDWIDTH,
        tail=False,
    ),
    osu(
        "osu_mbw_mr",
        "point to point",
        "OSU: messages per second of all pairs of ranks at once, summed",
        Metric("message_rate", "msg/s", "higher"),
        tail=False,
    ),
    osu(
        "osu_multi_lat",
        "point to point",
        "OSU: half the round trip of a message, mean over pairs of ranks that work at once",
        _LATENCY,
    ),
    osu(
        "osu_bcast",
        "collective",
        "OSU: a message from rank 0 to all, mean over ranks and iterations",
        _TIME,
    ),
    osu(
        "osu_allgather",
        "collective",
        "OSU: every rank's message to every rank, mean over ranks and iterations",
        _TIME,
    ),
    osu(
        "osu_allreduce",
        "collective",
        "OSU: the sum of a vector at every rank, mean over ranks and iterations",
        _TIME,
    ),
    osu(
        "osu_alltoall",
        "collective",
        "OSU: a message from each rank to each rank, mean over ranks and iterations",
        _TIME,
    ),
    osu(
        "osu_barrier",
        "collective",
        "OSU: a barrier, mean over ranks and iterations",
        _TIME,
        sized=False,
    ),
    osu(
        "osu_put_latency",
        "one-sided",
        "OSU: MPI_Put and its synchronisation, mean over iterations",
        _LATENCY,
        tail=False,
    ),
    osu(
        "osu_get_latency",
        "one-sided",
        "OSU: MPI_Get and its synchronisation, mean over iterations",
        _LATENCY,
        tail=False,
    ),
    tool(
        READERS["osu_init"],
        layer="start-up",
        summary="OSU: how long MPI_Init takes: the slowest rank, and the mean over ranks",
        metrics=(
            Metric("init", "ms", "lower", margin=0.05),
            Metric("init_mean", "ms", "lower", margin=0.05),
        ),
        command=command_of_init,
        program="osu_init",
        get=GET,
    ),
)
