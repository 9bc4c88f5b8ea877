"""ucx_perftest: bandwidth of many messages in flight through UCX."""

from functools import partial

from paribus.benchmarks import _ucx
from paribus.benchmarks._parameters import one_of
from paribus.benchmarks._tool import tool
from paribus.model import Metric, Parameter

_TESTS = tuple(name for name in _ucx.TESTS if name.endswith("_bw"))

BENCHMARK = tool(
    "ucx_perftest_bw",
    layer="network",
    summary="UCX: bandwidth of messages in flight together, by UCX_TLS's transport",
    metrics=(
        Metric("bandwidth", "MiB/s", "higher"),
        Metric("message_rate", "msg/s", "higher"),
    ),
    reader=partial(_ucx.read, "overhead", "ucx_perftest_bw"),
    marks=_ucx.marks("overhead"),
    command=_ucx.command,
    parameters={
        "bytes": Parameter([65536], _ucx.one_size, "-s: bytes of a message"),
        "test": Parameter("tag_bw", one_of(*_TESTS), "-t"),
        **_ucx.PARAMETERS,
    },
    ranks=1,
    program="ucx_perftest",
    get=_ucx.GET,
    versions=_ucx.VERSIONS,
    proof=_ucx.PROOF,
    means=_ucx.MEANS,
)
