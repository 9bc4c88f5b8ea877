"""What the OSU Micro-Benchmarks (5.x to 7.x) have in common: command line and tables.

They print one value per size, already a mean over iterations: one sample per case. A table is
read by one compiled pattern for all of its rows, made of the columns that its heading names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise

from paribus.benchmarks._parameters import flag, one_of, positive, sizes
from paribus.benchmarks._tool import line_at, line_of, path_or, refuse, tool
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

GET = "https://mvapich.cse.ohio-state.edu/benchmarks: ./configure CC=mpicc CXX=mpicxx && make"
VERSIONS = "5.3 to 7.5"
PROOF = (
    "title and heading once, sizes that double, rows of as many columns as the heading has and"
    " nothing between them, avg between min and max, no validation failed, no word of a launcher"
    " that the launch failed"
)
MEANS = (
    "means over iterations with two decimals, so 0.11 us is known to 9 %; min and max are over"
    " ranks; 7.x reads the clock in every iteration and 5.x once around them; the ranks of a"
    " collective are not printed; other programs measure something else by the same name"
)

_TITLE = re.compile(r"^[ \t]*# OSU MPI(\S*) (.+?)(?: Test)? v(\d+\.\d+[\w.]*)[ \t]*$", re.M)
_SETTING = re.compile(r"# *(?:\[ *)?([A-Za-z][\w ]*?) ?: (\w+)\.?(?: \] \[ ([a-z ]+): (\w+) \])?$")
_BUFFERS = re.compile(r"# Send Buffer on (\w+).* Receive Buffer on (\w+)")
_COLUMNS = re.compile(
    r"# *(?:(Size)\s+)?((?:Avg )?Latency ?\(us\)|Bandwidth ?\(MB/s\)|MB/s)"
    r"(?:\s+(Messages/s))?(?:\s+(Min Latency)\(us\)\s+(Max Latency)\(us\)\s+(Iterations))?"
    r"(?:\s+(Validation))?((?:\s+P\d+ Tail (?:Lat\(us\)|BW\(MB/s\)))*)[ \t]*$"
)
_CELL = r"(?:[\d.]+|Pass|Fail|-?(?:nan|NaN|inf)\w*)"
_NUMBERS = re.compile(rf"^[ \t]*{_CELL}(?:[ \t]+{_CELL})*[ \t]*$", re.M)
_TAIL = re.compile(r"P\d+")
_COMPLAINTS = ("This test requires ", "Invalid option [", "Error: '")
_TYPES = ("mpi_char", "mpi_int", "mpi_float")


def osu(
    program: str,
    *,
    title: str,
    layer: str,
    summary: str,
    metric: Metric,
    sized: bool = True,
    tail: bool = True,
    ranks: int | None = None,
    column: str = "value",
) -> Benchmark:
    """Return the benchmark of one OSU program.

    `title` is what its first line says between "OSU MPI" and "Test". `sized`: its table has a
    column of sizes. `tail`: it can print percentiles of its iterations. `ranks` are those without
    which it refuses to start. `column` is the one that holds the metric.
    """
    p99 = Metric(f"{metric.name}_p99", metric.unit, metric.better, margin=0.1)
    options = {
        "iterations": Parameter(None, positive, "iterations, instead of the program's own"),
        "full": Parameter(False, flag, "-f: also minimum and maximum over ranks"),
        "validation": Parameter(None, flag, "-c: every size's data must pass the check (6.0)"),
        "tail": Parameter(False, flag, "-z99: also the 99th percentile of the iterations (7.1)"),
        "datatype": Parameter(None, one_of(*_TYPES, "all"), "-T: MPI type, or all three (7.0)"),
    }
    drop = {"full"} if layer != "collective" else set()
    drop |= set() if tail else {"tail"}
    drop |= set() if sized else {"validation", "datatype"}
    parameters = {key: value for key, value in options.items() if key not in drop}
    if sized:
        doubled = sizes("8 B : 1 MiB")
        told = 'a range that doubles, such as "8 B : 1 MiB"'
        parameters = {"bytes": Parameter(doubled, _doubling, told), **parameters}
    metrics = (metric, p99) if tail else (metric,)
    return tool(
        program,
        layer=layer,
        summary=summary,
        metrics=metrics,
        reader=partial(read, program, title, metric, ranks, column),
        marks=_marks(title),
        command=partial(command, program),
        cases=partial(cases, metric.name),
        optional=(p99.name,),
        parameters=parameters,
        program=program,
        get=GET,
        versions=VERSIONS,
        proof=PROOF,
        means=MEANS,
    )


def _marks(title: str) -> tuple[str, ...]:
    """Return how a first line begins: "MPI Latency", "MPI-CUDA Latency", "MPI_Get latency"."""
    own, _, rest = title.partition(" ") if title.startswith("_") else ("", "", title)
    devices = ("", "-CUDA", "-OPENACC", "-ROCM", "-MANAGED")
    words = dict.fromkeys((rest, rest[0].lower() + rest[1:]))
    return tuple(f"# OSU MPI{own}{device} {word} " for device in devices for word in words)


def _doubling(value: object) -> list[int]:
    found = sizes(value)
    if any(after != 2 * before for before, after in pairwise(found)):
        raise ValueError('OSU programs double from size to size: write "8 B : 1 MiB"')
    return found


def command(program: str, request: Request) -> Program:
    """Return the program's command line."""
    asked = request.parameters
    argv = [path_or(request, program)]
    if asked.get("bytes"):
        argv += ["-m", f"{asked['bytes'][0]}:{asked['bytes'][-1]}"]
    if asked.get("iterations"):
        argv += ["-i", str(asked["iterations"])]
    for key, option in (("full", "-f"), ("validation", "-c"), ("tail", "-z99")):
        if asked.get(key):
            argv.append(option)
    if asked.get("datatype"):
        argv += ["-T", asked["datatype"]]
    return Program(tuple(argv))


def cases(metric: str, request: Request) -> Iterable[tuple[str, Case]]:
    """Return the cases asked for: the sizes, of each type where all are asked for."""
    asked = request.parameters.get("bytes")
    names = (metric, f"{metric}_p99") if request.parameters.get("tail") else (metric,)
    every = [Case()]
    if asked is not None and request.parameters.get("datatype") != "all":
        every = [_case(size, "") for size in asked]
    elif asked is not None:
        least = {"mpi_char": 1, "mpi_int": 4, "mpi_float": 4}
        every = [_case(n, name.upper()) for name in _TYPES for n in asked if n >= least[name]]
    return [(name, case) for name in names for case in every]


@cache
def _case(size: int, datatype: str) -> Case:
    return Case.of(bytes=size, datatype=datatype) if datatype else Case.of(bytes=size)


def read(
    program: str, title: str, metric: Metric, ranks: int | None, column: str, text: str
) -> Reading:
    """Return what one OSU program printed; raises ParseError with the line."""
    if (failed := text.find("DATA VALIDATION ERROR")) >= 0:
        refuse(f"validation failed: {line_at(text, failed)[:120]!r}", line_of(text, failed))
    titles = list(_TITLE.finditer(text))
    if len(titles) != 1 or text.count("# OSU ") != 1:
        if len(titles) > 1 or text.count("# OSU ") > 1:
            refuse(f"{text.count('# OSU ')} titles of OSU programs: more than one output")
        for mark in _COMPLAINTS:
            if (at := text.find(mark)) >= 0:
                refuse(
                    f"the program refused: {line_at(text, at).strip()[:120]!r}", line_of(text, at)
                )
        refuse("no title of an OSU program with its version: it did not begin")
    said = titles[0]
    if _titled(said[1], said[2]).lower() != title.lower():
        refuse(f"expected {title!r}, got {said[0].strip()!r}", line_of(text, said.start()))
    settings: dict[str, Scalar] = {}
    if device := said[1].partition("-")[2]:
        settings["device"] = device
    tables: list[_Table] = []
    end = said.end() + 1
    while (found := _table(text, end, settings, again=bool(tables))) is not None:
        tables.append(found)
        end = found.end
    if not tables:
        refuse("no table was printed", line_of(text, said.start()))
    _check_rest(text, end)
    samples: list[Sample] = []
    for table in tables:
        samples += table.samples(metric, column, several=len(tables) > 1)
    settings |= tables[-1].settings()
    if len(tables) > 1:
        settings["datatype"] = "all"
        if unnamed := [table.first for table in tables if not table.datatype]:
            refuse("one table of several, and not of which MPI type", unnamed[0])
    if "pairs" in settings:
        ranks = 2 * int(settings["pairs"])
    return Reading(program, said[3], settings, ranks, tuple(samples))


def _titled(extra: str, rest: str) -> str:
    """Return the title without the device that it names: "-CUDA", "_Put-CUDA"."""
    own = extra.partition("-")[0]
    return f"{own} {rest}".strip()


@dataclass(frozen=True, slots=True)
class _Table:
    """One heading and its rows, by column; `first` is the line of the first row."""

    columns: Mapping[str, tuple[str, ...]]
    tails: tuple[str, ...]
    datatype: str
    first: int
    end: int

    def figures(self, name: str) -> list[float]:
        return list(map(float, self.columns[name]))

    def settings(self) -> dict[str, Scalar]:
        """Return what the table says of how was measured."""
        said: dict[str, Scalar] = {"validation": "Validation" in self.columns}
        if self.datatype:
            said["datatype"] = self.datatype
        if "Iterations" in self.columns:
            counts = list(dict.fromkeys(self.columns["Iterations"]))
            said["iterations"] = int(counts[0]) if len(counts) == 1 else "/".join(counts)
        return said

    def samples(self, metric: Metric, column: str, *, several: bool) -> list[Sample]:
        """Return a sample per row, and one of the 99th percentile where it was printed."""
        _check(self)
        datatype = self.datatype if several else ""
        values = self.figures(column)
        if not min(values) > 0:
            number = self.first + values.index(min(values))
            refuse(f"{min(values)}: too small for what the program prints", number)
        sizes = self.columns.get("Size")
        cases = [_case(size, datatype) for size in map(int, sizes)] if sizes else [Case()]
        found = [
            Sample(metric.name, case, (value,)) for case, value in zip(cases, values, strict=True)
        ]
        if "P99" in self.tails:
            tail = zip(cases, self.figures("P99"), strict=True)
            found += [Sample(f"{metric.name}_p99", case, (value,)) for case, value in tail]
        return found


def _check(table: _Table) -> None:
    """Refuse rows that contradict themselves or each other."""
    columns, first = table.columns, table.first
    if "Size" in columns:
        sizes = list(map(int, columns["Size"]))
        if sizes[1:] != [2 * size or 1 for size in sizes[:-1]]:
            at = next(i for i, (a, b) in enumerate(pairwise(sizes), 1) if b != (2 * a or 1))
            refuse(f"the size after {sizes[at - 1]} is {sizes[at]}", first + at)
    elif len(columns["value"]) > 1:
        refuse("a second row without sizes", first + 1)
    if "Fail" in columns.get("Validation", ()):
        at = columns["Validation"].index("Fail")
        refuse(f"validation failed: row {at + 1} of the table", first + at)
    if "Min Latency" in columns:
        low, mean, high = map(table.figures, ("Min Latency", "value", "Max Latency"))
        for at, fits in enumerate(map(lambda a, b, c: a <= b <= c, low, mean, high)):
            if not fits:
                refuse(f"the mean {mean[at]} is not between {low[at]} and {high[at]}", first + at)
    if "Messages/s" in columns:
        rates = zip(sizes, table.figures("value"), table.figures("Messages/s"), strict=True)
        for at, (size, rate, messages) in enumerate(rates):
            if abs(size * messages / 1e6 - rate) > 0.006 + 1e-6 * rate:
                refuse(f"{rate} MB/s are not {messages} messages/s", first + at)
    if table.tails and "value" in columns:
        ordered = sorted(table.tails, key=lambda name: int(name[1:]))
        for one, other in pairwise(map(table.figures, ordered)):
            if any(a > b for a, b in zip(one, other, strict=True)):
                refuse("a higher percentile is below a lower one", first)


def _table(text: str, at: int, settings: dict[str, Scalar], *, again: bool) -> _Table | None:
    """Return the table that begins at `at`, None if there is none; adds to `settings`."""
    heading: re.Match[str] | None = None
    datatype = ""
    while at < len(text):
        line = line_at(text, at)
        stripped = line.strip()
        if match := _COLUMNS.match(stripped):
            if heading:
                refuse("a second heading without rows between", line_of(text, at))
            heading = match
        elif match := _SETTING.match(stripped):
            if match[1] == "Datatype":
                datatype = match[2]
            else:
                for key, value in (match.group(1, 2), match.group(3, 4)):
                    if key:
                        word = key.lower().replace(" ", "_").removesuffix("_size")
                        settings[word] = int(value) if value.isdigit() else value
        elif match := _BUFFERS.match(stripped):
            settings["buffers"] = f"{match[1]} {match[2]}"
        elif again if not stripped else not stripped.startswith("#"):
            break
        at += len(line) + 1
    if heading is None:
        return None
    return _rows(text, heading, at, datatype)


def _rows(text: str, heading: re.Match[str], at: int, datatype: str) -> _Table:
    """Return the table of the rows that begin at `at`."""
    names = [name for name in (heading[1], "value", *heading.groups()[2:7]) if name]
    tails = tuple(_TAIL.findall(heading[8]))
    row, block = _row((*names, *tails))
    whole = block.match(text, at)
    first = line_of(text, at)
    if whole is None:
        refuse(f"expected a row, got {line_at(text, at).strip()[:80]!r}", first)
    found = row.findall(text, at, whole.end())
    if len(names) + len(tails) == 1:
        found = [(one,) for one in found]
    columns = dict(zip((*names, *tails), zip(*found, strict=True), strict=True))
    # Percentiles of bandwidths count from the other end, so they are not in order.
    return _Table(columns, () if "BW" in heading[8] else tails, datatype, first, whole.end())


_FORMS = {"Size": r"(\d+)", "Iterations": r"(\d+)", "Validation": "(Pass|Fail)"}


@cache
def _row(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of one row, its columns as groups, and of all rows that follow on."""
    columns = [_FORMS.get(name, r"(\d+\.\d\d)") for name in names]
    one = r"[ \t]*" + r"[ \t]+".join(columns) + r"[ \t]*(?:\n|\Z)"
    plain = one.replace("(", "(?:").replace("(?:?:", "(?:")
    return re.compile(one), re.compile(f"(?:{plain})+")


def _check_rest(text: str, at: int) -> None:
    """Refuse what looks like more of a table after its end: something stands between the rows."""
    if match := _NUMBERS.search(text, at):
        refuse(
            f"a row after the end of the table: {match[0].strip()[:80]!r}",
            line_of(text, match.start()),
        )
    for mark in ("# Size", "# Datatype"):
        if (again := text.find(mark, at)) >= 0:
            refuse("another table after the end of the table", line_of(text, again))
