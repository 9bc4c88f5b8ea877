"""allreduce: the sum of a vector, at every rank (docs/kernels.md)."""

from paribus.benchmarks._native import COLLECTIVE, native

BENCHMARK = native(
    "allreduce",
    layer="collective",
    summary="the sum of a vector, at every rank",
    metrics=(COLLECTIVE,),
)
