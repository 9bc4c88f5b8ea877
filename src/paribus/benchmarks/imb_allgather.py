"""Allgather of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import COLLECTIVE, imb

BENCHMARK = imb(
    "imb_allgather",
    "Allgather",
    layer="collective",
    summary="IMB: every rank's message to every rank",
    metrics=COLLECTIVE,
)
