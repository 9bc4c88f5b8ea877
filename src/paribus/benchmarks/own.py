"""Paribus' own kernels of MPI as benchmarks: parameters, commands, metrics (docs/kernels.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from paribus.benchmarks.asked import parse
from paribus.benchmarks.parameters import (
    address,
    between,
    need_ranks,
    one_of,
    positive,
    real,
    several,
    sizes,
)
from paribus.core import Benchmark, Metric, Parameter, Program, Request
from paribus.readers.kernel import READER, cases_of

# On both sides of usual changes of protocol (4, 8, 16, 64 KiB: eager, single copy, pipeline).
SIZES = "8 B, 64 B, 512 B, 2 KiB, 4 KiB, 8 KiB, 16 KiB, 32 KiB, 64 KiB, 128 KiB, 256 KiB, 1 MiB"

_PAIR = ("latency", "bandwidth", "bibandwidth")
_ALONE = ("triad", "memory_bandwidth", "conjugate_gradient", "roofline", "random_access", "loader")
_LEAST = {**dict.fromkeys(_ALONE, 1), "many_to_one": 4}
"""The least ranks of kernels for which that is not two; those of _PAIR take exactly two."""

# docs/statistics.md, "margin": collectives vary more than the wire does.
_TIME = Metric("time", "us", "lower", margin=0.05)
_BANDWIDTH = Metric("bandwidth", "MB/s", "higher")
_LATENCY = Metric("latency", "us", "lower", small_us=2.0)


def native(
    kernel: str,
    summary: str,
    *metrics: Metric,
    layer: str,
    bytes: str = "",  # noqa: A002 - the study's own word
    samples: int = 200,
    like: bool = False,
    timed: bool = True,
    intervals: bool = False,
    paced: bool = True,
    extra: Mapping[str, Parameter] | None = None,
    ranks: int = 2,
    arrays: int = 0,
    command: Callable[[Request], Program] | None = None,
) -> Benchmark:
    """Return the benchmark of one native kernel.

    `bytes` are its usual sizes, if it has any. With `like` it can measure as OSU or IMB define the
    metric. If `timed`, it repeats an operation; with `intervals`, its samples are stretches of time
    in place of iterations; unless `paced`, their number is no parameter. `extra` are more
    parameters, `arrays` those of Benchmark, and `command` replaces the usual command line.
    """
    parameters: dict[str, Parameter] = {}
    if bytes:
        meaning = 'sizes: ["8 B", "4 KiB"] or "1 B : 1 MiB"'
        parameters["bytes"] = Parameter(sizes(bytes.split(", ")), sizes, meaning)
    if timed and paced:
        meaning = f"samples per case at most, instead of {samples}"
        parameters["samples"] = Parameter(None, positive, meaning)
    if timed and not intervals:
        parameters["iterations"] = _ITERATIONS
    parameters |= {**(_DELAYS if timed else {}), **(_LIKE if like else {}), **(extra or {})}
    return Benchmark(
        name=kernel,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=command or partial(command_line, kernel),
        parse=partial(
            parse,
            READER,
            benchmark=kernel,
            version="kernel.version",
            cases=lambda request: cases_of(kernel, request.parameters, request.ranks),
            echoed=frozenset(parameters.keys() - {"bytes", "connections", "size"}),
        ),
        parameters=parameters,
        ranks=ranks,
        arrays=arrays,
    )


_ITERATIONS = Parameter(
    None, positive, "iterations per sample, instead of as many as the clock needs"
)
_DELAYS = {
    "delay_us": Parameter(None, real, "wait this long in every operation: a known answer"),
    "delay_share": Parameter(None, real, "wait this share of the operation's own time"),
}
_PROGRAMS = one_of("paribus", "osu", "imb")
_LIKE = {"like": Parameter("paribus", _PROGRAMS, "measure as this program defines it")}


def _two_sizes(value: Any) -> list[int]:
    if len(found := sizes(value)) < 2:
        raise ValueError('name two sizes or more, such as ["8 B", "1 MiB"]')
    return found


def _connections(value: Any) -> list[int]:
    fix = "write numbers of connections from 1 to 64, each once, such as [1, 16]"
    return several(value, fix, lambda number: number <= 64)


_dims = between(2, 3, "use 2 or 3")


def command_line(kernel: str, request: Request) -> Program:
    """Return the kernel's command line; raises UserError for ranks that it does not take."""
    need_ranks(request, kernel, exactly=2 if kernel in _PAIR else 0, least=_LEAST.get(kernel, 2))
    return Program(tuple(arguments(request)), kernel)


def _loader(request: Request) -> Program:
    """Return the command line, with the libraries or modules that are generated for it."""
    number, functions, kind = (request.parameters[key] for key in ("count", "functions", "kind"))
    needs = ("python3",) if kind == "python" else ()
    program = command_line("loader", request)
    return replace(program, libraries=(number, functions, kind), needs=needs)


def arguments(request: Request) -> list[str]:
    """Return the arguments of a kernel: the ranks, which it checks, and all parameters set."""
    argv = ["--ranks", str(request.ranks)]
    for key, value in request.parameters.items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            argv += [f"--{key.replace('_', '-')}", text]
    return argv


_pairs = partial(native, layer="point to point", bytes=SIZES)
_collective = partial(native, layer="collective", bytes=SIZES)

BENCHMARKS = (
    _pairs("latency", "half the round trip of a message between two ranks", _LATENCY, like=True),
    _pairs("bandwidth", "windows of 64 messages from rank 0 to rank 1", _BANDWIDTH, like=True),
    _pairs(
        "bibandwidth",
        "windows of 64 messages in both directions at once, summed",
        _BANDWIDTH,
        like=True,
    ),
    _pairs(
        "message_rate",
        "messages per second of all pairs of ranks at once, summed",
        Metric("message_rate", "msg/s", "higher"),
        bytes="8 B, 64 B, 512 B, 2 KiB, 8 KiB, 64 KiB",
        like=True,
    ),
    _pairs(
        "pairs",
        "latency and bandwidth of every pair of ranks, many pairs at once",
        *(_LATENCY, _BANDWIDTH),
        bytes="8 B, 1 MiB",
        samples=10,
        extra={
            "bytes": Parameter(
                sizes(["8 B", "1 MiB"]),
                _two_sizes,
                "the least is the message of the latency, the others are of the bandwidth",
            )
        },
    ),
    native(
        "many_to_one",
        "incast: many ranks send to one at once, beside two that exchange messages",
        Metric("goodput", "Mbit/s", "higher"),
        Metric("flow", "Mbit/s", "higher", margin=0.05),
        Metric("fairness", "share", "higher"),
        Metric("loaded_latency", "us", "lower", margin=0.05),
        Metric("idle_latency", "us", "lower", margin=0.05),
        layer="network",
        bytes="64 B, 4 KiB, 64 KiB",
        samples=10,
        intervals=True,
        ranks=6,
        extra={
            "connections": Parameter([1, 16], _connections, "of each sender, from 1 to 64"),
            "senders": Parameter(None, positive, "how many ranks send, instead of all but three"),
            "over": Parameter(
                "mpi", one_of("mpi", "sockets"), "MPI, or TCP connections of its own"
            ),
            "receiver": Parameter(
                None, address, "address of rank 0, instead of its host", needs=("over", "sockets")
            ),
        },
    ),
    _collective("bcast", "a message from rank 0 to all", _TIME, like=True),
    _collective("allgather", "every rank's message to every rank", _TIME, like=True),
    _collective("allreduce", "the sum of a vector, at every rank", _TIME, like=True),
    _collective("alltoall", "a message from each rank to each rank", _TIME, like=True),
    _collective(
        "alltoallv",
        "messages of uneven sizes from each rank to each rank",
        _TIME,
        extra={"seed": Parameter(1, positive, "draws the sizes")},
    ),
    _collective(
        "barrier", "the time until the last rank may leave a barrier", _TIME, bytes="", like=True
    ),
    _collective(
        "halo",
        "faces exchanged with all neighbours on a periodic grid of ranks",
        _TIME,
        ranks=4,
        extra={"dims": Parameter(2, _dims, "dimensions of the grid: 2 or 3")},
    ),
    _collective(
        "ring",
        "windows of 64 messages from each rank to the next, all at once, per rank",
        _BANDWIDTH,
        ranks=4,
    ),
    _collective(
        "overlap",
        "how much of a non-blocking collective is not hidden behind computation",
        Metric("exposed", "percent", "lower", margin=0.05),
        *(Metric(name, "us", "lower", margin=0.05) for name in ("total", "pure", "compute")),
        bytes="8 B, 512 B, 8 KiB, 64 KiB, 256 KiB, 1 MiB",
        extra={
            "collective": Parameter(
                "allreduce", one_of("allreduce", "alltoall"), "the collective, non-blocking"
            )
        },
    ),
    # STREAM's rule asks for arrays of four times the last-level cache; 64 MiB holds up to 16 MiB
    # per rank. Larger caches: set `bytes`.
    native(
        "triad",
        "memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once, summed",
        Metric("bandwidth", "GB/s", "higher"),
        layer="memory",
        bytes="64 MiB",
    ),
    native(
        "loader",
        "opening many libraries, or importing many Python modules, from all ranks at once",
        *(Metric(key, "ms", "lower", margin=0.05) for key in ("load", "first_call", "startup")),
        layer="start-up",
        timed=False,
        extra={
            "kind": Parameter(
                "libraries",
                one_of("libraries", "python"),
                "shared libraries, or modules that python3 imports",
            ),
            "count": Parameter(100, positive, "shared libraries to open, or modules to import"),
            "functions": Parameter(50, positive, "functions in each of them"),
        },
        command=_loader,
    ),
)
