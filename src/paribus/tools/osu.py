"""The OSU Micro-Benchmarks (5.x to 7.x) as benchmarks: command line, parameters and cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from paribus.benchmarks.parameters import doubled, doubling, flag, need_ranks, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.readers.osu_programs import PROGRAMS, Family
from paribus.readers.osu_programs import Program as Of
from paribus.tools.readers.osu import READERS, case_of

GET = "https://mvapich.cse.ohio-state.edu/benchmarks: ./configure CC=mpicc CXX=mpicxx && make"

_OF_8_B = ("osu_cas_latency", "osu_fop_latency")
"""Programs that take no size: an atomic operation has 8 B."""

_TYPES = ("mpi_char", "mpi_int", "mpi_float")


def osu(name: str, program: Of) -> Benchmark:
    """Return the benchmark of one OSU program."""
    metric, layer = _METRICS[program.metric], _LAYERS[program.family]
    sized = "barrier" not in name and name not in _OF_8_B
    # The others have no percentiles of their iterations.
    tail = program.family in ("collective", "pairs") or name == "osu_latency"
    tail = tail and program.metric != "message_rate"
    p99 = Metric(f"{metric.name}_p99", metric.unit, metric.better, margin=0.1)
    alone = Metric("pure_time", "us", "lower", margin=0.05)
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
        meaning = 'message sizes: ["8 B", "4 KiB"] or "1 B : 1 MiB"; all between are measured too'
        parameters = {"bytes": Parameter(doubling("8 B : 1 MiB"), doubling, meaning), **parameters}
    at_once = program.family == "non-blocking"
    more = (p99,) if tail else (alone,) if at_once else ()
    names = (metric.name, *(one.name for one in more if one is alone))
    return tool(
        READERS[name],
        layer=layer,
        summary=f"OSU: {program.does}",
        metrics=(metric, *more),
        command=partial(command, name, program.family),
        cases=partial(cases, names, case_of(8, "") if name in _OF_8_B else Case()),
        optional=(p99.name,),
        passed=passed if sized else None,
        parameters=parameters,
        ranks=3 if "neighbor" in name else 2,
        program=name,
        get=GET,
    )


def command(program: str, family: Family, request: Request) -> Program:
    """Return the program's command line: from the smallest of the sizes to the largest."""
    pair = family in ("between two", "one-sided")
    least = 3 if "neighbor" in program else 2  # each has two neighbours
    need_ranks(request, program, exactly=2 if pair else 0, least=least)
    argv = [path_or(request, program)]
    if asked := request.parameters.get("bytes"):
        argv += ["-m", f"{asked[0]}:{asked[-1]}"]
    argv += options(request, {"iterations": "-i", "full": "-f", "validation": "-c"})
    argv += options(request, {"tail": "-z99", "datatype": "-T"})
    return Program(tuple(argv))


def cases(metrics: Sequence[str], only: Case, request: Request) -> Iterable[tuple[str, Case]]:
    """Return every metric at the sizes, of each MPI type if all are asked for; or at `only`."""
    asked = request.parameters.get("bytes")
    tails = [f"{metrics[0]}_p99"] if request.parameters.get("tail") else []
    names = [*metrics, *tails]
    every = [only] if asked is None else _at(doubled(asked), request)
    return [(name, case) for name in names for case in every]


def passed(request: Request) -> set[Case]:
    """Return the cases that are measured although they were not asked for."""
    asked = request.parameters["bytes"]
    return set(_at([size for size in doubled(asked) if size not in asked], request))


def _at(sizes: Iterable[int], request: Request) -> list[Case]:
    """Return the cases of sizes, of each MPI type that fits into one if all types are asked for."""
    if request.parameters.get("datatype") != "all":
        return [case_of(size, "") for size in sizes]
    least = {"mpi_char": 1, "mpi_int": 4, "mpi_float": 4}
    return [case_of(n, name.upper()) for name in _TYPES for n in sizes if n >= least[name]]


_METRICS: Mapping[str, Metric] = {
    "latency": Metric("latency", "us", "lower", small_us=2.0),
    "bandwidth": Metric("bandwidth", "MB/s", "higher"),
    "message_rate": Metric("message_rate", "msg/s", "higher"),
    "time": Metric("time", "us", "lower", margin=0.05),
}
_LAYERS: Mapping[Family, str] = {
    "between two": "point to point",
    "pairs": "point to point",
    "collective": "collective",
    "non-blocking": "collective",
    "one-sided": "one-sided",
}
BENCHMARKS = (
    *(osu(name, program) for name, program in PROGRAMS.items()),
    tool(
        READERS["osu_init"],
        layer="start-up",
        summary="OSU: how long MPI_Init takes: the slowest rank, and the mean over ranks",
        metrics=(
            Metric("init", "ms", "lower", margin=0.05),
            Metric("init_mean", "ms", "lower", margin=0.05),
        ),
        command=lambda request: Program((path_or(request, "osu_init"),)),
        program="osu_init",
        get=GET,
    ),
)
