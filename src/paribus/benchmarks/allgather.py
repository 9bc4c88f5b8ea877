"""allgather: every rank's message to every rank (docs/kernels.md)."""

from paribus.benchmarks._native import COLLECTIVE, native

BENCHMARK = native(
    "allgather",
    layer="collective",
    summary="every rank's message to every rank",
    metrics=(COLLECTIVE,),
)
