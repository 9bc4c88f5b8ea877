"""qperf: latency and bandwidth of sockets or of RDMA, both in one launch."""

from __future__ import annotations

from paribus.benchmarks.parameters import one_of, positive
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.qperf import READER, TRANSPORTS


def command(request: Request) -> Program:
    """Return client and server; the client asks for the latency, then for the bandwidth."""
    asked, port = request.parameters, ("-lp", "{port}")
    qperf, transport = path_or(request, "qperf"), asked["transport"]
    argv = [qperf, "{server}", *port, "-t", str(asked["seconds"]), "-uu", "-e", "6", "-vu"]
    argv += ["-m", str(asked["latency_size"]), f"{transport}_lat"]
    argv += ["-m", str(asked["bandwidth_size"]), f"{transport}_bw", "conf"]
    return Program(tuple(argv), mpi=False, server=(qperf, *port))


def cases(request: Request) -> list[tuple[str, Case]]:
    """Return latency and bandwidth at the sizes asked for."""
    asked = request.parameters
    return [
        ("latency", Case.of(bytes=asked["latency_size"])),
        ("bandwidth", Case.of(bytes=asked["bandwidth_size"])),
    ]


BENCHMARK = tool(
    READER,
    layer="network",
    summary="qperf: one-way latency, and bandwidth at the receiver, of sockets or RDMA",
    metrics=(
        Metric("latency", "us", "lower", small_us=2.0),
        Metric("bandwidth", "MB/s", "higher"),
    ),
    command=command,
    cases=cases,
    parameters={
        "transport": Parameter("tcp", one_of(*TRANSPORTS), "what carries the messages"),
        "seconds": Parameter(2, positive, "-t: how long each of the two is measured"),
        "latency_size": Parameter(1, positive, "-m: bytes of a message for the latency"),
        "bandwidth_size": Parameter(65536, positive, "-m: bytes of a message for the bandwidth"),
    },
    ranks=1,
    program="qperf",
    get="Debian, Ubuntu, Fedora: qperf; https://github.com/linux-rdma/qperf",
)
