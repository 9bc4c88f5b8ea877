"""perftest's programs (ib_write_bw and its kin) as benchmarks: command line and metrics."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.parameters import between, flag, matching, one_of, positive, sizes
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Benchmark, Metric, Parameter, Program, Request
from paribus.tools.readers.perftest import PROGRAMS, READERS

GET = "Debian, Ubuntu, Fedora: perftest; https://github.com/linux-rdma/perftest"
# perftest says in three vague lines that there is no device. Ours comes last, and is quoted.
_SERVER = """\
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] && exec "$@"
"$@"
echo "error: no RDMA device on this host: perftest needs one on both sides" >&2
exit 1
"""
_ALL = [1 << n for n in range(1, 24)]


def perftest(program: str, summary: str) -> Benchmark:
    """Return the benchmark of one program."""
    _, kind = PROGRAMS[program]
    parameters = {
        "bytes": Parameter([65536] if kind == "bw" else [2], _sizes, '-s, or -a for "2 B : 8 MiB"'),
        "iterations": Parameter(None, positive, "-n, instead of the program's own"),
        "connection": Parameter("RC", one_of("RC", "UC", "UD"), "-c"),
        "device": Parameter(None, device, "-d: the RDMA device on both sides, such as mlx5_0"),
        **OF_DEVICE,
    }
    if kind == "bw":
        parameters["queue_pairs"] = Parameter(1, positive, "-q: queue pairs at once")
        parameters["bidirectional"] = Parameter(False, flag, "-b: both directions, summed")
        metrics = (
            Metric("bandwidth", "MiB/s", "higher"),
            Metric("message_rate", "Mmsg/s", "higher"),
        )
    else:
        metrics = (
            Metric("latency", "us", "lower", small_us=2.0),
            Metric("latency_p99", "us", "lower", margin=0.1),
        )
    return tool(
        READERS[program],
        layer="network",
        summary=summary,
        metrics=metrics,
        command=partial(command, program),
        parameters=parameters,
        optional=("latency_p99",) if kind == "lat" else (),
        ranks=1,
        program=program,
        get=GET,
    )


def command(program: str, request: Request) -> Program:
    """Return client and server, both with the same options."""
    asked = request.parameters
    argv = [path_or(request, program), "-F", "-p", "{port}", "-c", asked["connection"]]
    argv += ["-a"] if asked["bytes"] == _ALL else ["-s", str(asked["bytes"][0])]
    named = {"iterations": "-n", **DEVICE, "queue_pairs": "-q", "bidirectional": "-b"}
    argv += options(request, named)
    server = ("/bin/sh", "-c", _SERVER, "perftest", *argv)
    return Program((*argv, "{server}"), mpi=False, server=server)


device = matching(r"[\w.:-]+", 'write the device in quotes, such as "mlx5_0"')
"""The reader of the name of an RDMA device."""

gid_index = between(0, 255)
"""The reader of the index of a GID."""

DEVICE = {"device": "-d", "port": "-i", "gid_index": "-x"}
"""The options that say which RDMA device is used."""

OF_DEVICE = {
    "port": Parameter(None, positive, "-i: the port of that device"),
    "gid_index": Parameter(None, gid_index, "-x: which GID, for RoCE"),
}


def _sizes(value: object) -> list[int]:
    """Return one message size in bytes, or all that -a measures; raises ValueError for others."""
    found = sizes(value)
    if len(found) != 1 and found != _ALL:
        raise ValueError('perftest measures one size, or all of them: write "2 B : 8 MiB"')
    return found


BENCHMARKS = (
    perftest("ib_write_bw", "perftest: bandwidth of RDMA writes"),
    perftest("ib_write_lat", "perftest: latency of RDMA writes"),
    perftest("ib_send_bw", "perftest: bandwidth of sends and receives"),
    perftest("ib_send_lat", "perftest: latency of sends and receives"),
    perftest("ib_read_bw", "perftest: bandwidth of RDMA reads"),
    perftest("ib_read_lat", "perftest: latency of RDMA reads, the whole round trip"),
)
