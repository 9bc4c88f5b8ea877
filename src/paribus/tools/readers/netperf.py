"""What netperf prints, of streams and of requests and responses, in the three forms of its output.

These are classic columns, `KEY=VALUE` (`-- -k`) and CSV (`-- -o`). The form with keys says the most
and is the one that Paribus asks for (netperf 2.7 manual, "Omni Output Selection").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paribus.core import Reading, Sample, Scalar, of_tool, percent
from paribus.readers.figures import count, figure
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_at, line_of, once, refuse, refuse_said
from paribus.readers.units import rate_of

_VERSIONS = "2.6 to 2.7"
_TITLE = re.compile(r"^(?:MIGRATED )?(\S+ \S+) TEST from \S+ .*$", re.M)
_TESTS = {
    "TCP STREAM": "TCP_STREAM",
    "TCP MAERTS": "TCP_MAERTS",
    "UDP STREAM": "UDP_STREAM",
    "TCP REQUEST/RESPONSE": "TCP_RR",
    "UDP REQUEST/RESPONSE": "UDP_RR",
    "TCP Connect/Request/Response": "TCP_CRR",
}
_OMNI = {
    ("TCP", "Send"): "TCP_STREAM",
    ("TCP", "Receive"): "TCP_MAERTS",
    ("UDP", "Send"): "UDP_STREAM",
    ("TCP", "Send|Recv"): "TCP_RR",
    ("UDP", "Send|Recv"): "UDP_RR",
}
_COMPLAINTS = ("are you sure there is a netserver", "netperf: ", "could not establish", "send_omni")
_WIDTH = re.compile(r"\n!!! Confidence intervals: Throughput +: +(\d+\.\d+)%")
_PAIRS = re.compile(r"\n(?:[A-Z][A-Z0-9_]+=.*\n)+")
_PAIR = re.compile(r"\n([A-Z][A-Z0-9_]+)=(.*(?<! ))")


def _body_of(text: str) -> tuple[str, int, int, tuple[str, ...]]:
    """Return the words of the title, its line, where the body begins, and guards for warnings.

    Raises ParseError with netperf's own words if there is no title.
    """
    if " TEST from " not in text:
        refuse_said(text, _COMPLAINTS, "netperf says")
    at = once(text, " TEST from ", "netperf's line '... TEST from ...'")
    line = line_of(text, at)
    title = _TITLE.match(text, text.rfind("\n", 0, at) + 1)
    if not title:
        refuse("expected '... TEST from ...', netperf's first line", line)
    warns = text.find("!!! ", title.end()) >= 0
    wide = _WIDTH.search(text, title.end()) if warns else None
    if warns and not wide:
        refuse("netperf warns of something, and not whole", line + 1)
    guards = (
        (f"the confidence asked for was not reached: throughput to {wide[1]} %",) if wide else ()
    )
    return title[1], line, title.end(), guards


def _test_of(title: str, line: int, fields: Mapping[str, str]) -> str:
    """Return the name of the test, by the title and, if they are there, PROTOCOL and DIRECTION."""
    named = _TESTS.get(title)
    if "PROTOCOL" in fields or "DIRECTION" in fields:
        found = _OMNI.get((fields.get("PROTOCOL", ""), fields.get("DIRECTION", "")))
        if named == "TCP_CRR" and found == "TCP_RR":
            found = named  # of a test with a connection each, keys say no more than of the other
        if not found or named not in (None, found):
            refuse(f"{title} with {fields.get('PROTOCOL')}, {fields.get('DIRECTION')}", line)
        return found
    if named is None and title != "OMNI Send":
        refuse(f"no test known as {title!r}", line)
    return named or "omni send"


def _pairs(text: str, at: int) -> dict[str, str]:
    """Return the fields of KEY=VALUE lines from `at` on; none for the other forms."""
    block = _PAIRS.search(text, at)
    if not block:
        return {}
    found = _PAIR.findall(block[0])
    fields = dict(found)
    if len(fields) != len(found):
        refuse("a key is there twice", line_of(text, block.start()) + 1)
    if _PAIR.search(text, block.end() - 1):
        refuse("something between netperf's keys", line_of(text, block.end()))
    return fields


def _csv(text: str, at: int) -> dict[str, str]:
    """Return the cells of CSV output under netperf's keys; none for the other forms."""
    lines = text[at:].lstrip("\n").split("\n", 2)
    if not lines[0].startswith("Throughput,"):
        return {}
    heads, cells = lines[0].split(","), lines[1].split(",") if len(lines) > 1 else []
    if len(heads) != len(cells) or len(set(heads)) != len(heads):
        refuse(f"{len(heads)} columns and {len(cells)} cells", line_of(text, at) + 2)
    named = [head.upper().partition(" (")[0].replace(" ", "_") for head in heads]
    return dict(zip(named, cells, strict=True))


def _seconds(word: str, line: int) -> int:
    """Return the elapsed time in whole seconds, as it was asked for."""
    took = figure(word, line)
    if took < 0.5 or abs(took - round(took)) > 0.1 + 0.02 * took:
        refuse(f"it measured {word} s, not whole seconds: it was cut short", line)
    return round(took)


def _megabits(value: str, unit: str, line: int) -> float:
    """Return a throughput in Mbit/s."""
    rate = rate_of("".join(unit.split()), two=True)
    if rate is None:
        refuse(f"a throughput in {' '.join(unit.split())!r}: use netperf's -f m", line)
    return figure(value, line) * (rate * 8 / 1e6)


_SECONDS = r"(\d+\.\d\d)"
_RATE = r"(\d+\.\d\d?)"
_UNIT = r"(10\^\d+bits/s(?:ec)?|[KMG]?Bytes +/s(?:ec)?) *"
# With -c or -C the processors' share comes after the rate.
_TCP = re.compile(
    r"secs\. +" + _UNIT + r"(% \w +% \w +us/KB +us/KB *)?\n\s*(\d+) +(\d+) +(\d+) +"
    rf"{_SECONDS} +{_RATE}(?(2)(?: +-?\d+\.\d+){{4}}) *(?:\n|$)"
)
_UDP = re.compile(
    r"secs +# +# +" + _UNIT + r"(% \w+ +us/KB *)?\n\s*"
    rf"(\d+) +(\d+) +{_SECONDS} +(\d+) +(\d+) +{_RATE}(?(2)(?: +-?\d+\.\d+){{2}}) *\n"
    rf" *(\d+) +{_SECONDS} +(\d+) +{_RATE}(?(2)(?: +-?\d+\.\d+){{2}}) *(?:\n|$)"
)
_LOST = 0.01
"""Share of the datagrams that may be lost without a warning."""

_BUFFERS = "netperf.buffers"
"""The fact on the socket buffers of both sides: asked for, or the kernel's defaults."""


def read_stream(text: str) -> Reading:
    """Return the throughput at the receiver."""
    title, line, at, guards = _body_of(text)
    fields = _pairs(text, at) or _csv(text, at)
    test = _test_of(title, line, fields)
    if test.endswith("RR"):
        refuse(f"{test} is requests and responses: the benchmark netperf_rr", line)
    lost = 0.0
    facts: dict[str, str] = {}
    parameters: dict[str, Scalar]
    if fields:
        for key in ("THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME"):
            if key not in fields:
                refuse(f"{key} is missing: ask netperf for it", line)
        rate = _megabits(fields["THROUGHPUT"], fields["THROUGHPUT_UNITS"], line)
        took = _seconds(fields["ELAPSED_TIME"], line)
        sender = "REMOTE" if test == "TCP_MAERTS" else "LOCAL"
        size = fields.get(f"{sender}_SEND_SIZE", "-1")
        parameters = {} if size in ("-1", "0") else {"message": count(size, line)}
        if {"LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT"} & set(fields) and sender == "LOCAL":
            got = figure(fields.get("REMOTE_RECV_THROUGHPUT", ""), line)
            sent = figure(fields.get("LOCAL_SEND_THROUGHPUT", ""), line)
            if abs(got / float(fields["THROUGHPUT"]) - 1) > 1e-4:
                refuse(f"{fields['THROUGHPUT']} is not what the other side received", line)
            lost = 1 - got / sent
    else:
        rate, took, parameters, lost, facts = _classic(text, at, test)
    parameters |= {"test": test, "seconds": took}
    if test == "UDP_STREAM" and lost > _LOST:
        guards += (
            f"{percent(lost)} of the datagrams were lost: the sender was faster than the path",
        )
    samples = single(throughput=rate)
    return Reading("netperf", "2", parameters, None, samples, facts, guards)


def _classic(
    text: str, at: int, test: str
) -> tuple[float, int, dict[str, Scalar], float, dict[str, str]]:
    """Return what is read of the classic columns.

    Rate in Mbit/s, seconds, parameters, share of the datagrams that were lost, and facts.
    """
    pattern = _UDP if test == "UDP_STREAM" else _TCP
    found = pattern.search(text, at)
    if not found and test == "omni send":
        refuse("columns of one's own choice: ask netperf for keys (-- -k)", line_of(text, at) + 1)
    if not found:
        refuse(f"expected the columns of {test}", line_of(text, at) + 1)
    line = line_of(text, found.end() - 1)
    if test != "UDP_STREAM":
        rate, message = _megabits(found[7], found[1], line), count(found[5], line)
        facts = {_BUFFERS: f"{found[3]},{found[4]}"}
        return rate, _seconds(found[6], line), {"message": message}, 0.0, facts
    sent, got, took = count(found[6], line), count(found[11], line), float(found[10])
    rate = _megabits(found[12], found[1], line)
    if abs(got * int(found[4]) * 8 / 1e6 / max(took, 0.01) / rate - 1) > 0.02:
        refuse(f"{got} messages in {took} s are not {rate} Mbit/s", line)
    if got > sent:
        refuse(f"{got} messages received of {sent} sent", line)
    facts = {_BUFFERS: f"{found[3]},{found[9]}"}
    return rate, _seconds(found[10], line), {"message": int(found[4])}, 1 - got / sent, facts


_RR = re.compile(
    r"secs\. +per sec *(% \w +% \w +us/Tr +us/Tr *)?\n\s*"
    r"(\d+) +(\d+) +(\d+) +(\d+) +(\d+\.\d\d) +(\d+\.\d\d)(?(1)(?: +-?\d+\.\d+){4}) *\n"
    r" *(\d+) +(\d+) *(?:\n|$)"
)
_LATENCY = ("MEAN_LATENCY", "P90_LATENCY", "P99_LATENCY")


def read_rr(text: str) -> Reading:
    """Return transactions per second and, where asked for with keys, latencies in us."""
    title, line, at, guards = _body_of(text)
    fields = _pairs(text, at)
    test = _test_of(title, line, fields)
    if not test.endswith("RR"):
        refuse(f"{test} is a stream: the benchmark netperf", line)
    latencies: tuple[Sample, ...] = ()
    facts: dict[str, str] = {}
    if fields:
        keys = {"THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "REQUEST_SIZE", "RESPONSE_SIZE"}
        keys |= {"TRANSACTION_RATE", *_LATENCY}
        if missing := sorted(keys - set(fields)):
            refuse(f"{missing[0]} is missing: ask netperf for it", line)
        rate = figure(fields["THROUGHPUT"], line)
        if fields["THROUGHPUT_UNITS"] != "Trans/s":
            refuse(f"{fields['THROUGHPUT_UNITS']!r} instead of Trans/s", line)
        if abs(figure(fields["TRANSACTION_RATE"], line) - rate) > 0.006:
            refuse(f"{fields['THROUGHPUT']} and {fields['TRANSACTION_RATE']} per second", line)
        sizes, took = f"{fields['REQUEST_SIZE']},{fields['RESPONSE_SIZE']}", fields["ELAPSED_TIME"]
        latencies = _latencies(fields, rate, line)
    else:
        found = _RR.search(text, at)
        if not found:
            refuse(f"expected the columns of {test}", line_of(text, at) + 1)
        line = line_of(text, found.start(7))
        rate, took, sizes = figure(found[7], line), found[6], f"{found[4]},{found[5]}"
        facts = {_BUFFERS: f"{found[2]},{found[3]}"}
    parameters: dict[str, Scalar] = {"test": test, "seconds": _seconds(took, line), "sizes": sizes}
    samples = single(transactions=rate) + latencies
    return Reading("netperf_rr", "2", parameters, None, samples, facts, guards)


def _latencies(fields: dict[str, str], rate: float, line: int) -> tuple[Sample, ...]:
    """Return mean and 99th percentile in us; refuses those that do not fit a rate per second."""
    mean, *tails = (figure(fields[key], line) for key in _LATENCY)
    if tails != sorted(tails):
        refuse("a higher percentile is below a lower one", line)
    if abs(mean * rate / 1e6 - 1) > 0.05:
        refuse(f"{mean} us each are not {rate} per second", line)
    return single(latency=mean, latency_p99=tails[-1])


_HEADING = re.compile(r"\n(?:[^\n]*(?:10\^\d+bits/s|Bytes +/s|per sec)[^\n]*|Throughput,[^\n]*)\n")
_LAUNCH = re.compile(r"(?<=\n)[ \t]*\d[\d.,]*(?:[ \t]+-?\d[\d.]*){3,}[ \t]*(?=\n|\Z)")
_CELLS = re.compile(r"(?<=\n)\d[^,\n]*(?:,[^,\n]*){2,}(?=\n|\Z)")
_KEYS = re.compile(r"(?<=\n)THROUGHPUT=")


def several(text: str) -> list[int]:
    """Return where each launch below one title begins: -P 0 prints no other title."""
    title = text.find(" TEST from ")
    heading = _HEADING.search(text, title)
    end = heading.end() if heading else text.find("\n", title) + 1
    row = _CELLS if heading and "," in heading[0] else _LAUNCH if heading else _KEYS
    begins = [found.start() for found in row.finditer(text, end)]
    if row is _LAUNCH and "UDP STREAM" in line_at(text, title):
        begins = begins[::2]  # a row for each side
    return begins


def _heads(named: str) -> tuple[Head, ...]:
    """Return the heads of outputs whose tests have names of a pattern."""
    form = rf"(?:MIGRATED )?{named} TEST from \S"
    return tuple(Head(first, form) for first in ("MIGRATED ", "TCP ", "UDP ", "OMNI ", "SCTP "))


READERS = {
    "netperf": Reader(
        "netperf",
        read_stream,
        marks=tuple(
            f"{name} TEST from " for name in ("STREAM", "MAERTS", "OMNI Send", "OMNI Receive")
        ),
        heads=_heads(r"(?:\S+ STREAM|\S+ MAERTS|OMNI Send|OMNI Receive)"),
        several=several,
        complaints=("are you sure there is a netserver listening",),
        versions=_VERSIONS,
        proof=(
            "title once, test, message size and seconds as asked, the columns or keys whole; the"
            " figure equals what the other side received"
        ),
        means=(
            "goodput above TCP or UDP, 10^6 bits; one process on each side, so a core may be the"
            " limit; where the confidence that netperf was asked for was not reached, Paribus says"
            " so too"
        ),
        facts=(
            of_tool(
                _BUFFERS,
                reason="other sizes of the socket buffers: asked for, or defaults of the kernel",
                follows=("net.*", "container.*", "layers.*", "os.release"),
            ),
        ),
    ),
    "netperf_rr": Reader(
        "netperf_rr",
        read_rr,
        marks=("REQUEST/RESPONSE TEST from ", "Connect/Request/Response TEST from "),
        heads=_heads(r"\S+ (?:REQUEST/RESPONSE|Connect/Request/Response)"),
        several=several,
        versions=_VERSIONS,
        proof="title once, test, sizes and seconds as asked, rate and mean latency agree",
        means=(
            "the whole round trip, through both kernels; percentiles are whole us; the ping-pong of"
            " an MPI benchmark is half a round trip and polls; TCP_CRR opens a connection for each"
        ),
    ),
}
