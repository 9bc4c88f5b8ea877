"""alltoall: a message from each rank to each rank (docs/kernels.md)."""

from paribus.benchmarks._native import COLLECTIVE, native

BENCHMARK = native(
    "alltoall",
    layer="collective",
    summary="a message from each rank to each rank",
    metrics=(COLLECTIVE,),
)
