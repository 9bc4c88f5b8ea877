"""The kernel CG of the NAS Parallel Benchmarks, where the site has it built."""

import re

from paribus.benchmarks._npb import npb
from paribus.benchmarks._tool import refuse


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of CG (cg.f, at the end of the main program)."""
    row = re.search(r"Number of nonzeroes per row: +(\d+)\s", text)
    if row is None:
        refuse("the number of nonzeroes per row is missing")
    filled = int(row[1]) * (int(row[1]) + 1)
    return 2e-6 * iterations * size[0] * (3 + filled + 25 * (5 + filled) + 3)


BENCHMARK = npb(
    "cg",
    "conjugate gradient: irregular memory access and messages",
    operations,
)
