"""What the two benchmarks around ucx_perftest have in common.

The client prints a table without saying which test it was and of what size; the server says that.
So both are kept: the server's output comes after the client's.
"""

from __future__ import annotations

import re
from functools import partial

from paribus.benchmarks._parameters import one_of, positive, sizes
from paribus.benchmarks._tool import count, figure, line_of, path_or, refuse, tool
from paribus.model import (
    Benchmark,
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

_RATE = "message rate (msg/s)"
_HEADING = re.compile(
    r"^\| +\| +\| +(latency|overhead) \(usec\) +\| +bandwidth \(MB/s\) +\|"
    r" +message rate \(msg/s\) +\|\n\+[-+]+\+\n"
    r"\| +(?:Stage|Test) +\| # iterations \| +(?:(\d+\.\d)%ile|typical) \| average \| overall"
    r" \| +average \| +overall \| +average +\| +overall +\|\n\+[-+]+\+$",
    re.M,
)
_FINAL = re.compile(
    r"\n(?:Final:)? +(\d+) +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+\.\d\d) +(\d+\.\d\d)"
    r" +(\d+) +(\d+)(?:  \S.*)? *$",
    re.M,
)
_BOX = re.compile(r"\n\| (API|Test|Send memory|Recv memory|Message size): +(\S.*?) +\| *$", re.M)
_IN_BOX = ["API", "Test", "Send memory", "Recv memory", "Message size"]
_COMPLAINT = re.compile(r"^.*UCX +ERROR .*$", re.M)
_WARNING = re.compile(r" UCX +WARN +(\S.*)$", re.M)
_UNNUMBERED = "| # iterations | typical | average | overall |"
"""How UCX began its columns before it named the last line."""

_IN_TABLE = ("[thread ", "| ", "+---", "Waiting for connection", "Accepted connection from ")
"""How lines begin that may stand in the table: progress, and what a server says on the same
terminal, which is checked by itself."""

# The server writes what it says when it ends, which is after the client: the client waits for it.
_SERVER = '"$@" >"$0.begun" 2>&1; mv "$0.begun" "$0"'
_CLIENT = """\
"$@" || exit
tries=0
until [ -e "$0" ] || [ "$tries" -eq 200 ]; do
  tries=$((tries + 1))
  sleep 0.05
done
"""
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


def command(request: Request) -> Program:
    """Return client and server; what the server says goes into a file that is read as well."""
    asked, program = request.parameters, path_or(request, "ucx_perftest")
    argv: tuple[str, ...] = (
        program,
        "{server}",
        "-p",
        "{port}",
        "-t",
        asked["test"],
        "-s",
        str(asked["bytes"][0]),
    )
    argv += ("-n", str(asked["iterations"]), "-w", str(asked["warmup"]), "-f")
    return Program(
        ("/bin/sh", "-c", _CLIENT, "{scratch}/ucx.txt", *argv),
        mpi=False,
        server=("/bin/sh", "-c", _SERVER, "{scratch}/ucx.txt", program, "-p", "{port}"),
        outputs=("ucx.txt*",),
        needs=(program,),
    )


def one_size(value: object) -> list[int]:
    """Return one message size in bytes, as a list."""
    found = sizes(value)
    if len(found) != 1:
        raise ValueError('ucx_perftest measures one size in a launch: write "8 B"')
    return found


def read(kind: str, name: str, text: str) -> Reading:
    """Return the last line of the table: rates, and latency or bandwidth, over all iterations."""
    if " ERROR " in text and (said := _COMPLAINT.search(text)):
        refuse(f"ucx_perftest says {said[0].strip()[-160:]!r}", line_of(text, said.start()))
    headings = _headings(text)
    finals = list(_FINAL.finditer(text, headings[0].end())) if headings else []
    client = [h for h in headings if finals and h.end() <= finals[-1].start()]
    if len(client) != 1:
        refuse(f"expected one table of ucx_perftest with its last line, got {len(client)}")
    heading = client[0]
    if heading[1] != kind:
        refuse(f"a table of {heading[1]}, not of {kind}", line_of(text, heading.start()))
    if text.count("Final:", heading.end()) > 1:
        refuse("'Final:' is there twice: two outputs in one", line_of(text, heading.end()))
    if len(finals) != 1:
        refuse(f"expected one last line, got {len(finals)}", line_of(text, finals[0].start(1)))
    final = finals[0]
    line = line_of(text, final.start(1))
    between = text[heading.end() : final.start()].strip("\n")
    if any(
        not row.startswith(_IN_TABLE) and not _WARNING.search(row) for row in between.splitlines()
    ):
        refuse("something between the heading and the last line", line)
    whole = figure(final[4], line)
    rate, band = figure(final[8], line), figure(final[6], line)
    if abs(whole * rate / 1e6 - 1) > 0.01 + 0.0006 / whole + 0.6 / rate:
        refuse(f"{final[8]} messages/s of {final[4]} us each", line)
    parameters: dict[str, Scalar] = {"iterations": count(final[1], line)}
    said_by_server = _server(text, parameters)
    case = Case.of(bytes=said_by_server) if said_by_server else Case()
    if said_by_server:
        exact = rate * said_by_server / 2**20
        if abs(exact - band) > 0.0051 + exact * (0.6 / rate + 1e-6):
            refuse(f"{band} MiB/s are not {final[8]} messages/s of {said_by_server} B", line)
    if kind == "latency":
        values = {"latency": whole, "latency_median": figure(final[2], line)}
        if heading[2] not in (None, "50.0"):  # UCX 1.9 calls the median typical
            refuse(f"percentile {heading[2]} instead of 50.0", line)
    else:
        values = {"bandwidth": band, "message_rate": rate}
    samples = tuple(Sample(metric, case, (value,)) for metric, value in values.items())
    warned = dict.fromkeys(_WARNING.findall(text)) if " WARN " in text else {}
    guards = tuple(f"UCX warns: {words[:120]!r}" for words in list(warned)[:4])
    return Reading(name, "1", parameters, None, samples, guards=guards)


def _headings(text: str) -> list[re.Match[str]]:
    """Return the headings of all tables: a server may print one too, without a last line."""
    found = []
    at = text.find(_RATE)
    while at >= 0:
        heading = _HEADING.match(text, text.rfind("\n", 0, at) + 1)
        if not heading and text.find(_UNNUMBERED, at, at + 600) >= 0:
            refuse("UCX before 1.9 does not tell its last line: use a later one", line_of(text, at))
        if not heading:
            refuse("the heading of a table of ucx_perftest is not whole", line_of(text, at))
        found.append(heading)
        at = text.find(_RATE, heading.end())
    return found


def _server(text: str, parameters: dict[str, Scalar]) -> int:
    """Return the message size that the server says, and set the test; 0 where it says nothing."""
    said = _BOX.findall(f"\n{text}")
    if not said and "| API:" not in text and "Accepted connection" not in text:
        return 0
    if [key for key, _ in said] != _IN_BOX:
        at = max(text.find("| API:"), 0)
        refuse("what the server says of the test is not whole", line_of(text, at))
    _, test, sent, received, size = (words for _, words in said)
    parameters["test"] = _NAMES.get(test, test)
    if [*sent.split(), *received.split()] != [sent, received]:
        refuse("the server does not say which memory", line_of(text, text.find("| API:")))
    parameters["memory"] = f"{sent},{received}"
    return count(size, line_of(text, text.find("| Message size")))


def ucx(name: str, kind: str, summary: str, metrics: tuple[Metric, ...], size: int) -> Benchmark:
    """Return the benchmark `name`; `kind` is how its table begins, `size` bytes its message."""
    other = "   " if kind == "latency" else "  "
    tests = tuple(test for test in TESTS if test.endswith("_lat") == (kind == "latency"))
    return tool(
        name,
        layer="network",
        summary=summary,
        metrics=metrics,
        reader=partial(read, kind, name),
        marks=(f"{other}{kind} (usec)        |   bandwidth (MB/s)  |",),
        command=command,
        parameters={
            "bytes": Parameter([size], one_size, "-s: bytes of a message"),
            "test": Parameter(tests[0], one_of(*tests), "-t"),
            "iterations": Parameter(100_000, positive, "-n: messages that count"),
            "warmup": Parameter(10_000, positive, "-w: messages before that"),
        },
        ranks=1,
        program="ucx_perftest",
        get="Debian, Ubuntu, Fedora: ucx-utils or ucx; https://github.com/openucx/ucx",
        versions="1.9 to 1.18",
        proof=(
            "no UCX ERROR, one table with its last line, iterations as asked, rate, time and"
            " bandwidth agree; test, memory and message size as asked, as the server says"
        ),
        means=(
            "means over all messages (`overall`); its MB are 2^20 B; a bandwidth is what the"
            " sender sees: the last messages may still be on their way; a client's output alone"
            " tells no size"
        ),
    )
