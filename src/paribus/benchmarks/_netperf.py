"""What netperf's benchmarks have in common: command line and the three forms of its output.

netperf prints classic columns, `KEY=VALUE` (`-- -k`) or CSV (`-- -o`); the form with keys says the
most and is the one that Paribus asks for (netperf 2.7 manual, "Omni Output Selection").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paribus.benchmarks._parameters import positive
from paribus.benchmarks._tool import count, figure, line_of, once, path_or, refuse
from paribus.model import Parameter, Program, Request, Scalar

GET = "Debian, Ubuntu: netperf (non-free); https://github.com/HewlettPackard/netperf"
VERSIONS = "2.6 to 2.7"
SECONDS = Parameter(10, positive, "-l: how long, in whole seconds")
_KEYS = (
    "THROUGHPUT,THROUGHPUT_UNITS,PROTOCOL,DIRECTION,ELAPSED_TIME,LOCAL_SEND_SIZE,REMOTE_SEND_SIZE,"
    "REQUEST_SIZE,RESPONSE_SIZE,TRANSACTION_RATE,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,"
    "LOCAL_SEND_THROUGHPUT,REMOTE_RECV_THROUGHPUT,LOCAL_TRANSPORT_RETRANS"
)
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
_TEN = {"10^3": 1e-3, "10^6": 1.0, "10^9": 1e3}


def command(request: Request) -> Program:
    """Return netperf's command line and the netserver that it talks to."""
    asked = request.parameters
    argv: tuple[str, ...] = (path_or(request, "netperf"), "-H", "{server}", "-p", "{port}")
    argv += ("-l", str(asked["seconds"]), "-t", asked["test"], "--", "-k", _KEYS)
    if asked.get("message"):
        argv += ("-m", str(asked["message"]))
    if asked.get("sizes"):
        argv += ("-r", asked["sizes"])
    server = argv[0].removesuffix("netperf") + "netserver"
    return Program(argv, mpi=False, server=(server, "-D", "-p", "{port}"))


def body_of(text: str) -> tuple[str, int, int, tuple[str, ...]]:
    """Return the title, the line of the title, where the body begins, and what it warns of.

    Raises ParseError with netperf's own words if there is no title.
    """
    if " TEST from " not in text:
        for mark in _COMPLAINTS:
            if (at := text.find(mark)) >= 0:
                said = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
                refuse(f"netperf says {said.strip()[:160]!r}", line_of(text, at))
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


def test_of(title: str, line: int, said: Mapping[str, str]) -> str:
    """Return which test it was, by its title and, if there, by PROTOCOL and DIRECTION."""
    named = _TESTS.get(title)
    if "PROTOCOL" in said or "DIRECTION" in said:
        found = _OMNI.get((said.get("PROTOCOL", ""), said.get("DIRECTION", "")))
        if named == "TCP_CRR" and found == "TCP_RR":
            found = named  # of a test with a connection each, keys say no more than of the other
        if not found or named not in (None, found):
            refuse(f"{title} with {said.get('PROTOCOL')}, {said.get('DIRECTION')}", line)
        return found
    if named is None and title != "OMNI Send":
        refuse(f"no test known as {title!r}", line)
    return named or "omni send"


def pairs(text: str, at: int) -> dict[str, str]:
    """Return the KEY=VALUE lines from `at` on, each key once; none for the other forms."""
    block = _PAIRS.search(text, at)
    if not block:
        return {}
    found = _PAIR.findall(block[0])
    said = dict(found)
    if len(said) != len(found):
        refuse("a key is there twice", line_of(text, block.start()) + 1)
    if _PAIR.search(text, block.end() - 1):
        refuse("something between netperf's keys", line_of(text, block.end()))
    return said


def csv(text: str, at: int) -> dict[str, str]:
    """Return the cells of CSV output under netperf's keys; none for the other forms."""
    lines = text[at:].lstrip("\n").split("\n", 2)
    if not lines[0].startswith("Throughput,"):
        return {}
    heads, cells = lines[0].split(","), lines[1].split(",") if len(lines) > 1 else []
    if len(heads) != len(cells) or len(set(heads)) != len(heads):
        refuse(f"{len(heads)} columns and {len(cells)} cells", line_of(text, at) + 2)
    named = [head.upper().partition(" (")[0].replace(" ", "_") for head in heads]
    return dict(zip(named, cells, strict=True))


def seconds(word: str, line: int) -> int:
    """Return the elapsed time in whole seconds, as it was asked for."""
    took = figure(word, line)
    if took < 0.5 or abs(took - round(took)) > 0.1 + 0.02 * took:
        refuse(f"it measured {word} s, not whole seconds: it was cut short", line)
    return round(took)


def megabits(value: str, unit: str, line: int) -> float:
    """Return a throughput in Mbit/s."""
    scale, _, rest = unit.partition("bits/s")
    if scale not in _TEN or rest not in ("", "ec"):
        refuse(f"a throughput in {' '.join(unit.split())!r}: use netperf's -f m", line)
    return figure(value, line) * _TEN[scale]


def setting(said: Mapping[str, str], key: str, line: int) -> dict[str, Scalar]:
    """Return the message size that `key` holds, as the parameter; nothing if it says none."""
    word = said.get(key, "-1")
    return {} if word in ("-1", "0") else {"message": count(word, line)}
