"""barrier: the time until the last rank may leave it (docs/kernels.md)."""

from paribus.benchmarks._native import COLLECTIVE, native

BENCHMARK = native(
    "barrier",
    layer="collective",
    summary="the time until the last rank may leave a barrier",
    metrics=(COLLECTIVE,),
    bytes=None,
)
