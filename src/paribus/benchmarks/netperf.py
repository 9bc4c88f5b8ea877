"""netperf's streams: bulk throughput of TCP or UDP."""

from __future__ import annotations

import re

from paribus.benchmarks import _netperf
from paribus.benchmarks._netperf import body_of, csv, megabits, pairs, seconds, setting, test_of
from paribus.benchmarks._parameters import one_of, positive
from paribus.benchmarks._tool import count, line_of, refuse, tool
from paribus.model import Case, Metric, Parameter, Reading, Sample, Scalar

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


def read(text: str) -> Reading:
    """Return the throughput at the receiver."""
    title, line, at, guards = body_of(text)
    said = pairs(text, at) or csv(text, at)
    test = test_of(title, line, said)
    if test.endswith("RR"):
        refuse(f"{test} is requests and responses: the benchmark netperf_rr", line)
    lost = 0.0
    if said:
        for key in ("THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME"):
            if key not in said:
                refuse(f"{key} is missing: ask netperf for it", line)
        rate = megabits(said["THROUGHPUT"], said["THROUGHPUT_UNITS"], line)
        took = seconds(said["ELAPSED_TIME"], line)
        sender = "REMOTE" if test == "TCP_MAERTS" else "LOCAL"
        parameters = setting(said, f"{sender}_SEND_SIZE", line)
        if {"LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT"} & set(said) and sender == "LOCAL":
            got = _number(said, "REMOTE_RECV_THROUGHPUT", line)
            sent = _number(said, "LOCAL_SEND_THROUGHPUT", line)
            if abs(got / float(said["THROUGHPUT"]) - 1) > 1e-4:
                refuse(f"{said['THROUGHPUT']} is not what the other side received", line)
            lost = 1 - got / sent
    else:
        rate, took, parameters, lost = _classic(text, at, test)
    parameters |= {"test": test, "seconds": took}
    if test == "UDP_STREAM" and lost > _LOST:
        guards += (f"{lost:.1%} of the datagrams were lost: more was sent than the path takes",)
    samples = (Sample("throughput", Case(), (rate,)),)
    return Reading("netperf", "2", parameters, None, samples, guards=guards)


def _number(said: dict[str, str], key: str, line: int) -> float:
    return megabits(said.get(key, ""), "10^6bits/s", line)


def _classic(text: str, at: int, test: str) -> tuple[float, int, dict[str, Scalar], float]:
    """Return rate, seconds, settings and share lost of the classic columns."""
    pattern = _UDP if test == "UDP_STREAM" else _TCP
    found = pattern.search(text, at)
    if not found and test == "omni send":
        refuse("columns of one's own choice: ask netperf for keys (-- -k)", line_of(text, at) + 1)
    if not found:
        refuse(f"expected the columns of {test}", line_of(text, at) + 1)
    line = line_of(text, found.end() - 1)
    if test == "UDP_STREAM":
        sent, got, took = count(found[6], line), count(found[11], line), float(found[10])
        rate = megabits(found[12], found[1], line)
        if abs(got * int(found[4]) * 8 / 1e6 / max(took, 0.01) / rate - 1) > 0.02:
            refuse(f"{got} messages in {took} s are not {rate} Mbit/s", line)
        if got > sent:
            refuse(f"{got} messages received of {sent} sent", line)
        return rate, seconds(found[10], line), {"message": int(found[4])}, 1 - got / sent
    rate = megabits(found[7], found[1], line)
    return rate, seconds(found[6], line), {"message": count(found[5], line)}, 0.0


BENCHMARK = tool(
    "netperf",
    layer="network",
    summary="netperf: bulk throughput of TCP or UDP, as the receiver counts it",
    metrics=(Metric("throughput", "Mbit/s", "higher"),),
    reader=read,
    marks=tuple(f"{name} TEST from " for name in ("STREAM", "MAERTS", "OMNI Send", "OMNI Receive")),
    command=_netperf.command,
    parameters={
        "seconds": _netperf.SECONDS,
        "test": Parameter("TCP_STREAM", one_of("TCP_STREAM", "TCP_MAERTS", "UDP_STREAM"), "-t"),
        "message": Parameter(None, positive, "-m: bytes of each send, instead of its own"),
    },
    ranks=1,
    program="netperf",
    get=_netperf.GET,
    versions=_netperf.VERSIONS,
    proof=(
        "title once, test, message size and seconds as asked, the columns or keys whole; the figure"
        " equals what the other side received"
    ),
    means=(
        "goodput above TCP or UDP, 10^6 bits; one process on each side, so a core may be the limit;"
        " where the confidence that netperf was asked for was not reached, Paribus says so too"
    ),
)
