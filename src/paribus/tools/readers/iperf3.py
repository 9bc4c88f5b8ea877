"""What iperf3 prints, as JSON or as text."""

from __future__ import annotations

import re
from typing import Any

from paribus.core import Reading, Scalar, of_tool
from paribus.readers.dates import SECONDS, date
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_of, once, refuse, refuse_said
from paribus.readers.units import rate_of, size_of

_FIRST = "Connecting to host "
_JSON = '"iperf 3'
_CONNECTED = re.compile(r"\n\[ *(\d+)\] local \S+ port \d+ connected to ", re.M)
# "[  5]   0.00-1.00   sec  3.15 GBytes  27.1 Gbits/sec    0             sender"; for UDP
# "[  5]   0.00-1.00   sec   119 MBytes   999 Mbits/sec  0.000 ms  0/3812 (0%)  sender"
_TOTAL = re.compile(
    r"\n\[ *(\d+|SUM)\](?:\[([RT]X)-C\])? +0\.00-(\d+\.\d\d) +sec +"
    r"(\d+(?:\.\d+)?) ([KMGT]?)Bytes +(\d+(?:\.\d+)?) ([KMGT]?)(bits|Bytes)/sec +"
    r"(?:\d+|(\d+\.\d+) ms +(\d+)/(\d+) \([\d.e-]+%\))? *(sender|receiver) *$",
    re.M,
)
_OMITTED = re.compile(r"-(\d+)\.\d\d +sec [^\n]*\(omitted\)[ \t]*$", re.M)
_VERSION = re.compile(r"\niperf (3\S*)")
_SERVER = "\nServer output:\n"
"""What stands above the server's own output (--get-server-output), which is not read."""

_LOST = 1.0
"""Percent of the datagrams that may be lost without a warning."""

_WHOLE = 0.05
"""Seconds by which a test of a time in whole seconds ends before or after them."""

_BUSY = 97.0
"""Percent of a core from which on a host counts as the limit."""


def read(text: str) -> Reading:
    """Return the throughput that the receiver saw, from JSON or from text."""
    if _JSON in text and '"test_start"' in text:
        return _of_json(document(text, '"test_start"'))
    refuse_said(text, ('"error":', "iperf3: "), "iperf3 says")
    return _of_text(text)


def _of_json(tree: dict[str, Any]) -> Reading:
    """Return the reading of the JSON form."""
    if "error" in tree:
        refuse(f"iperf3 says {str(tree['error'])[:160]!r}")
    if "event" in tree:
        refuse("one line for each event (--json-stream): let iperf3 print one document (-J)")
    asked, end = inner(tree, "start", "test_start"), inner(tree, "end")
    protocol = str(inner(asked, "protocol"))
    if protocol == "UDP" and "sum" in end and "sum_received" not in end:
        refuse("in JSON this iperf3 says of UDP only what was sent: let it print text")
    both = "sum_received_bidir_reverse" in end
    sums = ["sum_received", "sum_received_bidir_reverse"][: 1 + both]
    seconds = amount(asked, "duration", zero=True)
    total = 0.0
    for name in sums:
        bits, took = amount(end, name, "bits_per_second"), amount(end, name, "seconds")
        if abs(amount(end, name, "bytes") * 8 / took / bits - 1) > 0.001:
            refuse(f"end.{name}: {bits} bits/s are not its bytes in {took} s")
        if seconds and abs(took / seconds - 1) > 0.1 and abs(took - seconds) > 0.2:
            refuse(f"{seconds:g} s were asked for, it measured {took} s")
        total += bits / 1e6
    streams = int(amount(asked, "num_streams"))
    if len(inner(end, "streams")) != streams * len(sums):
        refuse(f"{streams * len(sums)} streams asked for, {len(inner(end, 'streams'))} at the end")
    reverse = amount(asked, "reverse", zero=True)
    parameters: dict[str, Scalar] = {
        "protocol": protocol,
        "streams": streams,
        "direction": "both" if both else "reverse" if reverse else "forward",
        "omit": int(amount(asked, "omit", zero=True)),
    }
    if seconds:
        parameters["seconds"] = int(seconds)
    inner(tree, "start", "timestamp", "timesecs")  # whole outputs have it
    facts: dict[str, Any] = {}
    guards: list[str] = []
    if protocol == "UDP":
        parameters["rate"] = int(amount(asked, "target_bitrate", zero=True))
        lost = amount(end, "sum_received", "lost_percent", zero=True)
        guards += _lossy(lost)
    else:
        facts["iperf3.congestion"] = end.get("sender_tcp_congestion", "not reported")
    for side, name in (("this host", "host_total"), ("the other host", "remote_total")):
        if (busy := amount(end, "cpu_utilization_percent", name, zero=True)) > _BUSY:
            guards.append(f"{side} used {busy:.0f} % of a core: the core limits, not the network")
    samples = single(throughput=total)
    version = str(inner(tree, "start", "version")).removeprefix("iperf ")
    return Reading("iperf3", version, parameters, None, samples, facts, tuple(guards))


def _of_text(text: str) -> Reading:
    """Return the reading of the text form."""
    begin = once(text, _FIRST, "iperf3's 'Connecting to host'")
    if begin and text[begin - 1] != "\n":
        cause = "something stands before 'Connecting to host': use neither -T nor --timestamps"
        refuse(cause, line_of(text, begin))
    at = once(text, "iperf Done.", "'iperf Done.', iperf3's last line,")
    # Every line follows a line feed: what is searched for begins with one.
    lines = f"\n{text[:at]}"
    if (server := lines.find(_SERVER)) >= 0:
        lines = lines[: server + 1]
    sockets = _CONNECTED.findall(lines)
    rows = list(_TOTAL.finditer(lines))
    if lines.count("sender\n") + lines.count("receiver\n") > len(rows) or not sockets:
        refuse("a row of sender or receiver is not whole", line_of(text, at))
    for row in rows:
        if wrong := _wrong(row):
            refuse(wrong, line_of(lines, row.start()))
    both = any(row[2] for row in rows)
    half = len(sockets) // 2
    # With --bidir the sockets that this side sends on come first.
    roles = {"TX": sockets[:half], "RX": sockets[half:]} if both else {None: sockets}
    totals = [
        _total([row for row in rows if row[2] == role], own, lines) for role, own in roles.items()
    ]
    if len(rows) != sum(2 * len(own) + 2 * (len(own) > 1) for own in roles.values()):
        refuse("more rows of sender and receiver than streams", line_of(text, at))
    udp = totals[0][9] is not None
    direction = "both" if both else "reverse" if "\nReverse mode, " in text else "forward"
    parameters: dict[str, Scalar] = {
        "protocol": "UDP" if udp else "TCP",
        "streams": len(sockets) // len(roles),
        "direction": direction,
        "omit": max(map(int, _OMITTED.findall(lines)), default=0),
        **_asked(rows, totals[0], direction),
    }
    guards = []
    if udp:
        guards = _lossy(max(100 * int(total[10]) / int(total[11]) for total in totals))
    named = _VERSION.search(lines)
    version, samples = named[1] if named else "3", single(throughput=sum(map(_rate, totals)))
    return Reading("iperf3", version, parameters, None, samples, guards=tuple(guards))


def _asked(rows: list[re.Match[str]], received: re.Match[str], direction: str) -> dict[str, Scalar]:
    """Return the whole seconds that were asked for, or else (-n, -k) what was sent, as printed.

    This side, which has the clock of a test of a time, is the sender unless it is in reverse.
    """
    sent = [row for row in rows if row[12] == "sender" and row[2] != "RX"][-1]
    seconds = float((received if direction == "reverse" else sent)[3])
    if round(seconds) and abs(seconds - round(seconds)) < _WHOLE:
        return {"seconds": round(seconds)}
    return {"sent": f"{sent[4]} {sent[5]}Bytes"}


def _total(rows: list[re.Match[str]], sockets: list[str], lines: str) -> re.Match[str]:
    """Return the receiver's row of all streams of a direction, if every stream has its rows."""
    wanted = [*sockets, "SUM"] if len(sockets) > 1 else sockets
    if not rows and " ms  " in lines:
        refuse(
            "of UDP this version says what was sent and not what arrived: use iperf3 3.7 or later"
        )
    for side in ("sender", "receiver"):
        found = [row for row in rows if row[12] == side]
        if [row[1] for row in found] != wanted:
            refuse(f"expected the {side}'s rows {wanted}, got {[row[1] for row in found]}")
    received = {row[1]: row for row in rows if row[12] == "receiver"}
    total = received[wanted[-1]]
    each = [_rate(received[socket]) for socket in sockets]
    if abs(sum(each) / _rate(total) - 1) > 0.02:
        cause = f"the streams' {sum(each):.1f} Mbit/s are not the sum"
        refuse(cause, line_of(lines, total.start()))
    if total[9] is not None and not 0 <= int(total[10]) < int(total[11]):
        refuse(f"{total[10]} datagrams lost of {total[11]}", line_of(lines, total.start()))
    return total


def _rate(row: re.Match[str]) -> float:
    """Return a row's bitrate in Mbit/s; with Bytes, iperf3 counts in powers of two."""
    return float(row[6]) * (rate_of(f"{row[7]}{row[8]}/sec", two=True) or 0.0) * 8 / 1e6


def _wrong(row: re.Match[str]) -> str:
    """Return why a row is no measurement, "" if it is one."""
    rate, seconds = _rate(row), float(row[3])
    if not (rate > 0 and seconds > 0):
        return f"{row[6]} in {row[3]} s is not a measurement"
    moved = float(row[4]) * (size_of(f"{row[5]}Bytes", two=True) or 0.0) * 8 / 1e6 / seconds
    if abs(moved / rate - 1) > 0.02:
        return f"{row[4]} {row[5]}Bytes in {row[3]} s are not {rate:.4g} Mbit/s"
    return ""


def _lossy(percent: float) -> list[str]:
    """Return a warning if more than _LOST of the datagrams were lost."""
    if percent <= _LOST:
        return []
    return [f"{percent:.1f} % of the datagrams were lost: more was sent than the path takes"]


READER = Reader(
    "iperf3",
    read,
    marks=(_JSON, _FIRST),
    heads=(
        Head(
            _FIRST,
            above=r"iperf 3\..*|Linux .*|Control connection MSS .*|Time: .*",
        ),
        Head("{", r'"start"\s*:\s*\{'),
    ),
    complaints=("iperf3: error - ",),
    versions="3.7 to 3.18",
    proof=(
        "no error; protocol, streams, direction and seconds as asked; bytes, seconds and rate"
        " agree; in text: 'iperf Done.', a row of sender and receiver for each stream, their sum"
    ),
    means=(
        "goodput above TCP or UDP, 10^6 bits; one process uses one core up to 3.15, so above some"
        " 20 Gbit/s it measures that core; the text has three digits; a UDP figure is the rate that"
        " was asked for unless datagrams were lost"
    ),
    dates=(
        date('"timesecs":', r'.*"timesecs":\s*(\d{9,11})\b', SECONDS),
        # Always in GMT (iperf_time.c).
        date(
            "Time: ",
            r"Time: \w{3}, (\d\d \w{3} \d{4} \d\d:\d\d:\d\d) ",
            "%d %b %Y %H:%M:%S",
            utc=True,
        ),
    ),
    facts=(
        of_tool(
            "iperf3.congestion",
            reason="TCP took another congestion control, whatever the machine is set to",
            follows=("net.*", "container.*", "layers.*", "os.release"),
        ),
    ),
)
