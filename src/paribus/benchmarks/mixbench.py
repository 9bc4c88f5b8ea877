"""mixbench, where the site has it built: the roofline of a CPU or GPU, by measurement."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache

from paribus.benchmarks._parameters import one_of, threads, wanted_threads
from paribus.benchmarks._tool import line_at, line_of, once, path_or, refuse, tool
from paribus.model import (
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

_HEADING = "Experiment ID, Single Precision ops,,,,"
_TITLE = re.compile(r"^mixbench(?:-(\w+))?(/\S+)? \(([^\n()]+)\)[ \t]*$", re.M)
_SIZE = re.compile(r"^(?:Working memory|Buffer) size: +(\d+)MB[ \t]*$", re.M)
_THREADS = re.compile(r"^Total threads: (\d+)[ \t]*$", re.M)
_DEVICE = re.compile(r"^Device: +(\S[^\n]*)$", re.M)
_GROUPS = {
    "Single Precision ops": "sp",
    "Double precision ops": "dp",
    "Half precision ops": "hp",
    "Integer operations": "int",
}
_ITERATIONS = {
    "cpu": (
        *(0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 104, 120, 128),
        *(160, 192, 256, 320, 512),
    ),
    "hip": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 256, 512),
    "cuda": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1024),
    "ocl": (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256),
}
"""The rows that each program prints: mix_kernels_*.cpp of versions 0.03 and 0.04. Those of CUDA
ended where those of OpenCL do in 0.03."""


def command(request: Request) -> Program:
    """Return the program of one back end."""
    asked = request.parameters
    cpu = asked["backend"] == "cpu"
    return Program(
        (path_or(request, f"mixbench-{asked['backend']}"),),
        mpi=False,
        threads=wanted_threads(asked) if cpu else None,
    )


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return every row that the program prints."""
    rows = _ITERATIONS[request.parameters["backend"]]
    return [(name, _case(n)) for name in ("dp", "sp", "int") for n in rows]


@cache
def _case(iterations: int) -> Case:
    return Case.of(iterations=iterations)


def read(text: str) -> Reading:
    """Return what mixbench printed; raises ParseError with the line."""
    heading = once(text, _HEADING, "the heading of mixbench's table")
    first = line_of(text, heading)
    lines = text[heading:].split("\n")
    if line_at(text, heading)[: len(_HEADING)] != _HEADING or len(lines) < 3:
        refuse("the heading of the table is damaged", first)
    groups = [_GROUPS.get(name.strip(), "") for name in lines[0].split(",")[1::4]]
    names = [name.strip().rstrip("s") for name in lines[1].split(",")]
    expected = ["Compute iter"]
    for name in groups:
        expected += ["Iops/byte" if name == "int" else "Flops/byte", "ex.time"]
        expected += ["GIOPS" if name == "int" else "GFLOPS", "GB/sec"]
    if groups not in (["sp", "dp", "int"], ["sp", "dp", "hp", "int"]) or names != [
        word.rstrip("s") for word in expected
    ]:
        refuse("the heading of the table is not mixbench's", first + 1)
    title = _TITLE.search(text, 0, heading)
    if title is None:
        refuse("the title with its version is missing before the table", first)
    if title[2] == "/alternating":
        refuse(
            "the program named alternating measures something else (compute steps between"
            " accesses, from none to nothing but them) and is not read; the one named read-only is",
            line_of(text, title.start()),
        )
    iterations, rates = _rows(lines, len(groups), first)
    if tuple(iterations) not in _ITERATIONS.values():
        refuse(f"{len(iterations)} rows, and not those that the program prints", first + 2)
    samples = []
    for name in sorted(groups, key=("dp", "sp", "int", "hp").index):
        column = rates[groups.index(name)]
        if name == "hp" and all(rate == 0 for rate in column):
            continue
        if 0 in column:
            refuse(f"{name} was not measured in every row", first)
        samples += [Sample(name, _case(n), (r,)) for n, r in zip(iterations, column, strict=True)]
    parameters: dict[str, Scalar] = {"program": (title[1] or "gpu") + (title[2] or "")}
    if (size := _SIZE.search(text, 0, heading)) is not None:
        parameters["memory_mib"] = int(size[1])
    if (threads := _THREADS.search(text, 0, heading)) is not None:
        parameters["threads"] = int(threads[1])
    device = _DEVICE.search(text, 0, heading)
    facts = {"mixbench.device": device[1].strip()} if device else {}
    return Reading("mixbench", title[3], parameters, None, tuple(samples), facts)


def _rows(lines: list[str], groups: int, first: int) -> tuple[list[int], list[list[float]]]:
    """Return the iterations of every row and, per group, its rates; 0 where not measured."""
    form = _row(groups)
    iterations: list[int] = []
    rates: list[list[float]] = [[] for _ in range(groups)]
    for number, line in enumerate(lines[2:], first + 2):
        if (row := form.fullmatch(line)) is None:
            if number - first == len(lines) - 1 and not line:
                refuse("the closing line of the table is missing: the program ended before", first)
            if not re.fullmatch(r"-{60,}[ \t]*", line):
                refuse(f"expected a row or the closing line, got {line[:60]!r}", number)
            break
        iterations.append(int(row[1]))
        cells = list(map(float, row.groups()[1:]))
        for group in range(groups):
            per_byte, milliseconds, rate, gbps = cells[4 * group : 4 * group + 4]
            rates[group].append(_rate(per_byte, milliseconds, rate, gbps, number))
    else:
        refuse("the closing line of the table is missing: the program ended before", first)
    for number, line in enumerate(lines[len(iterations) + 3 :], first + len(iterations) + 3):
        if form.fullmatch(line):
            refuse("a row after the end of the table", number)
    return iterations, rates


@cache
def _row(groups: int) -> re.Pattern[str]:
    cell = r", *(\d+\.\d{3}), *(\d+\.\d\d), *(\d+\.\d\d|inf), *(\d+\.\d\d|inf)"
    return re.compile(rf" *(\d+){cell * groups}[ \t]*")


def _rate(per_byte: float, milliseconds: float, rate: float, gbps: float, line: int) -> float:
    """Return the Gflop/s of a cell group, 0 where it says that it was not measured."""
    if milliseconds == 0 and rate == gbps == math.inf:
        return 0.0
    if not (0 < rate < math.inf and gbps < math.inf and milliseconds > 0):
        refuse(f"{rate} at {gbps} GB/s in {milliseconds} ms is not a measurement", line)
    if abs(per_byte * gbps - rate) > 0.006 + 0.006 * per_byte + 0.0006 * gbps:
        refuse(f"{rate} is not {per_byte} operations a byte at {gbps} GB/s", line)
    return rate


BENCHMARK = tool(
    "mixbench",
    layer="compute",
    summary="mixbench: speed of a CPU or GPU from memory-bound to compute-bound, by iterations",
    metrics=(
        Metric("dp", "Gflop/s", "higher"),
        Metric("sp", "Gflop/s", "higher"),
        Metric("int", "Giop/s", "higher"),
        Metric("hp", "Gflop/s", "higher"),
    ),
    reader=read,
    marks=(_HEADING,),
    command=command,
    cases=cases,
    optional=("hp",),
    spare=[(name, _case(n)) for name in ("dp", "sp", "int", "hp") for n in (512, 1024)],
    parameters={
        "backend": Parameter("cpu", one_of("cpu", "cuda", "hip", "ocl"), "which of its programs"),
        "threads": Parameter("all", threads, "OpenMP threads of cpu, each on its own core, or all"),
    },
    program="mixbench-cpu",
    get="https://github.com/ekondis/mixbench: cmake and make in mixbench-cpu, -cuda or -hip",
    versions="0.02 to 0.04",
    proof=(
        "title, heading and closing line, every row that the program prints, Gflop/s equal to"
        " operations per byte times GB/s; half precision may be unsupported as a whole (inf)"
    ),
    means=(
        "the first rows are memory bandwidth (operations per byte times GB/s), the last the"
        " arithmetic peak; two decimals; the CPU program keeps the best of 19 repetitions, and of"
        " 9 with half the threads"
    ),
    ranks=1,
)
