"""The parts of IMB-MPI1 of the Intel MPI Benchmarks as benchmarks: command line and cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from paribus.benchmarks._imb_text import case_of, doubled, read
from paribus.benchmarks._parameters import flag, positive, sizes
from paribus.benchmarks._tool import path_or, tool
from paribus.model import Benchmark, Case, Metric, Parameter, Program, Request

LATENCY = (Metric("latency", "us", "lower", small_us=2.0),)
BANDWIDTH = (Metric("bandwidth", "MB/s", "higher"),)
COLLECTIVE = (
    Metric("time", "us", "lower", margin=0.05),
    Metric("time_max", "us", "lower", margin=0.05),
)


def imb(
    name: str, part: str, *, layer: str, summary: str, metrics: tuple[Metric, ...]
) -> Benchmark:
    """Return the benchmark of one part of IMB-MPI1, such as "PingPong"."""
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
        name,
        layer=layer,
        summary=summary,
        metrics=metrics,
        reader=partial(read, name, part, metrics),
        marks=(f"\n# {part}\n",),
        command=partial(command, part),
        cases=partial(cases, part, metrics),
        parameters=parameters,
        program="IMB-MPI1",
        get="`pip install impi-rt` (binary), or https://github.com/intel/mpi-benchmarks: make",
        versions="2.3 to 4.1, 2018 to 2021.11",
        proof=(
            "title, list of benchmarks and last line once, a table for each benchmark of the list,"
            " sizes that double up to the longest echoed, min <= avg <= max, MB/s = bytes / time,"
            " no unknown name or option, no size left out, no defect of a checking build"
        ),
        means=(
            "latency is half the round trip; MB are 10^6, but 2^20 until 4.1; time is the mean over"
            " ranks, time_max the slowest; repetitions fall with the size unless they are set,"
            " which alone changed 1 MiB by 15 %; nothing is sent at 0 bytes of a collective, so"
            " that row is left out; the title of 2019 to 2021.3 says 2018"
        ),
    )


def _group(value: object) -> int:
    if isinstance(value, bool) or value not in (0, 1):
        raise ValueError("use 0 (the slowest group) or 1 (each group)")
    return int(str(value))


def command(part: str, request: Request) -> Program:
    """Return the program's command line: exactly the sizes asked for, all ranks."""
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
