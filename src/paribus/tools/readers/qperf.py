"""What qperf prints: a block for each measurement, such as

tcp_lat:
    latency   =     4432.88 ns
    msg_size  =           1 bytes
"""

from __future__ import annotations

import re

from paribus.core import Case, Reading, Sample, Scalar
from paribus.readers.figures import count, figure
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import line_at, line_of, refuse, refuse_said
from paribus.readers.units import rate_of, seconds_of, size_of

_BLOCK = re.compile(r"^(\w+)_(lat|bw):\n((?: {3,4}\w+ += +\S.*(?:\n|\Z))+)", re.M)
_WHOLE = r"(\w+):\n(?:[ \t]+(?:msg_size += +(\S.*)|\w+ += +\S.*)\n?)+"
_CONF = re.compile(r"^conf:\n(?: {3,4}\w+ += .*(?:\n|\Z))+", re.M)
_ROW = re.compile(r"^ {3,4}(\w+) += +(\S+) *(\S*)(?: \(([\d,]+)\)$)?", re.M)
_LOOSE = re.compile(r"^(?: {3,4}\w(?![\w ]*:)|\w+_(?:lat|bw):)", re.M)
_VERSION = re.compile(r"\n {3,4}loc_qperf += +(\S+)")
_WRITES = ("rc_rdma_write", "rc_rdma_read", "uc_rdma_write")
_FIGURES = {"latency", "bw", "send_bw", "recv_bw"}
_LOST = 0.2
"""A latency of that share of the time of measurement is that of a message that never came."""

TRANSPORTS = ("tcp", "udp", "sctp", "sdp", "rds", "rc", "uc", "ud")
_COMPLAINTS = ("failed to ", "unable to ", "timed out", "server: ", "cannot ", "unknown ")


def read(text: str) -> Reading:
    """Return every latency and bandwidth that the text holds, each at its size."""
    samples: list[Sample] = []
    parameters: dict[str, Scalar] = {}
    blocks = list(_BLOCK.finditer(text))
    if not blocks:
        refuse_said(text, _COMPLAINTS, "qperf says")
        refuse("nothing of qperf is in it: 'tcp_lat:' and its lines")
    several = len({block[1] for block in blocks}) > 1
    for block in blocks:
        line = line_of(text, block.start())
        rows = _rows(block[3], line)
        size = {"bytes": _size(rows["msg_size"], line)} if "msg_size" in rows else {}
        if len(_FIGURES.intersection(rows)) != 1 + ("send_bw" in rows and "recv_bw" in rows):
            refuse(f"not the figures of one measurement: {', '.join(rows)[:80]}", line)
        test = {"test": f"{block[1]}_{block[2]}"} if several else {}
        samples.append(_sample(block[2], rows, Case.of(**size, **test), line))
        if not several:
            _same(parameters, "transport", block[1], line)
        if time := rows.get("time"):
            if (unit := seconds_of(time[1])) is None:
                refuse(f"a time in {time[1]!r}", line)
            _same(parameters, "seconds", round(figure(time[0], line) * unit), line)
    ends = [0, *(block.end() for block in blocks)]
    starts = [*(block.start() for block in blocks), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    rest = _CONF.sub("", "".join(between))
    if loose := _LOOSE.search(rest):
        refuse(f"a line of qperf by itself: {line_at(rest, loose.start()).strip()[:80]!r}")
    version = _VERSION.search(text)
    return Reading("qperf", version[1] if version else "0.4", parameters, None, tuple(samples))


def _rows(text: str, line: int) -> dict[str, tuple[str, str, str]]:
    """Return value, unit and exact value of each line of a block, "" for what is not there."""
    rows = _ROW.findall(text)
    found = {key: (value, unit, exact) for key, value, unit, exact in rows}
    if len(found) != len(rows):
        refuse("a line of qperf is there twice", line)
    return found


def _size(row: tuple[str, str, str], line: int) -> int:
    """Return a message size in bytes: the exact one, where qperf rounds it to three digits."""
    value, unit, exact = row
    if unit == "bytes":
        return int(figure(value, line))
    size = count(exact.replace(",", "") or "0", line)
    if abs(figure(value, line) * (size_of(unit) or 0) - size) > 0.01 * size:
        refuse(f"the message size in {unit!r}: ask qperf for unified units, -uu", line)
    return size


def _sample(kind: str, rows: dict[str, tuple[str, str, str]], case: Case, line: int) -> Sample:
    """Return the latency in us, or the bandwidth in MB/s, of a block that begins at a line."""
    if kind == "lat":
        value, unit, _ = rows.get("latency", ("", "", ""))
        if (each := seconds_of(unit)) is None:
            refuse("expected 'latency = FIGURE us'", line + 1)
        latency = figure(value, line + 1) * (each / 1e-6)
        time, of, _ = rows.get("time", ("1", "sec", ""))
        if unit == "sec" or latency > _LOST * figure(time, line) * (
            (seconds_of(of) or 1e-6) / 1e-6
        ):
            refuse(f"a latency of {value} {unit}: a message did not come back", line + 1)
        return Sample("latency", case, (latency,))
    if ("send_bw" in rows) != ("recv_bw" in rows):
        refuse("one of send_bw and recv_bw is missing", line)
    value, unit, _ = rows.get("recv_bw", rows.get("bw", ("", "", "")))
    if (each := rate_of(unit)) is None:
        refuse("expected 'bw = FIGURE GB/sec'", line + 1)
    return Sample("bandwidth", case, (figure(value, line + 1) * (each / 1e6),))


def _same(parameters: dict[str, Scalar], key: str, value: Scalar, line: int) -> None:
    """Set a parameter; refuse another value than before."""
    if parameters.setdefault(key, value) != value:
        refuse(f"{key} {parameters[key]} and {value} in one output", line)


READER = Reader(
    "qperf",
    read,
    marks=tuple(
        f"{name}_{kind}:\n    " for name in (*TRANSPORTS, *_WRITES) for kind in ("lat", "bw")
    ),
    heads=tuple(
        Head(f"{name}_{kind}:", rf"{name}_{kind}:[ \t]*\n", block=_WHOLE)
        for name in (*TRANSPORTS, *_WRITES)
        for kind in ("lat", "bw")
    ),
    versions="0.4.9 to 0.4.11",
    proof="both figures with their unit, transport, message sizes and seconds as asked",
    means=(
        "half a round trip; MB = 10^6; without -e it prints three digits; sockets sleep between"
        " messages, so the figure holds the scheduler's wake-up as well"
    ),
)
