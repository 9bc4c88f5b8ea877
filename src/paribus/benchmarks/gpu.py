"""GPUs: memory, arithmetic, copies and sums, by kernels of ours for CUDA and HIP."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.own import arguments, native
from paribus.benchmarks.parameters import need_ranks, one_of, positive, sizes
from paribus.core import Benchmark, Metric, Parameter, Program, Request

PROGRAM = "gpu"
"""The kernel that holds them all."""

_MOST = 1 << 40
"""Bytes of an array: no MPI carries these, and no card has as many; the kernel asks the card."""


def _command(kernel: str, request: Request) -> Program:
    need_ranks(request, kernel, exactly=1)
    return Program((kernel, *arguments(request)), PROGRAM)


def _gpu(
    kernel: str,
    summary: str,
    metrics: tuple[Metric, ...],
    wanted: tuple[str, str],
    *,
    gpus: int = 1,
    arrays: int = 0,
    **extra: Parameter,
) -> Benchmark:
    """Return a benchmark of GPUs: one process uses `gpus` of them, each alone or all together.

    `wanted`: the sizes, and what they are of; `arrays`: as a Benchmark has them; `extra`: more
    parameters.
    """
    usual, of = wanted
    said = "how many are measured, each alone" if gpus == 1 else "how many take part"
    default, told = sizes(usual.split(", ")), f"bytes of {of}: a list"
    if arrays:
        told += f", instead of {usual}, or of what fits in half of the smallest card's memory"
    return native(
        kernel,
        layer="gpu",
        summary=summary,
        metrics=metrics,
        bytes=usual,
        samples=20,
        like=False,
        intervals=True,
        extra={
            "bytes": Parameter(None if arrays else default, partial(sizes, most=_MOST), told),
            "gpus": Parameter(gpus, positive if gpus == 1 else _several, said),
            **extra,
        },
        ranks=1,
        arrays=arrays,
        command=partial(_command, kernel),
    )


def _several(value: object) -> int:
    found = positive(value)
    if found < 2:
        raise ValueError("use 2 or more")
    return found


def _multiples(value: object) -> list[int]:
    found = [positive(one) for one in (value if isinstance(value, list) else [value])]
    if not found or len(set(found)) < len(found) or any(one % 16 for one in found):
        raise ValueError("use multiples of 16, each once, such as [1024, 8192]")
    return found


def _rows(value: object) -> int:
    return 0 if value == 0 else _multiples(value)[0]


def _seconds(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 600:
        raise ValueError("use a whole number from 0 to 600")
    return value


_BANDWIDTH = Metric("bandwidth", "GB/s", "higher")
_TYPES = ("bf16", "fp16", "tf32", "fp8", "double", "int8")
_ROOFS = ("float", "double", "int", "half", "bfloat16")
_PERFORMANCE = Metric("performance", "Gop/s", "higher")

BENCHMARKS = (
    _gpu(
        "gpu_stream",
        "memory bandwidth of a GPU: copy, scale, add, triad, dot of doubles",
        (_BANDWIDTH,),
        ("1 GiB", "one of three arrays"),
        arrays=3,
    ),
    _gpu(
        "gpu_roofline",
        "operations per second of a GPU at intensities from 1/16 to 64 operations per byte",
        (_PERFORMANCE,),
        ("1 GiB", "one array"),
        arrays=1,
        type=Parameter(
            "usual", one_of("usual", *_ROOFS), f"usual (without bfloat16), {', '.join(_ROOFS)}"
        ),
    ),
    native(
        "gpu_gemm",
        layer="gpu",
        summary="matrix products by a GPU's matrix units (cuBLASLt), at first and under load",
        metrics=(
            _PERFORMANCE,
            Metric("first", "Gop/s", "higher"),
            Metric("sustained", "Gop/s", "higher"),
        ),
        bytes=None,
        samples=20,
        like=False,
        intervals=True,
        extra={
            "type": Parameter("bf16", one_of(*_TYPES), f"of the factors: {', '.join(_TYPES)}"),
            "size": Parameter([1024, 4096, 8192], _multiples, "columns of both factors: a list"),
            "rows": Parameter(0, _rows, "of the first factor; 0: as many as columns"),
            "load_s": Parameter(10, _seconds, "seconds of load before `sustained`; 0: none"),
            "gpus": Parameter(1, positive, "how many are measured, each alone"),
        },
        ranks=1,
        command=partial(_command, "gpu_gemm"),
    ),
    native(
        "gpu_latency",
        layer="gpu",
        summary="the launch of a GPU's smallest work: one that is waited for, and one of many",
        metrics=(
            Metric("time", "us", "lower", margin=0.05),
            Metric("issue", "us", "lower", margin=0.05),
        ),
        bytes=None,
        samples=20,
        like=False,
        intervals=True,
        extra={"gpus": Parameter(1, positive, "how many are measured, each alone")},
        ranks=1,
        command=partial(_command, "gpu_latency"),
    ),
    _gpu(
        "gpu_copy",
        "copies between host and GPU, both ways, from pinned and from pageable memory",
        (_BANDWIDTH, Metric("time", "us", "lower", margin=0.05)),
        ("8 B, 4 KiB, 64 KiB, 1 MiB, 64 MiB", "a copy"),
    ),
    _gpu(
        "gpu_peer",
        "copies between GPUs: each pair, both ways, and all pairs at once",
        (_BANDWIDTH, Metric("latency", "us", "lower", margin=0.05)),
        ("8 B, 64 MiB", "a copy"),
        gpus=2,
    ),
    _gpu(
        "gpu_allreduce",
        "the sum of a vector over the GPUs of a node, by NCCL or RCCL",
        (
            Metric("bus_bandwidth", "GB/s", "higher"),
            Metric("time", "us", "lower", margin=0.05),
        ),
        ("1 KiB, 64 KiB, 1 MiB, 128 MiB", "the vector"),
        gpus=2,
    ),
)
