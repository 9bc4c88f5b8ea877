"""bandwidth: windows of 64 messages from rank 0 to rank 1 (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.model import Metric

BENCHMARK = native(
    "bandwidth",
    layer="point to point",
    summary="windows of 64 messages from rank 0 to rank 1",
    metrics=(Metric("bandwidth", "MB/s", "higher"),),
)
