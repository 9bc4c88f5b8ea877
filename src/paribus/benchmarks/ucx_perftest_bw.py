"""ucx_perftest: bandwidth of many messages in flight through UCX."""

from paribus.benchmarks._ucx import ucx
from paribus.model import Metric

BENCHMARK = ucx(
    "ucx_perftest_bw",
    "overhead",
    "UCX: bandwidth of messages in flight together, by UCX_TLS's transport",
    (Metric("bandwidth", "MiB/s", "higher"), Metric("message_rate", "msg/s", "higher")),
    size=65536,
)
