"""The kernel CG of the NAS Parallel Benchmarks, where the site has it built."""

import re

from paribus.benchmarks._npb import npb
from paribus.benchmarks._tool import refuse

# By the size, for classes S to F (setparams.c): OpenMP and serial CG do not print them.
_NONZEROES = {
    1400: 7,
    7000: 8,
    14000: 11,
    75000: 13,
    150000: 15,
    1500000: 21,
    9000000: 26,
    54000000: 31,
}


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of operations of CG (cg.f, at the end of the main program)."""
    row = re.search(r"Number of nonzeroes per row: +(\d+)\s", text)
    nonzeroes = int(row[1]) if row else _NONZEROES.get(size[0], 0)
    if not nonzeroes:
        refuse("the number of nonzeroes per row is missing")
    filled = nonzeroes * (nonzeroes + 1)
    return 2e-6 * iterations * size[0] * (3 + filled + 25 * (5 + filled) + 3)


BENCHMARK = npb(
    "cg",
    "conjugate gradient: irregular memory access and messages",
    operations,
)
