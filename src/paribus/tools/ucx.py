"""ucx_perftest as benchmarks: client and server, whose outputs are both read."""

from __future__ import annotations

from paribus.benchmarks.parameters import one_of, positive, sizes
from paribus.benchmarks.tool import options, path_or, tool
from paribus.core import Benchmark, Metric, Parameter, Program, Request
from paribus.tools.readers.ucx import KINDS, READERS, TESTS

# The server writes what it says when it ends, which is after the client: the client waits for it.
_SERVER = '"$@" >"$0.begun" 2>&1; mv "$0.begun" "$0"'
_CLIENT = """\
"$@" || exit
tries=0
until [ -e "$0" ] || [ "$tries" -eq 200 ]; do
  tries=$((tries + 1))
  sleep 0.05
done
"""


def command(request: Request) -> Program:
    """Return client and server; the server prints into a file that is read as well."""
    asked, program = request.parameters, path_or(request, "ucx_perftest")
    argv = [program, "{server}", "-p", "{port}", "-t", asked["test"], "-s", str(asked["bytes"][0])]
    argv += [*options(request, {"iterations": "-n", "warmup": "-w"}), "-f"]
    return Program(
        ("/bin/sh", "-c", _CLIENT, "{scratch}/ucx.txt", *argv),
        mpi=False,
        server=("/bin/sh", "-c", _SERVER, "{scratch}/ucx.txt", program, "-p", "{port}"),
        outputs=("ucx.txt*",),
        needs=(program,),
    )


def one_size(value: object) -> list[int]:
    """Return one message size in bytes, as a list."""
    found = sizes(value)
    if len(found) != 1:
        raise ValueError('ucx_perftest measures one size in a launch: write "8 B"')
    return found


def ucx(name: str, summary: str, metrics: tuple[Metric, ...], size: int) -> Benchmark:
    """Return the benchmark `name`, with a message of `size` bytes."""
    kind = KINDS[name]
    tests = tuple(test for test in TESTS if test.endswith("_lat") == (kind == "latency"))
    return tool(
        READERS[name],
        layer="network",
        summary=summary,
        metrics=metrics,
        command=command,
        parameters={
            "bytes": Parameter([size], one_size, "-s: bytes of a message"),
            "test": Parameter(tests[0], one_of(*tests), "-t"),
            "iterations": Parameter(100_000, positive, "-n: messages that count"),
            "warmup": Parameter(10_000, positive, "-w: messages before that"),
        },
        echoed=("test",),
        ranks=1,
        program="ucx_perftest",
        get="Debian, Ubuntu, Fedora: ucx-utils or ucx; https://github.com/openucx/ucx",
    )


BENCHMARKS = (
    ucx(
        "ucx_perftest",
        "UCX: half the round trip of a message, mean over messages, by UCX_TLS's transport",
        (
            Metric("latency", "us", "lower", small_us=2.0),
            Metric("latency_median", "us", "lower", small_us=2.0),
        ),
        size=8,
    ),
    ucx(
        "ucx_perftest_bw",
        "UCX: bandwidth of messages in flight together, by UCX_TLS's transport",
        (Metric("bandwidth", "MiB/s", "higher"), Metric("message_rate", "msg/s", "higher")),
        size=65536,
    ),
)
