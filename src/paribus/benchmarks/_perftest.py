"""perftest's programs (ib_write_bw and its kin) as benchmarks: command line, metrics, reader."""

from __future__ import annotations

import re
from functools import partial

from paribus.benchmarks._parameters import flag, one_of, positive, sizes
from paribus.benchmarks._perftest_json import of_json
from paribus.benchmarks._perftest_text import of_text
from paribus.benchmarks._tool import path_or, tool
from paribus.model import Benchmark, Metric, Parameter, Program, Reading, Request

GET = "Debian, Ubuntu, Fedora: perftest; https://github.com/linux-rdma/perftest"
VERSIONS = "4.4 to 26.04"
_PROOF = (
    "title, settings and heading once, every size asked for, queue pairs, connection and iterations"
    " as asked;"
)
_MEANS = {
    "bw": "MiB = 2^20, whatever the label says; the average over all iterations, never the peak",
    "lat": (
        "half the round trip (of a read the whole), median of the iterations; with -D there are"
        " means only, another statistic; t_stdev is cut to whole us and not used"
    ),
}
# perftest itself needs three vague lines to say that there is no device: ours comes last and is
# quoted.
_SERVER = """\
[ -n "$(ls /sys/class/infiniband 2>/dev/null)" ] && exec "$@"
"$@"
echo "error: no RDMA device on this host: perftest needs one on both sides" >&2
exit 1
"""
_ALL = [1 << n for n in range(1, 24)]


def perftest(program: str, verb: str, kind: str, summary: str) -> Benchmark:
    """Return the benchmark of one program: `verb` as in its title, `kind` "bw" or "lat"."""
    name = "BW" if kind == "bw" else "Latency"
    parameters = {
        "bytes": Parameter([65536] if kind == "bw" else [2], _sizes, '-s, or -a for "2 B : 8 MiB"'),
        "iterations": Parameter(None, positive, "-n, instead of the program's own"),
        "connection": Parameter("RC", one_of("RC", "UC", "UD"), "-c"),
        "device": Parameter(None, device, "-d: the RDMA device on both sides, such as mlx5_0"),
        "gid_index": Parameter(None, gid_index, "-x: which GID, for RoCE"),
    }
    if kind == "bw":
        parameters["queue_pairs"] = Parameter(1, positive, "-q: queue pairs at once")
        parameters["bidirectional"] = Parameter(False, flag, "-b: both directions, summed")
        metrics = (
            Metric("bandwidth", "MiB/s", "higher"),
            Metric("message_rate", "Mmsg/s", "higher"),
        )
        agree = " size times message rate is the bandwidth"
    else:
        metrics = (
            Metric("latency", "us", "lower", small_us=2.0),
            Metric("latency_p99", "us", "lower", margin=0.1),
        )
        agree = " minimum, median, percentiles and maximum in order"
    return tool(
        program,
        layer="network",
        summary=summary,
        metrics=metrics,
        reader=partial(read, program, verb, name),
        marks=_marks(verb, name),
        command=partial(command, program),
        parameters=parameters,
        optional=("latency_p99",) if kind == "lat" else (),
        ranks=1,
        program=program,
        get=GET,
        versions=VERSIONS,
        proof=_PROOF + agree,
        means=_MEANS[kind],
    )


def _marks(verb: str, name: str) -> tuple[str, ...]:
    """Return how the title stands in the text, which is indented, and in a report file."""
    found = []
    for both in ("", "Bidirectional "):
        for posted in ("", "Post List "):
            title = f"{verb} {both}{posted}{name} Test"
            found += [f"\n{'':20}{title}", f'"{title.replace(" ", "_")}"']
    return tuple(found)


def command(program: str, request: Request) -> Program:
    """Return client and server, both with the same options."""
    asked = request.parameters
    argv = [path_or(request, program), "-F", "-p", "{port}", "-c", asked["connection"]]
    argv += ["-a"] if asked["bytes"] == _ALL else ["-s", str(asked["bytes"][0])]
    for key, option in (
        ("iterations", "-n"),
        ("device", "-d"),
        ("gid_index", "-x"),
        ("queue_pairs", "-q"),
    ):
        if asked.get(key) is not None:
            argv += [option, str(asked[key])]
    if asked.get("bidirectional"):
        argv.append("-b")
    server = ("/bin/sh", "-c", _SERVER, "perftest", *argv)
    return Program((*argv, "{server}"), mpi=False, server=server)


def read(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return what one of the programs printed, or wrote as its report file."""
    of = of_json if "test_info" in text else of_text
    return of(program, verb, kind, text)


def device(value: object) -> str:
    """Return the name of an RDMA device."""
    if not isinstance(value, str) or not re.fullmatch(r"[\w.:-]+", value):
        raise ValueError('write the device in quotes, such as "mlx5_0"')
    return value


def gid_index(value: object) -> int:
    """Return the index of a GID."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 255:
        raise ValueError("use a whole number from 0 to 255")
    return value


def _sizes(value: object) -> list[int]:
    found = sizes(value)
    if len(found) != 1 and found != _ALL:
        raise ValueError('perftest measures one size, or all of them: write "2 B : 8 MiB"')
    return found
