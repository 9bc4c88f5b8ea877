"""netperf's request and response: transactions per second of TCP or UDP, one at a time."""

from __future__ import annotations

import re

from paribus.benchmarks import _netperf
from paribus.benchmarks._netperf import body_of, pairs, seconds, test_of
from paribus.benchmarks._parameters import one_of
from paribus.benchmarks._tool import figure, line_of, refuse, tool
from paribus.model import Case, Metric, Parameter, Reading, Sample, Scalar

_CLASSIC = re.compile(
    r"secs\. +per sec *(% \w +% \w +us/Tr +us/Tr *)?\n\s*"
    r"(\d+) +(\d+) +(\d+) +(\d+) +(\d+\.\d\d) +(\d+\.\d\d)(?(1)(?: +-?\d+\.\d+){4}) *\n"
    r" *(\d+) +(\d+) *(?:\n|$)"
)
_LATENCY = ("MEAN_LATENCY", "P90_LATENCY", "P99_LATENCY")


def read(text: str) -> Reading:
    """Return transactions per second and, where asked for with keys, latencies in us."""
    title, line, at, guards = body_of(text)
    said = pairs(text, at)
    test = test_of(title, line, said)
    if not test.endswith("RR"):
        refuse(f"{test} is a stream: the benchmark netperf", line)
    samples = []
    if said:
        keys = {"THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "REQUEST_SIZE", "RESPONSE_SIZE"}
        keys |= {"TRANSACTION_RATE", *_LATENCY}
        if missing := sorted(keys - set(said)):
            refuse(f"{missing[0]} is missing: ask netperf for it", line)
        rate = figure(said["THROUGHPUT"], line)
        if said["THROUGHPUT_UNITS"] != "Trans/s":
            refuse(f"{said['THROUGHPUT_UNITS']!r} instead of Trans/s", line)
        if abs(figure(said["TRANSACTION_RATE"], line) - rate) > 0.006:
            refuse(f"{said['THROUGHPUT']} and {said['TRANSACTION_RATE']} per second", line)
        sizes, took = f"{said['REQUEST_SIZE']},{said['RESPONSE_SIZE']}", said["ELAPSED_TIME"]
        samples = _latencies(said, rate, line)
    else:
        found = _CLASSIC.search(text, at)
        if not found:
            refuse(f"expected the columns of {test}", line_of(text, at) + 1)
        line = line_of(text, found.start(7))
        rate, took, sizes = figure(found[7], line), found[6], f"{found[4]},{found[5]}"
    parameters: dict[str, Scalar] = {"test": test, "seconds": seconds(took, line), "sizes": sizes}
    samples.insert(0, Sample("transactions", Case(), (rate,)))
    return Reading("netperf_rr", "2", parameters, None, tuple(samples), guards=guards)


def _latencies(said: dict[str, str], rate: float, line: int) -> list[Sample]:
    mean, *tails = (figure(said[key], line) for key in _LATENCY)
    if tails != sorted(tails):
        refuse("a higher percentile is below a lower one", line)
    if abs(mean * rate / 1e6 - 1) > 0.05:
        refuse(f"{mean} us each are not {rate} per second", line)
    return [
        Sample("latency", Case(), (mean,)),
        Sample("latency_p99", Case(), (tails[-1],)),
    ]


def _sizes(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[1-9]\d{0,8},[1-9]\d{0,8}", value):
        return value
    raise ValueError('write bytes of request and response, such as "1,1"')


BENCHMARK = tool(
    "netperf_rr",
    layer="network",
    summary="netperf: requests and their responses, one at a time, over TCP or UDP",
    metrics=(
        Metric("transactions", "trans/s", "higher"),
        Metric("latency", "us", "lower"),
        Metric("latency_p99", "us", "lower", margin=0.1),
    ),
    reader=read,
    marks=("REQUEST/RESPONSE TEST from ", "Connect/Request/Response TEST from "),
    command=_netperf.command,
    optional=("latency", "latency_p99"),
    parameters={
        "seconds": _netperf.SECONDS,
        "test": Parameter("TCP_RR", one_of("TCP_RR", "UDP_RR"), "-t"),
        "sizes": Parameter("1,1", _sizes, "-r: bytes of request and response"),
    },
    ranks=1,
    program="netperf",
    get=_netperf.GET,
    versions=_netperf.VERSIONS,
    proof="title once, test, sizes and seconds as asked, rate and mean latency agree",
    means=(
        "the whole round trip, through both kernels; percentiles are whole us; the ping-pong of an"
        " MPI benchmark is half a round trip and polls; TCP_CRR opens a connection for each"
    ),
)
