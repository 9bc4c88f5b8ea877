"""fio: reads and writes of a file, sequential or at random."""

from __future__ import annotations

import re

from paribus.benchmarks._fio_json import of_json
from paribus.benchmarks._fio_text import of_text
from paribus.benchmarks._parameters import flag, one_of, positive
from paribus.benchmarks._tool import line_at, line_of, path_or, refuse, tool
from paribus.model import Case, Metric, Parameter, Program, Reading, Request
from paribus.units import parse_bytes

_COMPLAINT = re.compile("fio: (?:pid=|failed|job|looks like|file hash)")
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


def read(text: str) -> Reading:
    """Return bandwidth, operations per second and latency, from JSON or from text."""
    if (at := text.find("fio: ")) >= 0 and (found := _COMPLAINT.search(text, at)):
        said = line_at(text, found.start()).strip()
        refuse(f"fio says {said[said.find('fio: ') :][:160]!r}", line_of(text, found.start()))
    if '"fio version"' in text:
        return of_json(text)
    if (at := text.find(";fio-")) >= 0:
        said = "terse output (--minimal) says too little to be checked: let fio print JSON"
        refuse(said, line_of(text, at))
    return of_text(text)


def _folder(value: object) -> str:
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
    "fio",
    layer="storage",
    summary="fio: reads and writes of one file, each direction by itself",
    metrics=METRICS,
    reader=read,
    marks=('"fio version" :', "\nfio-3.", "\nfio-2.", ";fio-"),
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
    versions="3.1 to 3.38",
    proof=(
        "error 0 in every job; mode, block, engine, depth, jobs and O_DIRECT as asked; bytes,"
        " operations and run time give bandwidth and rate; percentiles in order"
    ),
    means=(
        "without O_DIRECT it is the page cache's speed; MB = 10^6; `latency` is submission plus"
        " completion, its percentile completion alone; text has three digits; a small file may stay"
        " in a device's cache"
    ),
)
