"""GPUs: memory, arithmetic, copies and sums, by kernels of ours for CUDA and HIP."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.own import arguments, native
from paribus.benchmarks.parameters import need_ranks, positive, sizes
from paribus.model import Benchmark, Metric, Parameter, Program, Request

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
) -> Benchmark:
    """Return a benchmark of GPUs: one process uses `gpus` of them, each alone or all together.

    `wanted`: the sizes, and what they are of.
    """
    usual, of = wanted
    said = "how many are measured, each alone" if gpus == 1 else "how many take part"
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
            "bytes": Parameter(
                sizes(usual.split(", ")), partial(sizes, most=_MOST), f"bytes of {of}: a list"
            ),
            "gpus": Parameter(gpus, positive if gpus == 1 else _several, said),
        },
        ranks=1,
        command=partial(_command, kernel),
    )


def _several(value: object) -> int:
    found = positive(value)
    if found < 2:
        raise ValueError("use 2 or more")
    return found


_BANDWIDTH = Metric("bandwidth", "GB/s", "higher")

BENCHMARKS = (
    _gpu(
        "gpu_stream",
        "memory bandwidth of a GPU: copy, scale, add, triad, dot of doubles",
        (_BANDWIDTH,),
        ("1 GiB", "one of three arrays"),
    ),
    _gpu(
        "gpu_roofline",
        "operations per second of a GPU at intensities from 1/16 to 64 operations per byte",
        (Metric("performance", "Gop/s", "higher"),),
        ("1 GiB", "one array"),
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
