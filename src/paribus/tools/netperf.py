"""netperf as benchmarks: streams of TCP or UDP, and requests with their responses."""

from __future__ import annotations

from paribus.benchmarks.parameters import matching, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.netperf import READERS

_GET = "Debian, Ubuntu: netperf (non-free); https://github.com/HewlettPackard/netperf"
_SECONDS = Parameter(10, positive, "-l: how long, in whole seconds")
_KEYS = (
    "THROUGHPUT,THROUGHPUT_UNITS,PROTOCOL,DIRECTION,ELAPSED_TIME,LOCAL_SEND_SIZE,REMOTE_SEND_SIZE,"
    "REQUEST_SIZE,RESPONSE_SIZE,TRANSACTION_RATE,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,"
    "LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,LOCAL_TRANSPORT_RETRANS"
)


def command(request: Request) -> Program:
    """Return netperf's command line and the netserver that it talks to."""
    argv = [path_or(request, "netperf"), "-H", "{server}", "-p", "{port}"]
    argv += [*options(request, {"seconds": "-l", "test": "-t"}), "--", "-k", _KEYS]
    argv += options(request, {"message": "-m", "sizes": "-r"})
    server = argv[0].removesuffix("netperf") + "netserver"
    return Program(tuple(argv), mpi=False, server=(server, "-D", "-p", "{port}"))


_sizes = matching(
    r"[1-9]\d{0,8},[1-9]\d{0,8}", 'write bytes of request and response, such as "1,1"'
)

BENCHMARKS = (
    tool(
        READERS["netperf"],
        layer="network",
        summary="netperf: bulk throughput of TCP or UDP, as the receiver counts it",
        metrics=(Metric("throughput", "Mbit/s", "higher"),),
        command=command,
        parameters={
            "seconds": _SECONDS,
            "test": Parameter("TCP_STREAM", one_of("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM"), "-t"),
            "message": Parameter(None, positive, "-m: bytes of each send, instead of its own"),
        },
        ranks=1,
        program="netperf",
        get=_GET,
    ),
    tool(
        READERS["netperf_rr"],
        layer="network",
        summary="netperf: requests and their responses, one at a time, over TCP or UDP",
        metrics=(
            Metric("transactions", "trans/s", "higher"),
            Metric("latency", "us", "lower"),
            Metric("latency_p99", "us", "lower", margin=0.1),
        ),
        command=command,
        optional=("latency", "latency_p99"),
        parameters={
            "seconds": _SECONDS,
            "test": Parameter("TCP_RR", one_of("TCP_RR", "UDP_RR"), "-t"),
            "sizes": Parameter("1,1", _sizes, "-r: bytes of request and response"),
        },
        ranks=1,
        program="netperf",
        get=_GET,
    ),
)
