"""What fio prints, as JSON or as text."""

from __future__ import annotations

import re

from paribus.core import Reading
from paribus.readers.dates import CTIME, SECONDS, date
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import line_at, line_of, refuse
from paribus.tools.readers.fio_client import TITLE, of_client_json, of_client_text
from paribus.tools.readers.fio_json import of_json
from paribus.tools.readers.fio_text import of_text

_CLIENT = r"hostname=\S+, be=\d, [^\n]*\bfio=fio-[^\n]*"
"""A line of `fio --client` for each machine, all of them before anything else."""
_COMPLAINT = re.compile("fio: (?:pid=|failed|job|looks like|file hash)")


def read(text: str) -> Reading:
    """Return bandwidth, operations per second and latency, from JSON or from text."""
    if (at := text.find("fio: ")) >= 0 and (found := _COMPLAINT.search(text, at)):
        line = line_at(text, found.start()).strip()
        refuse(f"fio says {line[line.find('fio: ') :][:160]!r}", line_of(text, found.start()))
    if '"fio version"' in text:
        return of_client_json(text) if '"client_stats"' in text else of_json(text)
    if TITLE.search(text):
        return of_client_text(text)
    if (at := text.find(";fio-")) >= 0:
        cause = "terse output (--minimal) says too little to be checked: let fio print JSON"
        refuse(cause, line_of(text, at))
    return of_text(text)


READER = Reader(
    "fio",
    read,
    marks=('"fio version" :', "\nfio-3.", "\nfio-2.", ";fio-", ", fio=fio-"),
    heads=(
        Head(
            "fio-",
            r"fio-\d+\.\d+\S*[ \t]*(?=\n)",
            above=r"\S.*: \(g=\d+\): rw=.*|\.\.\.|\S+: \(g=\d+\): .*",
        ),
        Head("{", r'"fio version"\s*:', above=r"<\S+>(?: .*)?"),  # of --client
        Head("hostname=", _CLIENT, block=rf"(?:[ \t]*{_CLIENT}\n)+"),
        *(Head(f"{n};fio", block=r"[^\n]*\n?") for n in (2, 3, 4, 5)),
    ),
    complaints=("fio: unrecognized option ", "fio: unable to open ", "error: maximum number of"),
    versions="3.1 to 3.38",
    proof=(
        "error 0 in every job; mode, block, engine, depth, jobs and O_DIRECT as asked; bytes,"
        " operations and run time give bandwidth and rate; percentiles in order; with --client"
        " the operations of all clients are the sum of those of each"
    ),
    means=(
        "without O_DIRECT it is the page cache's speed; MB = 10^6; `latency` is submission plus"
        " completion, its percentile completion alone; text has three digits; a small file may stay"
        " in a device's cache; with --client rates are the sum over clients, and several clients"
        " have no percentile"
    ),
    dates=(
        date('"timestamp"', r'.*"timestamp" ?: ?(\d{9,11})\b', SECONDS),
        date("pid=", rf".*pid=\d+: {CTIME}"),
    ),
)
