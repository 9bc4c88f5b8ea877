"""The kernel SP of the NAS Parallel Benchmarks, where the site has it built."""

import math

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of SP (sp.f, at the end of the main program)."""
    average = sum(size) / 3
    each = 881.174 * math.prod(size) - 4683.91 * average**2 + 11484.5 * average - 19272.4
    return 1e-6 * iterations * each


BENCHMARK = npb(
    "sp",
    "scalar-pentadiagonal solver, pseudo-application; a square number of ranks",
    operations,
)
