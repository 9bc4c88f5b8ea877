"""Bcast of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import COLLECTIVE, imb

BENCHMARK = imb(
    "imb_bcast",
    "Bcast",
    layer="collective",
    summary="IMB: a message from one rank to all, the root changing",
    metrics=COLLECTIVE,
)
