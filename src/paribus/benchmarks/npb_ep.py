"""The kernel EP of the NAS Parallel Benchmarks, where the site has it built."""

from paribus.benchmarks._npb import npb


def operations(size: tuple[int, ...], iterations: int, text: str) -> float:
    """Millions of random numbers of EP (ep.f, at the end of the main program)."""
    return 1e-6 * size[0]


BENCHMARK = npb(
    "ep",
    "random numbers: floating point without messages",
    operations,
)
