"""The kernel IS of the NAS Parallel Benchmarks, where the site has it built."""

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of keys that IS ranks (is.c, at the end of the main program)."""
    return 1e-6 * iterations * size[0]


BENCHMARK = npb(
    "is",
    "sort of integer keys: random memory access and all-to-all messages",
    operations,
)
