"""ucx_perftest: latency of a message through UCX."""

from functools import partial

from paribus.benchmarks import _ucx
from paribus.benchmarks._parameters import one_of
from paribus.benchmarks._tool import tool
from paribus.model import Metric, Parameter

_TESTS = tuple(name for name in _ucx.TESTS if name.endswith("_lat"))

BENCHMARK = tool(
    "ucx_perftest",
    layer="network",
    summary="UCX: half the round trip of a message, mean over messages, by UCX_TLS's transport",
    metrics=(
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("latency_median", "us", "lower", small_us=2.0),
    ),
    reader=partial(_ucx.read, "latency", "ucx_perftest"),
    marks=_ucx.marks("latency"),
    command=_ucx.command,
    parameters={
        "bytes": Parameter([8], _ucx.one_size, "-s: bytes of a message"),
        "test": Parameter("tag_lat", one_of(*_TESTS), "-t"),
        **_ucx.PARAMETERS,
    },
    ranks=1,
    program="ucx_perftest",
    get=_ucx.GET,
    versions=_ucx.VERSIONS,
    proof=_ucx.PROOF,
    means=_ucx.MEANS,
)
