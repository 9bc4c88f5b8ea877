"""The OSU Micro-Benchmarks (5.x to 7.x) as benchmarks: command line, parameters and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from paribus.benchmarks._osu_text import READ, case_of, read
from paribus.benchmarks._parameters import flag, one_of, positive, sizes
from paribus.benchmarks._tool import path_or, tool
from paribus.model import Benchmark, Case, Metric, Parameter, Program, Request

GET = "https://mvapich.cse.ohio-state.edu/benchmarks: ./configure CC=mpicc CXX=mpicxx && make"
VERSIONS = "5.3 to 7.5"
PROOF = (
    "title and heading once, sizes that double, rows of as many columns as the heading has and"
    " nothing between them, avg between min and max, no validation failed, no word of a launcher"
    " that the launch failed"
)
MEANS = (
    "means over iterations with two decimals, so 0.11 us is known to 9 %; min and max are over"
    " ranks; 7.x reads the clock in every iteration and 5.x once around them; the ranks of a"
    " collective are not printed; other programs measure something else by the same name"
)

_TYPES = ("mpi_char", "mpi_int", "mpi_float")


def osu(
    program: str,
    *,
    title: str,
    layer: str,
    summary: str,
    metric: Metric,
    sized: bool = True,
    tail: bool = True,
    ranks: int | None = None,
    column: str = "value",
) -> Benchmark:
    """Return the benchmark of one OSU program.

    `title` is what its first line says between "OSU MPI" and "Test". `sized`: its table has a
    column of sizes. `tail`: it can print percentiles of its iterations. `ranks` are those without
    which it refuses to start. `column` is the one that holds the metric.
    """
    READ.add(title.lower())
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
        doubled = sizes("8 B : 1 MiB")
        told = 'a range that doubles, such as "8 B : 1 MiB"'
        parameters = {"bytes": Parameter(doubled, _doubling, told), **parameters}
    metrics = (metric, p99) if tail else (metric,)
    return tool(
        program,
        layer=layer,
        summary=summary,
        metrics=metrics,
        reader=partial(read, program, title, metric, ranks, column),
        marks=_marks(title),
        command=partial(command, program),
        cases=partial(cases, metric.name),
        optional=(p99.name,),
        parameters=parameters,
        program=program,
        get=GET,
        versions=VERSIONS,
        proof=PROOF,
        means=MEANS,
    )


def _marks(title: str) -> tuple[str, ...]:
    """Return how a first line begins: "MPI Latency", "MPI-CUDA Latency", "MPI_Get latency"."""
    own, _, rest = title.partition(" ") if title.startswith("_") else ("", "", title)
    devices = ("", "-CUDA", "-OPENACC", "-ROCM", "-MANAGED")
    words = dict.fromkeys((rest, rest[0].lower() + rest[1:]))
    return tuple(f"# OSU MPI{own}{device} {word} " for device in devices for word in words)


def _doubling(value: object) -> list[int]:
    found = sizes(value)
    if any(after != 2 * before for before, after in pairwise(found)):
        raise ValueError('OSU programs double from size to size: write "8 B : 1 MiB"')
    return found


def command(program: str, request: Request) -> Program:
    """Return the program's command line."""
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
    """Return the cases asked for: the sizes, of each type where all are asked for."""
    asked = request.parameters.get("bytes")
    names = (metric, f"{metric}_p99") if request.parameters.get("tail") else (metric,)
    every = [Case()]
    if asked is not None and request.parameters.get("datatype") != "all":
        every = [case_of(size, "") for size in asked]
    elif asked is not None:
        least = {"mpi_char": 1, "mpi_int": 4, "mpi_float": 4}
        every = [case_of(n, name.upper()) for name in _TYPES for n in asked if n >= least[name]]
    return [(name, case) for name in names for case in every]
