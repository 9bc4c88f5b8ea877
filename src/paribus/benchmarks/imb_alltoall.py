"""Alltoall of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import COLLECTIVE, imb

BENCHMARK = imb(
    "imb_alltoall",
    "Alltoall",
    layer="collective",
    summary="IMB: a message from each rank to each rank",
    metrics=COLLECTIVE,
)
