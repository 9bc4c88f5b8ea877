"""sockperf: latency of a socket, with the percentiles of every message."""

from __future__ import annotations

from paribus.benchmarks.parameters import one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.sockperf import READER

# sockperf 3.7 takes addresses, but no names of hosts.
_CLIENT = """\
address=$(getent ahostsv4 "$1" | sed 's/ .*//; q')
name=$1
shift
exec "$0" ping-pong -i "${address:-$name}" "$@"
"""


def command(request: Request) -> Program:
    """Return client and server of a ping-pong."""
    asked, sockperf = request.parameters, path_or(request, "sockperf")
    tcp = ["--tcp"] if asked["protocol"] == "TCP" else []
    argv = ["/bin/sh", "-c", _CLIENT, sockperf, "{server}", "-p", "{port}", *tcp]
    argv += options(request, {"message": "-m", "seconds": "-t"})
    return Program(tuple(argv), mpi=False, server=(sockperf, "server", "-p", "{port}", *tcp))


BENCHMARK = tool(
    READER,
    layer="network",
    summary="sockperf: half the round trip of a message, with percentiles over all messages",
    metrics=(
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("latency_mean", "us", "lower"),
        Metric("latency_p99", "us", "lower", margin=0.1),
    ),
    command=command,
    parameters={
        "protocol": Parameter("TCP", one_of("TCP", "UDP"), "--tcp, or UDP"),
        "message": Parameter(64, positive, "-m: bytes of a message, 14 at least"),
        "seconds": Parameter(2, positive, "-t: how long, in whole seconds"),
    },
    ranks=1,
    program="sockperf",
    get="Debian, Ubuntu: sockperf; https://github.com/Mellanox/sockperf",
)
