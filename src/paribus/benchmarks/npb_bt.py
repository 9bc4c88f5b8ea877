"""The kernel BT of the NAS Parallel Benchmarks, where the site has it built."""

import math

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of BT (bt.f, at the end of the main program)."""
    average = sum(size) / 3
    each = 3478.8 * math.prod(size) - 17655.7 * average**2 + 28023.7 * average
    return 1e-6 * iterations * each


BENCHMARK = npb(
    "bt",
    "block-tridiagonal solver, pseudo-application; a square number of ranks",
    operations,
)
