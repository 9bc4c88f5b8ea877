"""What the kernels of GPUs measure: their metrics, and the cases that follow from arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from paribus.core import Case

UNITS = {
    "gpu_stream": {"bandwidth": "GB/s"},
    "gpu_roofline": {"performance": "Gop/s"},
    "gpu_gemm": {"performance": "Gop/s", "first": "Gop/s", "sustained": "Gop/s"},
    "gpu_copy": {"bandwidth": "GB/s", "time": "us"},
    "gpu_peer": {"bandwidth": "GB/s", "latency": "us"},
    "gpu_allreduce": {"bus_bandwidth": "GB/s", "time": "us"},
}
_POINTS: Mapping[str, Mapping[str, tuple[str | float, ...]]] = {
    "gpu_stream": {"op": ("copy", "scale", "add", "triad", "dot")},
    "gpu_roofline": {
        "type": ("float", "double", "int"),
        "intensity": tuple(2.0**power for power in range(-4, 7)),
    },
    "gpu_copy": {"memory": ("pinned", "pageable"), "way": ("to", "from")},
}
"""What is measured of each GPU, at each size."""


def gpu_cases(kernel: str, arguments: Mapping[str, Any]) -> list[tuple[str, Case]]:
    """Return metric and case of everything that a kernel of GPUs measures with these arguments."""
    gpus = int(arguments["gpus"])
    if kernel == "gpu_gemm":
        return list(_products(gpus, arguments))
    sizes = arguments["bytes"]
    if kernel == "gpu_peer":
        return [found for size in sizes for found in _peers(gpus, size)]
    if kernel == "gpu_allreduce":
        cases = [Case.of(gpus=gpus, bytes=size) for size in sizes]
    else:
        names, values = zip(*_POINTS[kernel].items(), strict=True)
        cases = [
            Case.of(gpu=gpu, **dict(zip(names, point, strict=True)), bytes=size)
            for gpu in range(gpus)
            for point in product(*values)
            for size in sizes
        ]
    return [(metric, case) for metric in UNITS[kernel] for case in cases]


def _products(gpus: int, arguments: Mapping[str, Any]) -> Iterable[tuple[str, Case]]:
    """Yield each shape of each GPU; of the largest also the first figure and that under load."""
    sizes = sorted(map(int, arguments["size"]))
    rows, load_s = int(arguments["rows"]), int(arguments["load_s"])
    for gpu in range(gpus):
        shapes = [(rows or size, size, size) for size in sizes]
        cases = [Case.of(gpu=gpu, type=arguments["type"], m=m, n=n, k=k) for m, n, k in shapes]
        yield from (("performance", case) for case in cases)
        if load_s:
            yield from ((metric, cases[-1]) for metric in ("first", "sustained"))


def _peers(gpus: int, size: int) -> Iterable[tuple[str, Case]]:
    """Yield each pair one way with its latency, each both ways, and all at once."""
    for a, b in product(range(gpus), repeat=2):
        if a == b:
            continue
        pair = (("from", a), ("to", b))
        yield "latency", Case((*pair, ("way", "one"), ("bytes", size)))
        yield "bandwidth", Case((*pair, ("way", "one"), ("bytes", size)))
        if a < b:
            yield "bandwidth", Case((*pair, ("way", "both"), ("bytes", size)))
    yield "bandwidth", Case.of(way="all", bytes=size)
