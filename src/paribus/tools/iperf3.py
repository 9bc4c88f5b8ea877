"""iperf3: TCP or UDP throughput between two hosts."""

from __future__ import annotations

from paribus.benchmarks.parameters import between, one_of, positive
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.iperf3 import READER


def command(request: Request) -> Program:
    """Return client and server; the server ends after one client."""
    asked = request.parameters
    argv = [path_or(request, "iperf3"), "-c", "{server}", "-p", "{port}", "-J"]
    argv += options(request, {"seconds": "-t", "streams": "-P"})
    argv += {"forward": [], "reverse": ["-R"], "both": ["--bidir"]}[asked["direction"]]
    if asked["omit"]:
        argv += ["-O", str(asked["omit"])]
    if asked["protocol"] == "UDP":
        argv += ["-u", "-b", str(asked["rate"])]
    server = (path_or(request, "iperf3"), "-s", "-1", "-p", "{port}")
    # From 3.16 on every stream has a thread of its own.
    threads = 0 if asked["streams"] > 1 else None
    return Program(tuple(argv), mpi=False, server=server, threads=threads)


_bits = between(1, 10**13 - 1, "write bits per second and stream, such as 1_000_000_000")
_seconds = between(0, 60, "use whole seconds, 0 to 60")

BENCHMARK = tool(
    READER,
    layer="network",
    summary="iperf3: throughput of TCP or UDP, as the receiver counts it, all streams together",
    metrics=(Metric("throughput", "Mbit/s", "higher"),),
    command=command,
    parameters={
        "seconds": Parameter(10, positive, "-t: how long, in whole seconds"),
        "streams": Parameter(1, positive, "-P: connections at once"),
        "direction": Parameter("forward", one_of("forward", "reverse", "both"), "-R, --bidir"),
        "protocol": Parameter("TCP", one_of("TCP", "UDP"), "UDP: -u"),
        "rate": Parameter(10**9, _bits, "-b: bits/s of each UDP stream", needs=("protocol", "UDP")),
        "omit": Parameter(0, _seconds, "-O: seconds at the beginning that do not count"),
    },
    ranks=1,
    program="iperf3",
    get="Debian, Ubuntu, Fedora: iperf3; https://software.es.net/iperf",
)
