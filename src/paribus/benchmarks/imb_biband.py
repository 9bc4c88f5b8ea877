"""Biband of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import BANDWIDTH, imb

BENCHMARK = imb(
    "imb_biband",
    "Biband",
    layer="point to point",
    summary="IMB: windows of messages in both directions at once, summed",
    metrics=BANDWIDTH,
)
