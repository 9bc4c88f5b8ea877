"""bcast: a message from rank 0 to all (docs/kernels.md)."""

from paribus.benchmarks._native import COLLECTIVE, native

BENCHMARK = native(
    "bcast",
    layer="collective",
    summary="a message from rank 0 to all",
    metrics=(COLLECTIVE,),
)
