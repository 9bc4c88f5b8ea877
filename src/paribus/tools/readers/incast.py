"""What the senders of an incast print: tables of perftest's ib_write_bw, mixed line by line.

Our script (tools/incast.py) puts sender, number of senders and queue pairs before each line:
"[incast 1/3 4]  65536      1000             0.00               23.35              0.044532".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paribus.core import Case, ParseError, Reading, Sample, Scalar, grouped
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_of, once, refuse, refuse_said, within
from paribus.tools.readers.perftest import VERSIONS
from paribus.tools.readers.perftest_text import COMPLAINTS, bandwidth_rows, heading, parameters_of

_LINE = re.compile(r"^\[incast ([1-9][0-9]*+/[0-9]++ [1-9][0-9]*+)\] ?(.*)", re.M)
_BEGIN = "[incast of "
_TITLE = re.compile(r"^\[incast of ([0-9]+)\] ([0-9]+(?: [0-9]+)*) *$", re.M)
_SPAN = re.compile(r"(begin|end) (\d{9,11})$")
_OVERLAP = 0.9


def read(text: str) -> Reading:
    """Return sum, fairness and each sender's rate, for every number of queue pairs."""
    if "[incast " not in text:
        refuse_said(
            text,
            ("incast: ", "Unable to find the Infiniband/RoCE device", "not found"),
            "incast failed:",
        )
        refuse("no line of a sender: '[incast 1/3 4] ...'")
    lines: dict[str, list[str]] = grouped(_LINE.findall(text))
    title = None
    if _BEGIN in text:
        title = _TITLE.match(text, once(text, _BEGIN, "the first line of an incast"))
    if sum(map(len, lines.values())) + bool(title) != text.count("[incast "):
        refuse("a line of a sender is not whole", line_of(text, text.find("[incast ")))
    senders = {who.partition("/")[2].partition(" ")[0] for who in lines}
    if len(senders) != 1:
        refuse(f"senders out of {' and '.join(sorted(senders))}: two outputs in one", alone=True)
    count = int(senders.pop())
    if title and int(title[1]) != count:
        refuse(f"{title[1]} senders were to send, the lines are of {count}")
    done = dict.fromkeys(who.partition(" ")[2] for who in lines)
    if title and set(title[2].split()) != done.keys():
        refuse(f"of {title[2]} queue pairs there are {' and '.join(sorted(done, key=int))}")
    complaints = within(COMPLAINTS, text)
    samples: list[Sample] = []
    guards: list[str] = []
    settings: dict[str, Scalar] = {}
    for pairs in map(int, done):
        spans, rates = [], []
        for sender in range(1, count + 1):
            who = f"{sender}/{count} {pairs}"
            if who not in lines:
                refuse(f"sender {sender} of {count} is missing with {pairs} queue pairs")
            try:
                rate, span, own = _sender(lines.pop(who), pairs, complaints)
            except ParseError as error:
                at = line_of(text, text.find(f"[incast {who}]"))
                refuse(f"sender {sender} with {pairs} queue pairs: {error.cause}", at)
            if settings.setdefault("size", own["size"]) != own["size"]:
                refuse(f"messages of {settings['size']} B and of {own['size']} B")
            rates.append(rate)
            spans.append(span)
        samples += _samples(pairs, rates)
        both = min(end for _, end in spans) - max(begin for begin, _ in spans)
        longest = max(end - begin for begin, end in spans)
        if both + 1 < _OVERLAP * longest:
            guards.append(f"with {pairs} queue pairs all senders sent for {max(both, 0)} s only")
    if lines:
        refuse(f"a sender {next(iter(lines)).partition(' ')[0]}")
    parameters = {"senders": count, **settings}
    return Reading(
        "incast", "not printed", parameters, count + 1, tuple(samples), {}, tuple(guards)
    )


def _sender(
    lines: list[str], pairs: int, complaints: Sequence[str]
) -> tuple[float, tuple[int, int], dict[str, Scalar]]:
    """Return one sender's rate in Gbit/s, when it began and ended, and the size of its messages."""
    text = "\n".join(lines)
    title, settings, at = heading(text, complaints)
    first, last = _SPAN.fullmatch(lines[0]), _SPAN.fullmatch(lines[-1])
    if not (first and last and first[1] == "begin" and last[1] == "end"):
        refuse("its beginning or its end is missing")
    once(text, "begin ", "its beginning")
    if title[1] != "RDMA_Write" or title[2] or title[3] != "BW":
        refuse(f"{title[0].strip()!r} is not RDMA_Write BW Test")
    own = parameters_of(settings, bidirectional=False)
    if own["queue_pairs"] != pairs:
        refuse(f"{pairs} queue pairs were asked for, it used {own['queue_pairs']}")
    unit, rows = bandwidth_rows(text, at)
    if unit != "Gb/sec" or len(rows) != 1:
        refuse(f"expected one row in Gb/sec, got {len(rows)} in {unit}")
    return rows[0][3], (int(first[2]), int(last[2])), {"size": rows[0][0]}


def _samples(pairs: int, rates: list[float]) -> list[Sample]:
    """Return sum, fairness and each sender's rate, in Gbit/s, with a number of queue pairs."""
    # Jain, Chiu, Hawe 1984: 1 if all have the same, 1/n if one has everything.
    fairness = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))
    case = Case.of(queue_pairs=pairs)
    senders = [Case.of(queue_pairs=pairs, sender=n) for n in range(1, len(rates) + 1)]
    own = single(case, throughput=sum(rates), fairness=fairness)
    return [*own, *Sample.column("sender", senders, rates)]


READER = Reader(
    "incast",
    read,
    marks=("[incast of ", "[incast 1/", "[incast 2/", "[incast 3/"),
    heads=(Head("[incast of "),),
    versions=VERSIONS,
    proof=(
        "every sender's table, whole, with the queue pairs and size asked for, size times message"
        " rate its rate; as many senders as ranks but one"
    ),
    means=(
        "`throughput` is the sum of the senders, Gbit = 10^9 bits; `fairness` is Jain's index, 1 if"
        " all get the same and 1/n if one gets all; senders that did not send together are reported"
    ),
)
