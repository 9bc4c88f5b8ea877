"""fio: reads and writes of a file, sequential or at random."""

from __future__ import annotations

from paribus.benchmarks.parameters import flag, one_of, positive
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request, parse_bytes
from paribus.tools.readers.fio import READER

_MODES = ("read", "write", "randread", "randwrite", "rw", "randrw")


def command(request: Request) -> Program:
    """Return fio's command line: one file per launch, removed by fio itself."""
    asked = request.parameters
    folder = asked["directory"] or "{scratch}"
    options = {
        "name": "paribus",
        "filename": f"{folder}/paribus-fio-{{port}}",
        "rw": asked["mode"],
        "bs": asked["block"],
        "size": asked["size"],
        "ioengine": asked["engine"],
        "iodepth": asked["depth"],
        "numjobs": asked["jobs"],
        "direct": int(asked["direct"]),
        "runtime": asked["seconds"],
        "unlink": 1,
        "output-format": "json",
    }
    argv = (path_or(request, "fio"), *(f"--{key}={value}" for key, value in options.items()))
    # Several jobs on one core would measure that core.
    threads = 0 if asked["jobs"] > 1 else None
    return Program((*argv, "--time_based", "--group_reporting"), mpi=False, threads=threads)


def cases(request: Request) -> list[tuple[str, Case]]:
    """Return every metric for reads, writes or both, as the mode asks for."""
    mode = request.parameters["mode"].removeprefix("rand")
    ops = ("read", "write") if mode == "rw" else (mode,)
    return [(metric.name, Case.of(op=op)) for metric in METRICS for op in ops]


def _folder(value: object) -> str:
    """Return the absolute path of a folder; raises ValueError for anything else."""
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError('write the whole path of a folder, such as "/scratch"')
    return value.rstrip("/")


METRICS = (
    Metric("bandwidth", "MB/s", "higher"),
    Metric("iops", "1/s", "higher"),
    Metric("latency", "us", "lower"),
    Metric("latency_p99", "us", "lower", margin=0.1),
)


BENCHMARK = tool(
    READER,
    layer="storage",
    summary="fio: reads and writes of one file, each direction by itself",
    metrics=METRICS,
    command=command,
    cases=cases,
    parameters={
        "mode": Parameter("read", one_of(*_MODES), "--rw"),
        "block": Parameter(131072, parse_bytes, "--bs: bytes of one read or write"),
        "size": Parameter(268435456, parse_bytes, "--size: bytes of the file"),
        "seconds": Parameter(10, positive, "--runtime: the file is gone through again and again"),
        "engine": Parameter("psync", one_of("psync", "libaio", "io_uring", "sync"), "--ioengine"),
        "depth": Parameter(1, positive, "--iodepth: requests in flight, not for psync and sync"),
        "jobs": Parameter(1, positive, "--numjobs: processes at once"),
        "direct": Parameter(True, flag, "O_DIRECT: past the page cache"),
        "directory": Parameter(None, _folder, "where the file lies, instead of the scratch folder"),
    },
    ranks=1,
    program="fio",
    get="Debian, Ubuntu, Fedora: fio; https://github.com/axboe/fio",
)
