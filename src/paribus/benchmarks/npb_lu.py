"""The kernel LU of the NAS Parallel Benchmarks, where the site has it built."""

import math

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of LU (lu.f, at the end of the main program)."""
    average = sum(size) / 3
    each = 1984.77 * math.prod(size) - 10923.3 * average**2 + 27770.9 * average - 144010.0
    return 1e-6 * iterations * each


BENCHMARK = npb(
    "lu",
    "lower-upper Gauss-Seidel solver, pseudo-application",
    operations,
)
