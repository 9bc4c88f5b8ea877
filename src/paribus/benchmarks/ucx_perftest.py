"""ucx_perftest: latency of a message through UCX."""

from paribus.benchmarks._ucx import ucx
from paribus.model import Metric

BENCHMARK = ucx(
    "ucx_perftest",
    "latency",
    "UCX: half the round trip of a message, mean over messages, by UCX_TLS's transport",
    (
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("latency_median", "us", "lower", small_us=2.0),
    ),
    size=8,
)
