"""Uniband of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import BANDWIDTH, imb

BENCHMARK = imb(
    "imb_uniband",
    "Uniband",
    layer="point to point",
    summary="IMB: windows of messages from each rank of one half to one of the other, summed",
    metrics=BANDWIDTH,
)
