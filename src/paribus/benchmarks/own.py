"""Paribus' own kernels as benchmarks: parameters, command line, metrics (docs/kernels.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paribus.benchmarks.asked import parse
from paribus.benchmarks.parameters import address, need_ranks, one_of, positive, real, sizes
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.readers.kernel import READER, cases_of

# Both sides of the usual protocol switches (4, 8, 16, 64 KiB: eager limits, single copy, pipeline).
SIZES = "8 B, 64 B, 512 B, 2 KiB, 4 KiB, 8 KiB, 16 KiB, 32 KiB, 64 KiB, 128 KiB, 256 KiB, 1 MiB"

_PAIR = ("latency", "bandwidth", "bibandwidth")
_ALONE = ("triad", "memory_bandwidth", "conjugate_gradient", "roofline", "random_access", "loader")
_LEAST = {**dict.fromkeys(_ALONE, 1), "many_to_one": 4}
"""What takes exactly two ranks, and the least of other kernels that do not take two or more."""

# docs/statistics.md, "margin": collectives vary more than the wire does.
_COLLECTIVE = Metric("time", "us", "lower", margin=0.05)
_BANDWIDTH = Metric("bandwidth", "MB/s", "higher")


def native(
    kernel: str,
    *,
    layer: str,
    summary: str,
    metrics: tuple[Metric, ...],
    bytes: str | None = SIZES,  # noqa: A002 - the study's own word
    samples: int = 200,
    like: bool = True,
    extra: Mapping[str, Parameter] | None = None,
    libraries: bool = False,
    intervals: bool = False,
    paced: bool = True,
    ranks: int = 2,
    arrays: int = 0,
    command: Callable[[Request], Program] | None = None,
) -> Benchmark:
    """Return the benchmark of one native kernel.

    `bytes` of None: it has no sizes; `intervals`: its samples are stretches of time; not `paced`:
    how many is not a parameter; `arrays`: as a Benchmark has them; `command`: another one than that
    of a program that is called like the kernel.
    """
    parameters = _common(bytes, samples, timed=not libraries)
    if intervals:
        del parameters["iterations"]
    if not paced:
        del parameters["samples"]
    if like:
        parameters["like"] = Parameter(
            "paribus", one_of("paribus", "osu", "imb"), "measure as this program defines it"
        )
    return Benchmark(
        name=kernel,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=command or partial(command_line, kernel, libraries),
        parse=partial(
            parse,
            READER,
            benchmark=kernel,
            version="kernel.version",
            cases=partial(_cases, kernel),
            echoed=frozenset({*parameters, *(extra or {})} - {"bytes", "connections", "size"}),
        ),
        parameters={**parameters, **(extra or {})},
        ranks=ranks,
        arrays=arrays,
    )


def _common(bytes: str | None, samples: int, *, timed: bool) -> dict[str, Parameter]:  # noqa: A002
    """Return the parameters that nearly all kernels have; `timed`: operations, again and again."""
    parameters: dict[str, Parameter] = {}
    if bytes is not None:
        told = 'sizes: ["8 B", "4 KiB"] or "1 B : 1 MiB"'
        parameters["bytes"] = Parameter(sizes(bytes.split(", ")), sizes, told)
    if timed:
        parameters |= {
            "samples": Parameter(None, positive, f"samples per case at most, instead of {samples}"),
            "iterations": Parameter(
                None, positive, "iterations per sample, instead of as many as the clock needs"
            ),
            "delay_us": Parameter(None, real, "wait this long in every operation: a known answer"),
            "delay_share": Parameter(None, real, "wait this share of the operation's own time"),
        }
    return parameters


def _cases(kernel: str, request: Request) -> list[tuple[str, Case]]:
    return cases_of(kernel, request.parameters, request.ranks)


def _two_sizes(value: Any) -> list[int]:
    if len(found := sizes(value)) < 2:
        raise ValueError('name two sizes or more, such as ["8 B", "1 MiB"]')
    return found


def _connections(value: Any) -> list[int]:
    items = value if isinstance(value, list) else [value]
    found = [positive(item) for item in items]
    if not found or len(set(found)) != len(found) or max(found) > 64:
        raise ValueError("write numbers of connections from 1 to 64, each once, such as [1, 16]")
    return found


def _dims(value: Any) -> int:
    if value not in (2, 3) or isinstance(value, bool):
        raise ValueError("use 2 or 3")
    return int(value)


def command_line(kernel: str, libraries: bool, request: Request) -> Program:
    """Return the kernel's command line: every parameter that was set, and the ranks to refuse."""
    need_ranks(request, kernel, exactly=2 if kernel in _PAIR else 0, least=_LEAST.get(kernel, 2))
    argv = arguments(request)
    if not libraries:
        return Program(tuple(argv), kernel)
    number, functions, kind = (request.parameters[key] for key in ("count", "functions", "kind"))
    needs = ("python3",) if kind == "python" else ()
    return Program(tuple(argv), kernel, (number, functions, kind), needs=needs)


def arguments(request: Request) -> list[str]:
    """Return the arguments of a kernel: the ranks to refuse others, and what was set."""
    argv = ["--ranks", str(request.ranks)]
    for key, value in request.parameters.items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            argv += [f"--{key.replace('_', '-')}", text]
    return argv


BENCHMARKS = (
    native(
        "latency",
        layer="point to point",
        summary="half the round trip of a message between two ranks",
        metrics=(Metric("latency", "us", "lower", small_us=2.0),),
    ),
    native(
        "bandwidth",
        layer="point to point",
        summary="windows of 64 messages from rank 0 to rank 1",
        metrics=(_BANDWIDTH,),
    ),
    native(
        "bibandwidth",
        layer="point to point",
        summary="windows of 64 messages in both directions at once, summed",
        metrics=(_BANDWIDTH,),
    ),
    native(
        "message_rate",
        layer="point to point",
        summary="messages per second of all pairs of ranks at once, summed",
        metrics=(Metric("message_rate", "msg/s", "higher"),),
        bytes="8 B, 64 B, 512 B, 2 KiB, 8 KiB, 64 KiB",
    ),
    native(
        "pairs",
        layer="point to point",
        summary="latency and bandwidth of every pair of ranks, many pairs at once",
        metrics=(Metric("latency", "us", "lower", small_us=2.0), _BANDWIDTH),
        bytes="8 B, 1 MiB",
        samples=10,
        like=False,
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
        layer="network",
        summary="incast: many ranks send to one at once, beside two that exchange messages",
        metrics=(
            Metric("goodput", "Mbit/s", "higher"),
            Metric("flow", "Mbit/s", "higher", margin=0.05),
            Metric("fairness", "share", "higher"),
            Metric("loaded_latency", "us", "lower", margin=0.05),
            Metric("idle_latency", "us", "lower", margin=0.05),
        ),
        bytes="64 B, 4 KiB, 64 KiB",
        samples=10,
        like=False,
        intervals=True,
        ranks=6,
        extra={
            "connections": Parameter([1, 16], _connections, "of each sender, from 1 to 64"),
            "senders": Parameter(None, positive, "how many ranks send, instead of all but three"),
            "over": Parameter(
                "mpi", one_of("mpi", "sockets"), "MPI, or TCP connections of its own"
            ),
            "receiver": Parameter(
                None, address, "address of rank 0's host for the sockets, instead of its name"
            ),
        },
    ),
    native(
        "bcast", layer="collective", summary="a message from rank 0 to all", metrics=(_COLLECTIVE,)
    ),
    native(
        "allgather",
        layer="collective",
        summary="every rank's message to every rank",
        metrics=(_COLLECTIVE,),
    ),
    native(
        "allreduce",
        layer="collective",
        summary="the sum of a vector, at every rank",
        metrics=(_COLLECTIVE,),
    ),
    native(
        "alltoall",
        layer="collective",
        summary="a message from each rank to each rank",
        metrics=(_COLLECTIVE,),
    ),
    native(
        "alltoallv",
        layer="collective",
        summary="messages of uneven sizes from each rank to each rank",
        metrics=(_COLLECTIVE,),
        like=False,
        extra={"seed": Parameter(1, positive, "draws the sizes")},
    ),
    native(
        "barrier",
        layer="collective",
        summary="the time until the last rank may leave a barrier",
        metrics=(_COLLECTIVE,),
        bytes=None,
    ),
    native(
        "halo",
        layer="collective",
        summary="faces exchanged with all neighbours on a periodic grid of ranks",
        metrics=(_COLLECTIVE,),
        like=False,
        ranks=4,
        extra={"dims": Parameter(2, _dims, "dimensions of the grid: 2 or 3")},
    ),
    native(
        "ring",
        layer="collective",
        summary="windows of 64 messages from each rank to the next, all at once, per rank",
        metrics=(_BANDWIDTH,),
        like=False,
        ranks=4,
    ),
    native(
        "overlap",
        layer="collective",
        summary="how much of a non-blocking collective is not hidden behind computation",
        metrics=(
            Metric("exposed", "percent", "lower", margin=0.05),
            Metric("total", "us", "lower", margin=0.05),
            Metric("pure", "us", "lower", margin=0.05),
            Metric("compute", "us", "lower", margin=0.05),
        ),
        bytes="8 B, 512 B, 8 KiB, 64 KiB, 256 KiB, 1 MiB",
        like=False,
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
        layer="memory",
        summary="memory bandwidth of a[i] = b[i] + s * c[i], all ranks at once, summed",
        metrics=(Metric("bandwidth", "GB/s", "higher"),),
        bytes="64 MiB",
        like=False,
    ),
    native(
        "loader",
        layer="start-up",
        summary="opening many libraries, or importing many Python modules, from all ranks at once",
        metrics=(
            Metric("load", "ms", "lower", margin=0.05),
            Metric("first_call", "ms", "lower", margin=0.05),
            Metric("startup", "ms", "lower", margin=0.05),
        ),
        bytes=None,
        like=False,
        libraries=True,
        extra={
            "kind": Parameter(
                "libraries",
                one_of("libraries", "python"),
                "shared libraries, or modules that python3 imports",
            ),
            "count": Parameter(100, positive, "shared libraries to open, or modules to import"),
            "functions": Parameter(50, positive, "functions in each of them"),
        },
    ),
)
