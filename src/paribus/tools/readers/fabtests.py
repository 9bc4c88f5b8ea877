"""What programs of libfabric print: fi_pingpong, and those of fabtests, such as fi_rdm_bw.

All print the same table; fi_pingpong alone counts what was acknowledged (#ack). Which program it
was, and with which provider, only the command says.

    bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
    64      200     =200     25k         1.28s      0.02    3194.07       0.00
"""

from __future__ import annotations

import re
from functools import partial

from paribus.core import Case, Reading, Sample
from paribus.readers.harness import NOT_WRITTEN
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import line_at, line_of, once, refuse, refuse_said

_COLUMNS = r" +total +time +MB/sec +usec/xfer +Mxfers/sec[ \t]*"
HEADINGS = {
    "fi_pingpong": "bytes   #sent   #ack     total       time     MB/sec    usec/xfer",
    "fabtests": "bytes   iters   total       time     MB/sec    usec/xfer",
}
_BEGINS = {"fi_pingpong": "bytes +#sent +#ack", "fabtests": "bytes +iters"}
_SIZE = r"\d+(?:\.\d)?[kmg]?"
_ROWS = {
    "fi_pingpong": re.compile(
        rf"\n *({_SIZE}) +(\d+[kmb]?) +([=+-]\d+[kmb]?) +({_SIZE}) +(\d+\.\d\d)s +(\d+\.\d\d)"
        r" +(\d+\.\d\d) +(\d+\.\d\d)[ \t]*(?=\n|\Z)"
    ),
    "fabtests": re.compile(
        rf"\n *({_SIZE}) +(\d+[kmb]?)( +)({_SIZE}) +(\d+\.\d\d)s +(\d+\.\d\d)"
        r" +(\d+\.\d\d) +(\d+\.\d\d)[ \t]*(?=\n|\Z)"
    ),
}
_LIKE_A_ROW = re.compile(r"\n *\d[\w.]* +\S+[^\n]*")
_COMPLAINTS = ("[error] ", "fi_getinfo", "ERROR: ", "failed to connect", "cq_readerr")
_TWO = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TEN = {"k": 10**3, "m": 10**6, "b": 10**9}


def read(name: str, text: str) -> Reading:
    """Return the time of a transfer by size; raises ParseError with the line."""
    refuse_said(text, _COMPLAINTS, "the program says")
    at = once(text, HEADINGS[name], "the heading of the table")
    if not re.match(rf"[ \t]*{_BEGINS[name]}{_COLUMNS}\Z", line_at(text, at)):
        refuse("the heading of the table is damaged", line_of(text, at))
    rows = list(_ROWS[name].finditer(text, at))
    if not rows or len(rows) != len(_LIKE_A_ROW.findall(text, at)):
        refuse("a row is not whole, or there is none", line_of(text, at) + 1)
    sizes: list[int] = []
    samples: list[Sample] = []
    iterations = {row[2] for row in rows}
    for row in rows:
        line = line_of(text, row.start()) + 1
        size, each = _size(row[1], line), float(row[7])
        if sizes and size <= sizes[-1]:
            refuse(f"{row[1]} after {sizes[-1]} bytes", line)
        if name == "fi_pingpong" and row[3] != f"={row[2]}":
            refuse(f"{row[2]} were sent, and {row[3]} acknowledged", line)
        sizes.append(size)
        if not each > 0:
            refuse(f"{row[7]} us: too small for what the program prints", line)
        if abs(float(row[6]) - size / each) > 0.006 + 0.006 * size / each / each:
            refuse(f"{row[6]} MB/s are not {size} bytes in {each} us", line)
        count = _count(row[2])
        if size and not any(_alike(row[4], count * size * xfers) for xfers in (1, 2)):
            refuse(f"{row[4]} are not {row[2]} times {size} bytes", line)
        took = float(row[5])
        if not any(abs(took - count * xfers * each / 1e6) < 0.006 + 0.1 * took for xfers in (1, 2)):
            refuse(f"{row[5]} s are not {row[2]} times {each} us", line)
        samples.append(Sample("time", Case.of(bytes=size), (each,)))
    if len(iterations) == 1:
        return Reading(name, NOT_WRITTEN, {"iterations": _count(rows[0][2])}, None, tuple(samples))
    return Reading(name, NOT_WRITTEN, {}, None, tuple(samples))


def _size(word: str, line: int) -> int:
    """Return the bytes of a size such as "1.5k", in powers of two; refuses a rounded one."""
    number, unit = (word[:-1], _TWO[word[-1]]) if word[-1] in _TWO else (word, 1)
    size = float(number) * unit
    if size != int(size):
        refuse(f"{word} is rounded: which size it was is not printed", line)
    return int(size)


def _count(word: str) -> int:
    """Return the number that a word such as "1k" says, in powers of ten."""
    return int(word[:-1]) * _TEN[word[-1]] if word[-1] in _TEN else int(word)


def _alike(word: str, size: int) -> bool:
    """Return whether a size, cut off after a digit, may be printed as `word`, such as "1.9m"."""
    number, unit = (word[:-1], _TWO[word[-1]]) if word[-1] in _TWO else (word, 1)
    digits = 0.1 if float(number) < 10 and unit > 1 else 1.0
    return float(number) * unit <= size * 1.1 and size <= (float(number) + digits) * unit * 1.1


_PROOF = (
    "the heading once, rows of sizes that rise, MB/s = bytes / time, total and seconds those of so"
    " many transfers; of fi_pingpong all acknowledged; no line of an error"
)
_MEANS = (
    "time of one transfer, of a ping-pong half the round trip, with two decimals; MB = 10^6; the"
    " provider is not printed, and of fabtests neither is the program: the command says it"
)
READERS = {
    name: Reader(
        name,
        partial(read, name),
        marks=(heading,),
        heads=(Head("bytes ", rf"{_BEGINS[name]}{_COLUMNS}(?=\n|\Z)"),),
        complaints=(),
        versions="libfabric 1.17" if name == "fi_pingpong" else "fabtests 2.x (its sources)",
        proof=_PROOF,
        means=_MEANS,
        from_text=name == "fabtests",
    )
    for name, heading in HEADINGS.items()
}
