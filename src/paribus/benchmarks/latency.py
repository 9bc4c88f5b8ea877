"""latency: half the round trip of a message between two ranks (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.model import Metric

BENCHMARK = native(
    "latency",
    layer="point to point",
    summary="half the round trip of a message between two ranks",
    metrics=(Metric("latency", "us", "lower", small_us=2.0),),
)
