"""What the OSU Micro-Benchmarks (5.x to 7.x) print: a title, settings and a table, such as

    # OSU MPI Latency Test v7.4
    # Size          Latency (us)
    8                       0.42

A value is a mean over iterations: one sample for each case. A table is read by one compiled pattern
for all of its rows, made of the columns that its heading names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple, NoReturn

from paribus.core import Case, Reading, Sample, Scalar
from paribus.readers.heads import Head
from paribus.readers.osu_programs import NOT_RUN, PROGRAMS, marks_of
from paribus.readers.reader import Reader, point, single
from paribus.readers.text import line_at, line_of, once, refuse, refuse_said

_BEGIN = "# OSU "
_TITLE = re.compile(r"# OSU MPI(\S*) (.+?)(?: Test)? v(\d+\.\d+[\w.]*)[ \t]*$")
_SETTING = re.compile(
    r"# *(?:\[ *)?([A-Za-z][\w ]*?) ?: ([\w/]+)\.?(?: \] \[ ([a-z ]+): (\w+) \])?$"
)
_WITHOUT_MPI = re.compile(r"# OSU (?!MPI)[A-Za-z][^\n]* v\d+\.\d")
_BUFFERS = re.compile(
    r"# (?:Send Buffer|Rank 0 Memory) on (\w[\w ]*?) \("
    r".* (?:Receive Buffer|Rank 1 Memory) on (\w[\w ]*?) \("
)
_COLUMNS = re.compile(
    r"# *(?:(Size)\s+)?((?:Avg )?Latency ?\(us\)|Bandwidth ?\(MB/s\)|MB/s)"
    r"(?:\s+(Messages/s))?(?:\s+(Min Latency)\(us\)\s+(Max Latency)\(us\)\s+(Iterations))?"
    r"(?:\s+(Validation))?((?:\s+P\d+ Tail (?:Lat\(us\)|BW\(MB/s\)))*)[ \t]*$"
)
_OVERLAP = re.compile(
    r"#? *(?:(Size)\s+)?Overall\(us\)\s+(Compute)\(us\)"
    r"(?:\s+(Coll\. Init)\(us\)\s+(MPI_Test)\(us\)\s+(MPI_Wait)\(us\))?\s+(Pure Comm\.)\(us\)"
    r"(?:\s+(Min Comm\.)\(us\)\s+(Max Comm\.)\(us\))?\s+(Overlap)\(%\)(?:\s+(Validation))?[ \t]*$"
)
"""The heading of non-blocking collectives; that of osu_ibarrier has no # in 5.3."""

_ABOVE = re.compile(
    r"^[ \t]*(?:# Number of (?:(?P<side>Sender|Receiver) (?P<what>threads)"
    r"|forked (?P<forked>processes) in (?P<by>sender|receiver)): (?P<number>\d+)"
    r"|Dimensions size = (?P<dimensions>\d+))[ \t]*$",
    re.M,
)
"""What osu_latency_mt, osu_latency_mp and the programs with neighbours print above the title."""

_TAIL = re.compile(r"P\d+")
_FORMS = {"Size": r"[0-9]++", "Iterations": r"[0-9]++", "Validation": "(?:Pass|Fail)"}
_INIT_TITLE = re.compile(r"# OSU MPI Init Test v(\d+\.\d+[\w.]*)\s*$", re.M)
_INIT_FIGURES = re.compile(r"^nprocs: (\d+), min: (\d+) ms, max: (\d+) ms, avg: (\d+) ms\s*$", re.M)
# What stands before rows: blank lines only before the first table.
_FIRST_HEAD = re.compile(r"(?:[ \t]*+(?:(?:#|Overall\(us\))[^\n]*+(?:\n|\Z)|\n))*")
_NEXT_HEAD = re.compile(r"(?:[ \t]*+#[^\n]*+(?:\n|\Z))*")
_CELL = r"(?:[\d.]+|Pass|Fail|-?(?:nan|NaN|inf)\w*)"
_NUMBERS = re.compile(rf"^[ \t]*{_CELL}(?:[ \t]+{_CELL})*[ \t]*$", re.M)
_COMPLAINTS = ("This test requires ", "Invalid option [", "Error: '")
_INIT = "Init"
_READ = frozenset([*(program.title.lower() for program in PROGRAMS.values()), _INIT.lower()])
"""The programs that are read, as their titles name them, in lower case."""


class _Title(NamedTuple):
    """What a title says: the program, its version, and the kind of device, "" for none."""

    program: str
    device: str
    version: str


class _Head(NamedTuple):
    """What stands before the rows of a table: settings, columns and the pattern of all its rows.

    `tails` are the columns with percentiles of latencies. `rows` is None if there is no heading;
    `again` is the place of a second heading among the lines, else 0.
    """

    settings: Mapping[str, Scalar]
    datatype: str
    columns: tuple[str, ...]
    tails: tuple[str, ...]
    rows: re.Pattern[str] | None
    again: int


class _Table(NamedTuple):
    """The rows under one heading, by column; they begin at `at` of `text`, and end at `end`."""

    head: _Head
    columns: Mapping[str, list[str]]
    text: str
    at: int
    end: int

    def figures(self, name: str) -> list[float]:
        return list(map(float, self.columns[name]))

    def settings(self) -> dict[str, Scalar]:
        """Return the settings that the table shows."""
        found: dict[str, Scalar] = {"validation": "Validation" in self.columns}
        if self.head.datatype:
            found["datatype"] = self.head.datatype
        if "Iterations" in self.columns:
            counts = list(dict.fromkeys(self.columns["Iterations"]))
            found["iterations"] = int(counts[0]) if len(counts) == 1 else "/".join(counts)
        return found

    def refuse(self, cause: str, row: int = 0) -> NoReturn:
        """Raise ParseError with the line of a row."""
        refuse(cause, line_of(self.text, self.at) + row)


def read(program: str, text: str) -> Reading:
    """Return the reading of one OSU program's output; raises ParseError with the line."""
    expected, metric, ranks, column, *_ = PROGRAMS[program]
    refuse_said(text, ("DATA VALIDATION ERROR",), "validation failed:")
    at = text.find(_BEGIN)
    if at >= 0 and text.find(_BEGIN, at + 1) >= 0:
        at, end = _own_part(text, expected)
        text = text[:end]
    line = line_at(text, at).lstrip() if at >= 0 else ""
    title = _title(line)
    if title is None:
        refuse_said(text, _COMPLAINTS, "the program refused:")
        refuse("no title of an OSU program with its version: it did not begin")
    if title.program.lower() != expected.lower():
        refuse(f"expected {expected!r}, got {line.rstrip()!r}", line_of(text, at))
    settings: dict[str, Scalar] = {"device": title.device} if title.device else {}
    settings |= _above(program, text, at)
    tables = _tables(text, at + len(line), settings)
    if not tables:
        refuse("no table was printed", line_of(text, at))
    _check_rest(text, tables[-1].end)
    samples: list[Sample] = []
    for table in tables:
        samples += _samples(table, metric, column, several=len(tables) > 1)
    settings |= tables[-1].settings()
    if len(tables) > 1:
        settings["datatype"] = "all"
        if unnamed := [table for table in tables if not table.head.datatype]:
            unnamed[0].refuse("one table of several, and not of which MPI type")
    if "pairs" in settings:
        ranks = 2 * int(settings["pairs"])
    return Reading(program, title.version, settings, ranks, tuple(samples))


def _read_init(text: str) -> Reading:
    """Return the slowest rank's MPI_Init; the program prints whole milliseconds."""
    if text.count("# OSU MPI") > 1:
        at, end = _own_part(text, _INIT)
        text = text[:end]
    else:
        at = once(text, "# OSU MPI", "the title of osu_init")
    title, figures = _INIT_TITLE.match(text, at), _INIT_FIGURES.findall(text, at)
    if not title or len(figures) != 1 or text.count("nprocs:") != 1:
        refuse("expected title and 'nprocs: ..., min: ... ms' once", line_of(text, at))
    ranks, low, high, mean = map(int, figures[0])
    if not 0 < low <= mean <= high:
        refuse(f"the mean {mean} ms is not between {low} and {high} ms", line_of(text, at) + 1)
    samples = single(init=float(high), init_mean=float(mean))
    return Reading("osu_init", title[1], {}, ranks, samples)


def _above(program: str, text: str, at: int) -> dict[str, Scalar]:
    """Return settings that some programs print above their title, which is at `at`."""
    found: dict[str, Scalar] = {}
    for line in _ABOVE.finditer(text, 0, at):
        if line["dimensions"]:
            found["dimensions"] = int(line["dimensions"])
        else:
            side, what = line["side"] or line["by"], line["what"] or line["forked"]
            found[f"{side.lower()}_{what}"] = int(line["number"])
    if "dimensions" in found and "neighbor" not in program:
        refuse(
            f"a graph of neighbours stands above: it is not of {program}, but of"
            " osu_neighbor_alltoallw, which has its title up to 7.4 and is read from 7.5 on",
            line_of(text, at),
        )
    return found


def _own_part(text: str, title: str) -> tuple[int, int]:
    """Return where the title of one of several programs stands, and where the next title does.

    Scripts run all OSU programs into one log. Outputs of programs that are not read may stand
    beside it; raises ParseError for another that is read, whose rows could be taken for its own.
    """
    places = [found.start() for found in re.finditer(_BEGIN, text)]
    places = [at for at in places if not _WITHOUT_MPI.match(text, at) and not _twin(text, at)]
    titles = [_title(line_at(text, at).lstrip()) for at in places]
    names = [one.program.lower() if one else "" for one in titles]
    own = title.lower()
    if names.count(own) != 1 or not _READ.isdisjoint({*names} - {own}) or "" in names:
        refuse(f"{len(places)} titles of OSU programs: more than one output", alone=True)
    at = places[names.index(own)]
    again = text.find(_BEGIN, at + 1)
    return at, again if again >= 0 else len(text)


def _twin(text: str, at: int) -> bool:
    """Return whether the line below is the same: osu_mbw_mr 7.1 prints its title twice."""
    line = line_at(text, at)
    return text.startswith(f"{line}\n", at + len(line) + 1)


@lru_cache(maxsize=64)
def _title(line: str) -> _Title | None:
    """Return the parts of a title, None for any other line."""
    found = _TITLE.match(line.replace("-CUDA MANAGED", "-MANAGED"))  # of blocking collectives
    if found is None:
        return None
    # The device may stand in the midst: "-CUDA Latency", "_Put-CUDA Latency".
    own, _, device = found[1].partition("-")
    program = found[2].replace("Neighborhood Alltoall", "Neighborhood All-to-All")  # up to 7.4
    return _Title(f"{own} {program}".strip(), device, found[3])


def _tables(text: str, at: int, settings: dict[str, Scalar]) -> list[_Table]:
    """Return the tables from `at` on; adds to `settings`."""
    tables: list[_Table] = []
    while True:
        lines = (_NEXT_HEAD if tables else _FIRST_HEAD).match(text, at)
        if lines is None:
            return tables
        head = _head(lines[0])
        if head.again:
            refuse("a second heading without rows between", line_of(text, at) + head.again)
        settings |= head.settings
        if head.rows is None:
            return tables
        first = lines.end()
        block = head.rows.match(text, first)
        if block is None:
            reported = line_at(text, first).strip()
            refuse(f"expected a row, got {reported[:80]!r}", line_of(text, first))
        words, at = block[0].split(), block.end()
        columns = {name: words[i :: len(head.columns)] for i, name in enumerate(head.columns)}
        tables.append(_Table(head, columns, text, first, at))


# Most outputs of a program begin like the one before.
@lru_cache(maxsize=64)
def _head(lines: str) -> _Head:
    """Return the head of a table from the lines before its rows."""
    heading: re.Match[str] | None = None
    datatype, again = "", 0
    settings: dict[str, Scalar] = {}
    for number, line in enumerate(map(str.strip, lines.split("\n"))):
        if match := _COLUMNS.match(line) or _OVERLAP.match(line):
            again = again or (number if heading else 0)
            heading = match
        elif match := _SETTING.match(line):
            if match[1] == "Datatype":
                datatype = match[2]
                continue
            for key, value in (match.group(1, 2), match.group(3, 4)):
                if key:
                    word = key.lower().replace(" ", "_").removesuffix("_size")
                    settings[word] = int(value) if value.isdigit() else value
        elif match := _BUFFERS.match(line):
            settings["buffers"] = f"{match[1]} {match[2]}"
    if heading is None:
        return _Head(settings, datatype, (), (), None, again)
    overlap = heading.re is _OVERLAP
    percentiles = "" if overlap else heading[8]
    tails = tuple(_TAIL.findall(percentiles))
    own = heading.groups()[1:] if overlap else heading.groups()[2:7]
    names = (*(name for name in (heading[1], "value", *own) if name), *tails)
    forms = r"[ \t]++".join(_FORMS.get(name, r"[0-9]++\.[0-9][0-9]") for name in names)
    rows = re.compile(rf"(?:[ \t]*+{forms}[ \t]*+(?:\n|\Z))+")
    # Percentiles of bandwidths count from the other end, so they are not in order.
    return _Head(settings, datatype, names, () if "BW" in percentiles else tails, rows, again)


def _samples(table: _Table, metric: str, column: str, *, several: bool) -> list[Sample]:
    """Return a sample per row, and one of the 99th percentile where it was printed."""
    cases = _check(table, table.head.datatype if several else "")
    values = table.figures(column)
    if not min(values) > 0:
        reported = f"{min(values)}: too small for what the program prints"
        table.refuse(reported, values.index(min(values)))
    found = Sample.column(metric, cases, values)
    if "Overlap" in table.columns:
        found += Sample.column("pure_time", cases, table.figures("Pure Comm."))
    if "P99" in table.head.tails:
        found += Sample.column(f"{metric}_p99", cases, table.figures("P99"))
    return found


def _check(table: _Table, datatype: str) -> tuple[Case, ...]:
    """Return the cases of the rows; refuses rows that contradict themselves or each other."""
    columns, tails = table.columns, table.head.tails
    cases: tuple[Case, ...] = (Case(),)
    if "Size" in columns:
        sizes = list(map(int, columns["Size"]))
        for row, (size, after) in enumerate(pairwise(sizes), 1):
            if after != (2 * size or 1):
                table.refuse(f"the size after {size} is {after}", row)
        cases = tuple(case_of(size, datatype) for size in sizes)
    elif len(columns["value"]) > 1:
        table.refuse("a second row without sizes", 1)
    if "Fail" in columns.get("Validation", ()):
        row = columns["Validation"].index("Fail")
        table.refuse(f"validation failed: row {row + 1} of the table", row)
    if "Min Latency" in columns:
        times = map(table.figures, ("Min Latency", "value", "Max Latency"))
        for row, (low, mean, high) in enumerate(zip(*times, strict=True)):
            if not low <= mean <= high:
                table.refuse(f"the mean {mean} is not between {low} and {high}", row)
    if "Messages/s" in columns:
        rates = map(table.figures, ("Size", "value", "Messages/s"))
        for row, (size, rate, messages) in enumerate(zip(*rates, strict=True)):
            # Both have two decimals: half a step of each, and what 1e-9 of doubles may lose.
            if abs(size * messages - 1e6 * rate) > 0.005 * (size + 1e6) + 1e-3 * rate:
                table.refuse(f"{rate} MB/s are not {messages} messages/s", row)
    if "Overlap" in columns:
        _check_overlap(table)
    ordered = sorted(tails, key=lambda name: int(name[1:]))
    for one, other in pairwise(map(table.figures, ordered)):
        if any(a > b for a, b in zip(one, other, strict=True)):
            table.refuse("a higher percentile is below a lower one")
    return cases


def _check_overlap(table: _Table) -> None:
    """Refuse an overlap that does not follow from the times beside it, before they were rounded.

    It is 100 % less what communication adds to the computation, in percent of what it takes alone.
    """
    times = map(table.figures, ("value", "Compute", "Pure Comm.", "Overlap"))
    for row, (whole, compute, pure, overlap) in enumerate(zip(*times, strict=True)):
        if not pure > 0:
            table.refuse(f"{pure} us of communication alone: too small for what is printed", row)
        wanted = max(0.0, 100 - 100 * (whole - compute) / pure)
        slack = 0.02 + 100 * (0.0101 + 0.0051 * abs(whole - compute) / pure) / pure
        if abs(overlap - wanted) > slack or whole < compute - 0.0101:
            table.refuse(f"an overlap of {overlap} % does not fit the times beside it", row)


def case_of(size: int, datatype: str) -> Case:
    """Return the case of a size, and of an MPI type where there are several."""
    return point(bytes=size, datatype=datatype) if datatype else point(bytes=size)


def _check_rest(text: str, at: int) -> None:
    """Refuse rows, or a heading, after the end of the tables: something stands between rows."""
    if match := _NUMBERS.search(text, at):
        refuse(
            f"a row after the end of the table: {match[0].strip()[:80]!r}",
            line_of(text, match.start()),
        )
    for mark in ("# Size", "# Datatype"):
        if (again := text.find(mark, at)) >= 0:
            refuse("another table after the end of the table", line_of(text, again))


_VERSIONS = "5.3 to 7.5"
_PROOF = (
    "title and heading once, sizes that double, rows of as many columns as the heading has, nothing"
    " between them, avg between min and max, no failed validation, no failed launch"
)
_MEANS = (
    "means over iterations with two decimals, so 0.11 us is known to 9 %; min and max are over"
    " ranks; 7.x reads the clock in every iteration and 5.x once around them; the ranks of a"
    " collective are not printed; other programs measure something else by the same name"
)
_BEFORE_TITLE = r"Dimensions size = .*|Time took to create .*|# Number of .*: \d+"
READERS = {
    name: Reader(
        name,
        partial(read, name),
        marks=marks_of(program.title),
        heads=tuple(Head(mark, above=_BEFORE_TITLE) for mark in marks_of(program.title)),
        complaints=("This test requires ",),
        versions=_VERSIONS,
        proof=_PROOF,
        means=_MEANS,
        from_text=name in NOT_RUN,
    )
    for name, program in PROGRAMS.items()
}
READERS["osu_init"] = Reader(
    "osu_init",
    _read_init,
    marks=("# OSU MPI Init Test v",),
    heads=(Head("# OSU MPI Init Test v"),),
    versions=_VERSIONS,
    proof="title and the line of figures once, min <= avg <= max, the ranks asked for",
    means="whole milliseconds, so 20 ms are known to 5 %; the launcher's own start is not in it",
)
