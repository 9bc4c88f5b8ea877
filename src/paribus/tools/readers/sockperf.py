"""What sockperf prints of a ping-pong: lines that begin with "sockperf: ", such as

sockperf: Summary: Latency is 21.323 usec
"""

from __future__ import annotations

import re

from paribus.core import Reading, Scalar, percent
from paribus.readers.figures import figure
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_of, once, refuse, refuse_said

_P = r"^sockperf: +"
_VERSION = re.compile(_P + r"== version #(\S+) == *$", re.M)
_PEER = re.compile(r"\n\[ *0\] IP = \S+ +PORT = +\d+ # (TCP|UDP) *$", re.M)
_VALID = re.compile(
    _P
    + r"\[Valid Duration\] RunTime=(\d+\.\d+) sec; SentMessages=(\d+); ReceivedMessages=(\d+) *$",
    re.M,
)
_TOTAL = re.compile(_P + r"\[Total Run\] RunTime=(\d+\.\d+) sec;", re.M)
_AVERAGE = re.compile(_P + r"====> avg-(lat|latency|rtt)=(\d+\.\d+) \(", re.M)
_LOST = re.compile(
    _P + r"# dropped messages = (\d+); # duplicated messages = (\d+);"
    r" # out-of-order messages = (\d+) *$",
    re.M,
)
_SUMMARY = re.compile(_P + r"Summary: (Latency|Round trip) is (\d+\.\d+) usec *$", re.M)
_OBSERVED = re.compile(_P + r"Total (\d+) observations; ", re.M)
_PERCENTILES = re.compile(
    r"(?:sockperf: ---> (?:<MAX> observation|MAX observation|percentile \d+\.\d+|"
    r"<MIN> observation|MIN observation) = +\d+\.\d+ *(?:\n|\Z))+",
    re.A,
)
_ROW = re.compile(r"---> (?:<?(M[AXIN]+)>? observation|percentile (\d+\.\d+)) = +(\d+\.\d+)")


def read(text: str) -> Reading:
    """Return median, mean and 99th percentile of half the round trip, in us."""
    refuse_said(
        text, ("sockperf: ERROR", "No messages were received", "sockperf: '"), "sockperf says"
    )
    if (at := text.find("sockperf: Summary: Message Rate is ")) >= 0:
        cause = "a throughput, which counts what was sent and not what arrived: let it ping-pong"
        refuse(cause, line_of(text, at), form=True)
    at = once(text, "== version #", "sockperf's line with its version")
    version = _line(text, "== version #", _VERSION, "sockperf's version")
    peers = _PEER.findall(f"\n{text}")
    if len(peers) != 1:
        refuse(f"expected protocol and port once, got {len(peers)} times")
    total = _line(text, "[Total Run]", _TOTAL, "[Total Run]")
    valid = _line(text, "[Valid Duration]", _VALID, "[Valid Duration]")
    average = _line(text, "====> avg-", _AVERAGE, "the average")
    lost = _line(text, "# dropped messages", _LOST, "the count of lost messages")
    summary = _line(text, "Summary: ", _SUMMARY, "the summary")
    observed = _line(text, " observations; ", _OBSERVED, "the count of observations")
    line = line_of(text, summary.start())
    if summary[1] != "Latency" or average[1] == "rtt":
        refuse("round trips (--full-rtt) instead of half of them", line, form=True)
    if average[2] != summary[2]:
        refuse(f"average {average[2]} and summary {summary[2]}", line)
    if valid[3] != observed[1] or int(lost[1]) + int(lost[2]) + int(lost[3]):
        refuse(f"of {valid[2]} messages {valid[3]} came back: {lost[0][10:]}", line)
    if int(valid[2]) < int(valid[3]) or not int(valid[3]):
        refuse(f"{valid[3]} messages came back of {valid[2]}", line)
    tails = _percentiles(text, observed.end())
    mean = figure(summary[2], line)
    if not tails["MIN"] <= mean <= tails["MAX"]:
        refuse(f"the mean {mean} is not between minimum and maximum", line)
    parameters: dict[str, Scalar] = {"protocol": peers[0], "seconds": round(float(total[1]))}
    median, p99 = tails["50.000"], tails["99.000"]
    samples = single(latency=median, latency_mean=mean, latency_p99=p99)
    share = int(valid[3]) / int(valid[2])
    guards = (f"only {percent(round(share, 2))} of the messages came back",) if share < 0.99 else ()
    if at > version.start() + 200:
        refuse("sockperf's version is not at its beginning", line)
    return Reading("sockperf", version[1], parameters, None, samples, guards=guards)


def _line(text: str, mark: str, pattern: re.Pattern[str], what: str) -> re.Match[str]:
    """Return the one line with `mark`, which must be as `pattern` has it."""
    at = once(text, mark, what)
    found = pattern.match(text, text.rfind("\n", 0, at) + 1)
    if not found:
        refuse(f"{what} is not whole", line_of(text, at))
    return found


def _percentiles(text: str, at: int) -> dict[str, float]:
    """Return the percentiles in us by their numbers, such as "99.000", with "MIN" and "MAX"."""
    block = _PERCENTILES.search(text, at)
    if not block or text.count("sockperf: --->") != block[0].count("sockperf: --->"):
        refuse("the percentiles are not whole", line_of(text, at))
    rows = _ROW.findall(block[0])
    tails = {end or percentile: float(value) for end, percentile, value in rows}
    if len(tails) != len(rows) or not tails.keys() >= {"MAX", "MIN", "50.000", "99.000"}:
        refuse("a percentile is missing or there twice", line_of(text, at))
    values = list(tails.values())
    if not values[-1] > 0 or values != sorted(values, reverse=True):
        refuse("a higher percentile is below a lower one, or not above zero", line_of(text, at))
    return tails


READER = Reader(
    "sockperf",
    read,
    marks=("sockperf: == version #",),
    heads=(Head("sockperf: == version #"),),
    versions="3.6 to 3.10",
    proof=(
        "no ERROR (it ends with 0 after one), none lost, double or out of order, average and"
        " summary equal, percentiles in order, protocol and seconds as asked"
    ),
    means=(
        "`latency` is the median; the mean follows a few slow messages; the message size is not"
        " printed; it discards the first 0.4 s and the last"
    ),
)
