"""What ucx_perftest prints.

The client prints a table, whose last line is read, without saying which test it was and of what
size; the server says that, in an output that comes after the client's.
"""

from __future__ import annotations

import math
import re
from functools import partial

from paribus.core import Case, Reading, Scalar
from paribus.readers.figures import count, figure
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_of, refuse

_RATE = "message rate (msg/s)"
_HEADING = re.compile(
    r"^\| +\| +\| +(latency|overhead) \(usec\) +\| +bandwidth \(MB/s\) +\|"
    r" +message rate \(msg/s\) +\|\n\+[-+]+\+\n"
    r"\| +(?:Stage|Test) +\| # iterations \| +(?:(\d+\.\d)%ile|typical) \| average \| overall"
    r" \| +average \| +overall \| +average +\| +overall +\|\n\+[-+]+\+$",
    re.M,
)
_FINAL = re.compile(
    r"\n(?:Final:)? +(\d[\d,]*) +(?:(\d+\.\d{3}) +\d+\.\d{3} +)?(\d+\.\d{3})"
    r" +(?(2)\d+\.\d\d +)(\d+\.\d\d) +(?(2)\d[\d,]* +)(\d[\d,]*)(?:  \S.*)? *$",
    re.M,
)
"""Of several threads (-T) without the percentile; -N separates the thousands of counts."""

_THREAD = re.compile(r"^\[thread (\d+)\]", re.M)
_BOX = re.compile(r"\n\| (API|Test|Send memory|Recv memory|Message size): +(\S.*?) +\| *$", re.M)
_IN_BOX = ["API", "Test", "Send memory", "Recv memory", "Message size"]
_COMPLAINT = re.compile(r"^.*UCX +ERROR .*$", re.M)
_WARNING = re.compile(r" UCX +WARN +(\S.*)$", re.M)
_UNNUMBERED = "| # iterations | typical | average | overall |"
"""Columns of UCX before 1.9, which did not mark the last line."""

_IN_TABLE = ("[thread ", "| ", "+---", "Waiting for connection", "Accepted connection from ")
"""The beginnings of lines that may stand in the table: progress, and what a server says on the
same terminal, which is checked by itself."""
TESTS = {
    "tag_lat": "tag match latency",
    "tag_bw": "tag match bandwidth",
    "tag_sync_lat": "tag sync match latency",
    "tag_sync_bw": "tag sync match bandwidth",
    "ucp_put_lat": "put latency",
    "ucp_put_bw": "put bandwidth",
    "stream_lat": "stream latency",
    "stream_bw": "stream bandwidth",
    "ucp_am_lat": "am latency",
    "ucp_am_bw": "am bandwidth / message rate",
}
_NAMES = {words: test for test, words in TESTS.items()}


def read(kind: str, name: str, text: str) -> Reading:
    """Return the last line of the table: rates, and latency or bandwidth, over all iterations."""
    if " ERROR " in text and (error := _COMPLAINT.search(text)):
        refuse(f"ucx_perftest says {error[0].strip()[-160:]!r}", line_of(text, error.start()))
    headings = _headings(text)
    finals = list(_FINAL.finditer(text, headings[0].end())) if headings else []
    client = [h for h in headings if finals and h.end() <= finals[-1].start()]
    if len(client) != 1:
        refuse(f"expected one table of ucx_perftest with its last line, got {len(client)}")
    heading = client[0]
    if heading[1] != kind:
        refuse(f"a table of {heading[1]}, not of {kind}", line_of(text, heading.start()))
    if text.count("Final:", heading.end()) > 1:
        at = line_of(text, heading.end())
        refuse("'Final:' is there twice: two outputs in one", at, alone=True)
    if len(finals) != 1:
        refuse(f"expected one last line, got {len(finals)}", line_of(text, finals[0].start(1)))
    final = finals[0]
    line = line_of(text, final.start(1))
    between = text[heading.end() : final.start()].strip("\n")
    if any(
        not row.startswith(_IN_TABLE) and not _WARNING.search(row) for row in between.splitlines()
    ):
        refuse("something between the heading and the last line", line)
    whole, rate = figure(final[3], line), figure(final[5].replace(",", ""), line)
    band = float(final[4])  # of slow messages it is 0.00
    threads = _threads(final, between, whole * rate / 1e6, 0.01 + 0.0006 / whole + 0.6 / rate)
    if threads == 0:
        refuse(f"{final[5]} messages/s of {final[3]} us each", line)
    parameters: dict[str, Scalar] = {"iterations": count(final[1].replace(",", ""), line)}
    if threads > 1:
        parameters["threads"] = threads
    said_by_server = _server(text, parameters)
    size = said_by_server or _size(band, rate)
    case = Case.of(bytes=size) if size else Case()
    if said_by_server:
        exact = rate * said_by_server / 2**20
        if abs(exact - band) > 0.0051 + exact * (0.6 / rate + 1e-6):
            refuse(f"{band} MiB/s are not {final[5]} messages/s of {said_by_server} B", line)
    if kind == "latency":
        values = {"latency": whole}
        if final[2]:
            values["latency_median"] = figure(final[2], line)
        if heading[2] not in (None, "50.0"):  # UCX 1.9 calls the median typical
            refuse(f"percentile {heading[2]} instead of 50.0", line)
    else:
        values = {"bandwidth": figure(final[4], line), "message_rate": rate}
    samples = single(case, **values)
    warned = dict.fromkeys(_WARNING.findall(text)) if " WARN " in text else {}
    guards = tuple(f"UCX warns: {words[:120]!r}" for words in list(warned)[:4])
    return Reading(name, "1", parameters, None, samples, guards=guards)


def _threads(final: re.Match[str], between: str, busy: float, slack: float) -> int:
    """Return the number of threads, 0 if that of messages at a time, `busy`, does not fit.

    Of several the latency is the mean and the rate the sum, so `busy` is their number, or more if
    some are faster than others.
    """
    if final[2]:
        return int(abs(busy - 1) <= slack)
    numbers = map(int, _THREAD.findall(between))
    threads = 1 + max(numbers, default=round(busy) - 1)
    return threads if threads > 1 and 1 - slack <= busy / threads < 2 else 0


def _size(band: float, rate: float) -> int:
    """Return the bytes of a message, as MiB/s by messages/s; 0 if these are too coarse.

    Of all that they may be before rounding it is the roundest number, in powers of two or of ten.

    >>> _size(4.77, 624716), _size(6611.61, 231092), _size(491581.66, 5155), _size(0.0, 700000)
    (8, 30000, 100000000, 0)
    """
    low = math.ceil(max(band - 0.005, 0.0) * 2**20 / (rate + 0.5))
    high = math.floor((band + 0.005) * 2**20 / max(rate - 0.5, 0.5))
    if band < 0.02 or not low <= high <= low * 1.05 + 1:
        return 0
    steps = sorted({*(2**n for n in range(40)), *(10**n for n in range(12))}, reverse=True)
    return next(int(high // step * step) for step in steps if high // step * step >= max(low, 1))


def _headings(text: str) -> list[re.Match[str]]:
    """Return the headings of all tables: a server may print one too, without a last line."""
    found = []
    at = text.find(_RATE)
    while at >= 0:
        heading = _HEADING.match(text, text.rfind("\n", 0, at) + 1)
        if not heading and text.find(_UNNUMBERED, at, at + 600) >= 0:
            refuse("UCX before 1.9 does not mark its last line: use a later one", line_of(text, at))
        if not heading:
            refuse("the heading of a table of ucx_perftest is not whole", line_of(text, at))
        found.append(heading)
        at = text.find(_RATE, heading.end())
    return found


def _server(text: str, parameters: dict[str, Scalar]) -> int:
    """Return the message size that the server prints, 0 for none; set test and memory."""
    rows = _BOX.findall(f"\n{text}")
    if not rows and "| API:" not in text and "Accepted connection" not in text:
        return 0
    if [key for key, _ in rows] != _IN_BOX:
        at = max(text.find("| API:"), 0)
        refuse("what the server says of the test is not whole", line_of(text, at))
    _, test, sent, received, size = (words for _, words in rows)
    parameters["test"] = _NAMES.get(test, test)
    if [*sent.split(), *received.split()] != [sent, received]:
        refuse("the server does not say which memory", line_of(text, text.find("| API:")))
    parameters["memory"] = f"{sent},{received}"
    return count(size, line_of(text, text.find("| Message size")))


KINDS = {"ucx_perftest": "latency", "ucx_perftest_bw": "overhead"}
"""The first heading in the table of each benchmark."""

_PROOF = (
    "no UCX ERROR, one table with its last line, iterations as asked, rate, time and"
    " bandwidth agree; test, memory and message size as asked, as the server says"
)
_MEANS = (
    "means over all messages (`overall`); its MB are 2^20 B; a bandwidth is what the"
    " sender sees: the last messages may still be on their way; of a client's output alone"
    " the size is bandwidth by message rate"
)
READERS = {
    name: Reader(
        name,
        partial(read, kind, name),
        marks=(f"{blank}{kind} (usec)        |   bandwidth (MB/s)  |",),
        heads=(
            Head(
                "|   ",
                rf"\|[ ]{{14}}\|[ ]{{14}}\|{blank} +{kind} \(usec\) +\|",
                above=r"\+-{14}\+[-+]+\+",
            ),
        ),
        library=" UCX ",
        versions="1.9 to 1.20",
        proof=_PROOF,
        means=_MEANS,
    )
    for (name, kind), blank in zip(KINDS.items(), ("   ", "  "), strict=True)
}
