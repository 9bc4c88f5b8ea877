"""The kernel FT of the NAS Parallel Benchmarks, where the site has it built."""

import math

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of FT (ft.f, at the end of the main program)."""
    points = math.prod(size)
    log = math.log(points)
    return 1e-6 * points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * iterations)


BENCHMARK = npb(
    "ft",
    "three-dimensional Fourier transform: all-to-all messages",
    operations,
)
