"""message_rate: messages per second of all pairs of ranks at once (docs/kernels.md)."""

from paribus.benchmarks._native import native
from paribus.model import Metric

BENCHMARK = native(
    "message_rate",
    layer="point to point",
    summary="messages per second of all pairs of ranks at once, summed",
    metrics=(Metric("message_rate", "msg/s", "higher"),),
    bytes="8 B, 64 B, 512 B, 2 KiB, 8 KiB, 64 KiB",
)
