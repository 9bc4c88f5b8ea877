"""The kernel MG of the NAS Parallel Benchmarks, where the site has it built."""

import math

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of MG (mg.f, at the end of the main program)."""
    return 58e-6 * iterations * math.prod(size)


BENCHMARK = npb(
    "mg",
    "multigrid on a sequence of meshes: memory and long- and short-distance messages",
    operations,
)
