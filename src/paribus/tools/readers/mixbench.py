"""What mixbench prints: the roofline of a CPU or GPU, as a table with a row for each intensity.

A row is the number of iterations, then for each type operations per byte, ms, Gflop/s and GB/s:
"            1,      0.750,    1.39,   36.24,  48.31,      0.375,    1.81,   13.93,  37.16, ...".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import inf

from paribus.core import Reading, Sample, Scalar
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, of_device, point
from paribus.readers.text import found, line_at, line_of, once, refuse

_HEADING = "Experiment ID, Single Precision ops,,,,"
_TITLE = re.compile(r"^mixbench(?:-(\w+))?(/\S+)? \(([^\n()]+)\)[ \t]*$", re.M)
_SIZE = re.compile(r"(?:Working memory|Buffer) size: +(\d+)MB[ \t]*$", re.M)
_THREADS = re.compile(r"Total threads: (\d+)[ \t]*$", re.M)
_DEVICE = re.compile(r"Device: +(\S[^\n]*)$", re.M)
_CLOSING = re.compile(r"\n-{60,}[ \t]*(?=\n|\Z)")
_GROUPS = {
    "Single Precision ops": "sp",
    "Double precision ops": "dp",
    "Half precision ops": "hp",
    "Integer operations": "int",
}


def read(text: str) -> Reading:
    """Return the reading of mixbench's output; raises ParseError with the line."""
    heading = once(text, _HEADING, "the heading of mixbench's table")
    first = line_of(text, heading)
    middle = text.find("\n", heading)
    start = text.find("\n", middle + 1)
    if not line_at(text, heading).startswith(_HEADING) or not 0 <= middle < start:
        refuse("the heading of the table is damaged", first)
    groups = _groups(text[heading:middle], text[middle + 1 : start])
    if not groups:
        refuse("the heading of the table is not mixbench's", first + 1)
    title = _TITLE.search(text, 0, heading)
    if title is None:
        refuse("the title with its version is missing before the table", first)
    if title[2] == "/alternating":
        refuse(
            "the program named alternating measures something else (compute steps between"
            " accesses, from none to nothing but them) and is not read; the one named read-only is",
            line_of(text, title.start()),
        )
    columns = _columns(text, start, len(groups))
    iterations = tuple(map(int, columns[0]))
    if iterations[0] or any(b <= a for a, b in pairwise(iterations)):
        refuse("the rows do not begin with 0 iterations and rise from each to the next", first + 2)
    cases = [point(iterations=n) for n in iterations]
    samples: list[Sample] = []
    for name in sorted(groups, key=("dp", "sp", "int", "hp").index):
        at = 1 + 4 * groups.index(name)
        rates = _rates(columns[at : at + 4], first + 2)
        if rates:
            samples += Sample.column(name, cases, rates)
    if not samples:
        refuse("the device can do none of what was tried: every figure is inf", first)
    parameters: dict[str, Scalar] = {"program": (title[1] or "gpu") + (title[2] or "")}
    before = text[:heading]
    if sizes := found(before, " size: ", _SIZE):
        parameters["memory_mib"] = int(sizes[0][1])
    if threads := found(before, "Total threads: ", _THREADS):
        parameters["threads"] = int(threads[0][1])
    devices = found(before, "Device: ", _DEVICE)
    facts = {"mixbench.device": devices[0][1].strip()} if devices else {}
    return Reading("mixbench", title[3], parameters, None, tuple(samples), facts)


@lru_cache(maxsize=8)
def _groups(first: str, second: str) -> tuple[str, ...]:
    """Return the types ("sp", "dp", ...) in the two lines of the heading, none if it is damaged."""
    groups = tuple(_GROUPS.get(name.strip(), "") for name in first.split(",")[1::4])
    expected = ["Compute iter"]
    for name in groups:
        expected += ["Iops/byte" if name == "int" else "Flops/byte", "ex.time"]
        expected += ["GIOPS" if name == "int" else "GFLOPS", "GB/sec"]
    known = all(groups) and len(set(groups)) == len(groups)
    names = [name.strip().rstrip("s") for name in second.split(",")]
    return groups if known and names == [word.rstrip("s") for word in expected] else ()


def _columns(text: str, at: int, groups: int) -> list[tuple[str, ...]]:
    """Return the columns of the rows that begin after `at`, the end of the heading."""
    form = _row(groups)
    closing = _CLOSING.search(text, at)
    end = closing.start() if closing else len(text)
    rows = form.findall(text, at, end + 1)
    if closing is None or not rows or len(rows) != text.count("\n", at, end):
        while row := form.match(text, at):
            at = row.end()
        line = line_of(text, at + 1)
        if not text[at:].strip():
            refuse("the closing line of the table is missing: the program ended before", line)
        refuse(f"expected a row or the closing line, got {line_at(text, at + 1)[:60]!r}", line)
    if again := form.search(text, closing.end()):
        refuse("a row after the end of the table", line_of(text, again.start() + 1))
    return list(zip(*rows, strict=True))


@cache
def _row(groups: int) -> re.Pattern[str]:
    """Return the pattern of a row; it begins with the end of the line before, as rows follow on."""
    per_byte, time, rate = "[0-9]++[.][0-9]{3}", "[0-9]++[.][0-9]{2}", "[0-9]++[.][0-9]{2}|inf"
    group = rf", *+({per_byte}), *+({time}), *+({rate}), *+({rate})"
    return re.compile(rf"\n *+([0-9]++){group * groups}[ \t]*(?=\n)")


def _rates(columns: Sequence[Sequence[str]], first: int) -> list[float]:
    """Return the Gflop/s in the columns of a type; none if the device cannot compute it."""
    per_byte, milliseconds, rates, gbps = (list(map(float, column)) for column in columns)
    if not any(milliseconds) and {*rates, *gbps} == {inf}:
        return []
    rows = zip(per_byte, milliseconds, rates, gbps, strict=True)
    for line, (operations, ms, rate, speed) in enumerate(rows, first):
        if not (0 < rate < inf and speed < inf and ms > 0):
            refuse(f"{rate} at {speed} GB/s in {ms} ms is not a measurement", line)
        if abs(operations * speed - rate) > 0.006 + 0.006 * operations + 0.0006 * speed:
            refuse(f"{rate} is not {operations} operations a byte at {speed} GB/s", line)
    return rates


READER = Reader(
    "mixbench",
    read,
    marks=(_HEADING,),
    heads=(Head("mixbench", r"mixbench(?:-\w+)?(?:/\S+)? \([^\n()]+\)[ \t]*(?=\n)"),),
    versions="0.02 to 0.04",
    proof=(
        "title, heading and closing line, rows from 0 iterations on that rise, Gflop/s equal to"
        " operations per byte times GB/s; a precision may be unsupported as a whole (inf)"
    ),
    means=(
        "the first rows are memory bandwidth (operations per byte times GB/s), the last the"
        " arithmetic peak; two decimals; the CPU program keeps the best of 19 repetitions, and of"
        " 9 with half the threads"
    ),
    facts=(of_device("mixbench.device"),),
)
