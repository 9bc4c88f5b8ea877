"""Allreduce of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import COLLECTIVE, imb

BENCHMARK = imb(
    "imb_allreduce",
    "Allreduce",
    layer="collective",
    summary="IMB: the sum of a vector at every rank",
    metrics=COLLECTIVE,
)
