"""Barrier of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import COLLECTIVE, imb

BENCHMARK = imb(
    "imb_barrier",
    "Barrier",
    layer="collective",
    summary="IMB: a barrier",
    metrics=COLLECTIVE,
)
