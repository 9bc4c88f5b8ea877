"""GPUs: memory, arithmetic, copies and sums, by kernels of ours for CUDA and HIP."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.own import arguments, native
from paribus.benchmarks.parameters import between, need_ranks, one_of, positive, several, sizes
from paribus.core import Benchmark, Metric, Parameter, Program, Request

PROGRAM = "gpu"
"""The kernel that has them all."""

_MOST = 1 << 40
"""The most bytes of an array: more than any card has; MPI, with its lower limit, is not used."""


def _command(kernel: str, request: Request) -> Program:
    need_ranks(request, kernel, exactly=1)
    return Program((kernel, *arguments(request)), PROGRAM)


def _gpu(
    kernel: str,
    summary: str,
    *metrics: Metric,
    usual: str = "",
    of: str = "",
    gpus: int = 1,
    arrays: int = 0,
    **extra: Parameter,
) -> Benchmark:
    """Return a benchmark of GPUs, in which one process uses `gpus` of them.

    `usual` are the sizes of `of`, `arrays` those of Benchmark, and `extra` more parameters.
    """
    sized: dict[str, Parameter] = {}
    if usual:
        default, meaning = sizes(usual.split(", ")), f"bytes of {of}: a list"
        if arrays:
            meaning += (
                f", instead of {usual}, or of what fits in half of the smallest card's memory"
            )
        sized["bytes"] = Parameter(None if arrays else default, partial(sizes, most=_MOST), meaning)
    help_text = "how many are measured, each alone" if gpus == 1 else "how many take part"
    count = Parameter(gpus, positive if gpus == 1 else _several, help_text)
    return native(
        kernel,
        summary,
        *metrics,
        layer="gpu",
        bytes=usual,
        samples=20,
        intervals=True,
        extra={**sized, "gpus": count, **extra},
        ranks=1,
        arrays=arrays,
        command=partial(_command, kernel),
    )


_several = between(2, 2**31 - 1, "use a whole number of 2 or more")


def _multiples(value: object) -> list[int]:
    fix = "use multiples of 16, each once, such as [1024, 8192]"
    return several(value, fix, lambda number: number % 16 == 0)


def _rows(value: object) -> int:
    return 0 if value == 0 else _multiples(value)[0]


_BANDWIDTH = Metric("bandwidth", "GB/s", "higher")
_TYPES = ("bf16", "fp16", "tf32", "fp8", "double", "int8")
_ROOFS = ("float", "double", "int", "half", "bfloat16")
_PERFORMANCE = Metric("performance", "Gop/s", "higher")

BENCHMARKS = (
    _gpu(
        "gpu_stream",
        "memory bandwidth of a GPU: copy, scale, add, triad, dot of doubles",
        _BANDWIDTH,
        usual="1 GiB",
        of="one of three arrays",
        arrays=3,
    ),
    _gpu(
        "gpu_roofline",
        "operations per second of a GPU at intensities from 1/16 to 64 operations per byte",
        _PERFORMANCE,
        usual="1 GiB",
        of="one array",
        arrays=1,
        type=Parameter(
            "usual", one_of("usual", *_ROOFS), f"usual (without bfloat16), {', '.join(_ROOFS)}"
        ),
    ),
    _gpu(
        "gpu_gemm",
        "matrix products by a GPU's matrix units (cuBLASLt), at first and under load",
        *(Metric(name, "Gop/s", "higher") for name in ("performance", "first", "sustained")),
        type=Parameter("bf16", one_of(*_TYPES), f"of the factors: {', '.join(_TYPES)}"),
        size=Parameter([1024, 4096, 8192], _multiples, "columns of both factors: a list"),
        rows=Parameter(0, _rows, "of the first factor; 0: as many as columns"),
        load_s=Parameter(10, between(0, 600), "seconds of load before `sustained`; 0: none"),
    ),
    _gpu(
        "gpu_latency",
        "the launch of a GPU's smallest work: one that is waited for, and one of many",
        *(Metric(name, "us", "lower", margin=0.05) for name in ("time", "issue")),
    ),
    _gpu(
        "gpu_copy",
        "copies between host and GPU, both ways, from pinned and from pageable memory",
        *(_BANDWIDTH, Metric("time", "us", "lower", margin=0.05)),
        usual="8 B, 4 KiB, 64 KiB, 1 MiB, 64 MiB",
        of="a copy",
    ),
    _gpu(
        "gpu_peer",
        "copies between GPUs: each pair, both ways, and all pairs at once",
        *(_BANDWIDTH, Metric("latency", "us", "lower", margin=0.05)),
        usual="8 B, 64 MiB",
        of="a copy",
        gpus=2,
    ),
    _gpu(
        "gpu_allreduce",
        "the sum of a vector over the GPUs of a node, by NCCL or RCCL",
        Metric("bus_bandwidth", "GB/s", "higher"),
        Metric("time", "us", "lower", margin=0.05),
        usual="1 KiB, 64 KiB, 1 MiB, 128 MiB",
        of="the vector",
        gpus=2,
    ),
)
