"""bibandwidth: windows of 64 messages in both directions at once (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.model import Metric

BENCHMARK = native(
    "bibandwidth",
    layer="point to point",
    summary="windows of 64 messages in both directions at once, summed",
    metrics=(Metric("bandwidth", "MB/s", "higher"),),
)
