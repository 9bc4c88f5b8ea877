"""What STREAM (stream.c of John D. McCalpin) prints."""

from __future__ import annotations

import re

from paribus.core import Case, Reading, Sample, Scalar
from paribus.readers.figures import count
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import line_at, line_of, once, refuse, refuse_said

_TITLE = "STREAM version $Revision: "
_HEADING = "Function    Best Rate MB/s  Avg time     Min time     Max time"
_VERSION = re.compile(r"(5\.10) \$")
_ROW = re.compile(r"\n(\w+): +(\d+\.\d) +(\d+\.\d{6}) +(\d+\.\d{6}) +(\d+\.\d{6})[ \t]*(?=\n|\Z)")
_KERNELS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Arrays that each kernel reads or writes."""

_VALUES = (
    ("element_bytes", re.compile(r"\nThis system uses (\d+) bytes per array element\.$", re.M)),
    (
        "elements",
        re.compile(r"\nArray size = (\d+) \(elements\), Offset = \d+ \(elements\)$", re.M),
    ),
    ("times", re.compile(r"\nEach kernel will be executed (\d+) times\.$", re.M)),
    ("threads", re.compile(r"\nNumber of Threads counted = (\d+)$", re.M)),
)


def read(text: str) -> Reading:
    """Return the reading of STREAM's output; raises ParseError with the line."""
    start = once(text, _TITLE, "the title of STREAM")
    version = _VERSION.match(text, start + len(_TITLE))
    if version is None:
        title = line_at(text, start)[:60]
        refuse(f"this version is not read, 5.10 is: {title!r}", line_of(text, start), form=True)
    refuse_said(text, ("Failed Validation",), "STREAM says")
    heading = once(text, _HEADING, "the heading of the table")
    once(text, "\nSolution Validates: avg error less than ", "'Solution Validates'")
    parameters: dict[str, Scalar] = {}
    for key, form in _VALUES:
        if len(found := form.findall(text, start, heading)) == 1:
            parameters[key] = count(found[0])
        elif key != "threads" or found:
            refuse(f"{key} does not stand once before the table")
    array = int(parameters["elements"]) * int(parameters["element_bytes"])
    if (at := text.find("\n", heading)) < 0:
        refuse("the table has no rows", line_of(text, heading))
    samples = []
    for name, arrays in _KERNELS.items():
        row = _ROW.match(text, at)
        if row is None or row[1] != name:
            instead = line_at(text, at + 1)[:60]
            refuse(f"expected the row of {name}, got {instead!r}", line_of(text, at + 1))
        rate, mean, least, most = map(float, row.groups()[1:])
        if not rate > 0:
            refuse(f"{rate} MB/s are not a measurement", line_of(text, at + 1))
        seconds = arrays * array * 1e-6 / rate
        if abs(seconds - least) > 1e-6 + 1e-4 * seconds or not least <= mean <= most:
            cause = f"{row[2]} MB/s are not {arrays} arrays in {row[4]} s"
            refuse(cause, line_of(text, at + 1))
        samples.append(Sample(name.lower(), Case(), (rate,)))
        at = row.end()
    samples.reverse()
    return Reading("stream", version[1], parameters, None, tuple(samples))


READER = Reader(
    "stream",
    read,
    marks=(_TITLE,),
    heads=(Head(_TITLE, above="-{50,70}"),),
    versions="5.10 of stream.c",
    proof=(
        "title, heading and 'Solution Validates' once, four rows in order, the rate equal to the"
        " bytes divided by the minimum time, min <= avg <= max"
    ),
    means=(
        "MB = 10^6, from the fastest repetition but the first, so a peak and not a mean; bytes"
        " that a cache reads before it writes are not counted; arrays must be four times the"
        " caches, else it is a cache's bandwidth"
    ),
)
