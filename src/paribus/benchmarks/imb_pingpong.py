"""PingPong of IMB-MPI1, the Intel MPI Benchmarks."""

from paribus.benchmarks._imb import LATENCY, imb

BENCHMARK = imb(
    "imb_pingpong",
    "PingPong",
    layer="point to point",
    summary="IMB: half the round trip of a message between two ranks",
    metrics=LATENCY,
)
