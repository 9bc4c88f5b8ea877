"""What the parts of IMB-MPI1 of the Intel MPI Benchmarks have in common: command line and tables.

One output may hold several benchmarks, each with a table per number of processes. It is read from
its title to its last line as a whole, nothing strange in between; each benchmark takes its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import pairwise

from paribus.benchmarks._parameters import flag, positive, sizes
from paribus.benchmarks._tool import line_at, line_of, once, path_or, refuse, tool
from paribus.model import Benchmark, Case, Metric, Parameter, Program, Reading, Request, Sample

LATENCY = (Metric("latency", "us", "lower", small_us=2.0),)
BANDWIDTH = (Metric("bandwidth", "MB/s", "higher"),)
COLLECTIVE = (
    Metric("time", "us", "lower", margin=0.05),
    Metric("time_max", "us", "lower", margin=0.05),
)
_COLUMNS = {
    "latency": ("t[usec]", "t_avg[usec]"),
    "bandwidth": ("Mbytes/sec",),
    "time": ("t_avg[usec]",),
    "time_max": ("t_max[usec]",),
}

_TITLE = re.compile(r"# +Intel ?\(R\) MPI Benchmarks (\S[^,\n]*), MPI-1 part[ \t]*$", re.M)
_LIST = re.compile(r"^# List of Benchmarks to run:[ \t]*\n\s*\n((?:# *\w+[ \t]*\n)+)", re.M)
_DATE = re.compile(r"^# Date +: (.+?)[ \t]*$", re.M)
_CALLED = re.compile(r"^# Calling sequence was:[ \t]*\n\s*# *(\S.*?)[ \t]*$", re.M)
_LONGEST = re.compile(r"^# Maximum message length in bytes: +(\d+)", re.M)
_TYPE = re.compile(r"^# MPI_Datatype +: +(\w+)", re.M)
_END = "# All processes entering MPI_Finalize"
_SECTION = re.compile(
    r"#-+[ \t]*\n# Benchmarking (Multi-)?(\w+)[ \t]*\n"
    r"(?:# #processes = ([1-9]\d*)[^\n]*\n|"
    r"# \( ([1-9]\d*) groups of ([1-9]\d*) processes each running simultaneous \)[ \t]*\n)"
    r"(?:#(?: Group +\d+:)?[ \t\d]*\n)*"
    r"(?:# \( (\d+) additional process(?:es)? waiting in MPI_Barrier\)[ \t]*\n)?"
    r"#-+[ \t]*\n([^\n]*)\n"
)
# In the order in which headings have them.
_FORMS = {
    "Group": r"\d+",
    "#bytes": r"\d+",
    "#repetitions": r"\d+",
    "t[usec]": r"\d+\.\d+",
    "t_min[usec]": r"\d+\.\d+",
    "t_max[usec]": r"\d+\.\d+",
    "t_avg[usec]": r"\d+\.\d+",
    "Mbytes/sec": r"\d+\.\d+",
    "Msg/sec": r"\d+",
    "defects": r"\d+\.\d+",
}
_COMPLAINTS = (
    ("Invalid benchmark name", "it was asked for a benchmark or option that it does not know"),
    (" invalid for ", "it measures nothing with so many processes"),
    ("out-of-mem.", "a size was left out for lack of memory"),
    ("time-out.", "a size was left out for lack of time"),
    ("int-overflow.", "a size was left out for its overflow"),
)
# Options of the calling sequence that say which points are measured, not how.
_POINTS = ("-npmin", "-msglog", "-msglen", "-iter", "-iter_policy", "-time", "-mem", "-multi")


def imb(
    name: str, part: str, *, layer: str, summary: str, metrics: tuple[Metric, ...]
) -> Benchmark:
    """Return the benchmark of one part of IMB-MPI1, such as "PingPong"."""
    parameters = {
        "bytes": Parameter(sizes("8 B : 1 MiB"), sizes, 'message sizes: ["8 B", "4 KiB"]'),
        "iterations": Parameter(
            None, positive, "-iter, the same for every size; without it fewer for large ones"
        ),
        "multi": Parameter(None, _group, "-multi: groups at once, 0 for the slowest, 1 for each"),
        "growing": Parameter(False, flag, "also with 2, 4, ... processes, not with all alone"),
    }
    if part == "Barrier":
        del parameters["bytes"]
    return tool(
        name,
        layer=layer,
        summary=summary,
        metrics=metrics,
        reader=partial(read, name, part, metrics),
        marks=(f"\n# {part}\n",),
        command=partial(command, part),
        cases=partial(cases, part, metrics),
        parameters=parameters,
        program="IMB-MPI1",
        get="`pip install impi-rt` (binary), or https://github.com/intel/mpi-benchmarks: make",
        versions="2018 to 2021.11",
        proof=(
            "title, list of benchmarks and last line once, a table for each benchmark of the list,"
            " sizes that double up to the longest echoed, min <= avg <= max, MB/s = bytes / time,"
            " no unknown name or option, no size left out, no defect of a checking build"
        ),
        means=(
            "latency is half the round trip; MB are 10^6; time is the mean over ranks, time_max the"
            " slowest; repetitions fall with the size unless they are set, which alone changed"
            " 1 MiB by 15 %; nothing is sent at 0 bytes of a collective, so that row is left out;"
            " the title of 2019 to 2021.3 says 2018"
        ),
    )


def _group(value: object) -> int:
    if isinstance(value, bool) or value not in (0, 1):
        raise ValueError("use 0 (the slowest group) or 1 (each group)")
    return int(str(value))


def command(part: str, request: Request) -> Program:
    """Return the program's command line: exactly the sizes asked for, all ranks."""
    asked = request.parameters
    argv, files = [path_or(request, "IMB-MPI1"), part], {}
    if asked.get("bytes"):
        files["imb-lengths"] = "".join(f"{size}\n" for size in asked["bytes"])
        argv += ["-msglen", "{scratch}/imb-lengths"]
    if asked.get("iterations"):
        argv += ["-iter", str(asked["iterations"]), "-iter_policy", "off", "-time", "100000"]
    if asked.get("multi") is not None:
        argv += ["-multi", str(asked["multi"])]
    elif not asked.get("growing"):
        argv += ["-npmin", str(request.ranks)]
    return Program(tuple(argv), files=files)


def cases(part: str, metrics: Iterable[Metric], request: Request) -> list[tuple[str, Case]]:
    """Return the cases asked for: sizes, by number of processes and group where there are any."""
    asked, multi = request.parameters, request.parameters.get("multi")
    fixed = part in ("PingPong", "PingPing")
    counts = [2 if fixed else request.ranks]
    if (asked.get("growing") or multi is not None) and not fixed:
        counts = _counts(2, request.ranks)
    found = []
    for processes in counts:
        groups = request.ranks // processes if multi == 1 else 1
        for size in asked.get("bytes") or [None]:
            found += [
                _case(processes if len(counts) > 1 else None, group if multi == 1 else None, size)
                for group in range(groups)
            ]
    return [(metric.name, case) for metric in metrics for case in found]


def _counts(least: int, ranks: int) -> list[int]:
    """Return the numbers of processes that IMB takes: doubled from the least, and all."""
    found = [min(least, ranks)]
    while found[-1] < ranks:
        found.append(min(2 * found[-1], ranks))
    return found


@cache
def _case(processes: int | None, group: int | None, size: int | None) -> Case:
    keys = {"ranks": processes, "group": group, "bytes": size}
    return Case.of(**{key: value for key, value in keys.items() if value is not None})


@dataclass(frozen=True, slots=True)
class _Table:
    """One table, by column; `line` is that of its first row."""

    part: str
    multi: bool
    processes: int
    groups: int
    waiting: int
    columns: Mapping[str, tuple[str, ...]]
    line: int

    def figures(self, name: str) -> list[float]:
        return list(map(float, self.columns[name]))


@dataclass(frozen=True, slots=True)
class _Output:
    """All of one output; `words` are those of the calling sequence."""

    version: str
    listed: tuple[str, ...]
    words: tuple[str, ...]
    datatype: str
    date: str
    tables: tuple[_Table, ...]


def read(name: str, part: str, metrics: tuple[Metric, ...], text: str) -> Reading:
    """Return what one part of IMB-MPI1 printed; raises ParseError with the line."""
    output = _output(text)
    own = [table for table in output.tables if table.part == part]
    if not own:
        refuse(f"no table of {part}: the list has {', '.join(output.listed)[:100]}")
    ranks = _check_counts(own, fixed=part in ("PingPong", "PingPing"))
    said = _parameters(own, output)
    if output.datatype:
        said["datatype"] = output.datatype
    facts = {"launch.date": output.date} if output.date else {}
    found = [sample for table in own for sample in _samples(table, metrics, len(own) > 1)]
    return Reading(name, output.version, said, ranks, tuple(found), facts)


# One output is read by every benchmark that it holds.
@lru_cache(maxsize=1)
def _output(text: str) -> _Output:
    """Return all that `text` holds, checked; raises ParseError with the line."""
    for mark, cause in _COMPLAINTS:
        if (at := text.find(mark)) >= 0:
            refuse(f"{cause}: {line_at(text, at).strip()[:100]!r}", line_of(text, at))
    titles = list(_TITLE.finditer(text))
    if len(titles) != 1:
        refuse(f"{len(titles)} titles of IMB-MPI1 instead of one")
    begin = titles[0].end()
    listed = _LIST.search(text, begin)
    if listed is None:
        refuse("the list of benchmarks to run is missing", line_of(text, begin))
    called, longest, kind, date = (
        pattern.search(text, begin, listed.start()) for pattern in (_CALLED, _LONGEST, _TYPE, _DATE)
    )
    output = _Output(
        version=titles[0][1],
        listed=tuple(line.strip("# \t") for line in listed[1].splitlines()),
        words=tuple(called[1].split()) if called else (),
        datatype=kind[1] if kind else "",
        date=_iso(date[1], line_of(text, date.start())) if date else "",
        tables=tuple(_tables(text, listed.end())),
    )
    for table in output.tables:
        _check(table, 0 if "-msglen" in output.words or not longest else int(longest[1]))
    if missing := set(output.listed) ^ {table.part for table in output.tables}:
        refuse(f"{sorted(missing)[0]} is in the list or has a table, but not both")
    return output


def _tables(text: str, at: int) -> list[_Table]:
    """Return the tables from `at` to the program's last line."""
    end, found = once(text, _END, "the last line, 'All processes entering MPI_Finalize',"), []
    while (at := _skip_blank(text, at)) != end:
        head = _SECTION.match(text, at)
        if head is None or head.end() > end:
            refuse(f"expected a row or table, got {line_at(text, at)[:80]!r}", line_of(text, at))
        columns = tuple(head[7].split())
        if list(columns) != [name for name in _FORMS if name in columns] or not columns:
            refuse(f"expected a heading, got {head[7].strip()!r}", line_of(text, head.start(7)))
        row, rows = _patterns(columns)
        block = rows.match(text, head.end())
        if block is None:
            told = line_at(text, _skip_blank(text, head.end())).strip()
            refuse(f"expected a row, got {told[:80]!r}", line_of(text, head.end()))
        at = block.end()
        found.append(
            _Table(
                part=head[2],
                multi=bool(head[1]),
                processes=int(head[3] or head[5]),
                groups=int(head[4] or 1),
                waiting=int(head[6] or 0),
                columns=dict(
                    zip(columns, zip(*row.findall(text, head.end(), at), strict=True), strict=True)
                ),
                line=line_of(text, head.end()),
            )
        )
    return found


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n":
        at += 1
    return at


@cache
def _patterns(columns: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of one row, its columns as groups, and of all rows that follow on."""
    one = r"[ \t]*" + r"[ \t]+".join(f"({_FORMS[name]})" for name in columns) + r"[ \t]*\n"
    # Tables by group have blank lines between the sizes.
    several = rf"(?:[ \t]*\n)?(?:{one.replace('(', '(?:')}(?:[ \t]*\n)?)+"
    return re.compile(one), re.compile(several)


def _check(table: _Table, longest: int) -> None:
    """Refuse rows that contradict themselves or each other; `longest` of 0 is not known."""
    columns, line = table.columns, table.line
    if any(map(float, columns.get("defects", ()))):
        refuse("the data of a size were wrong: a column of defects is not zero", line)
    if "t_min[usec]" in columns:
        low, mean, high = (table.figures(f"t_{word}[usec]") for word in ("min", "avg", "max"))
        for at, (least, middle, most) in enumerate(zip(low, mean, high, strict=True)):
            if not least <= middle <= most:
                refuse(f"the mean {middle} is not between {least} and {most}", line + at)
    if "#bytes" not in columns:
        return
    _check_sizes(table, longest)
    if "Mbytes/sec" in columns:
        sizes, rates = table.figures("#bytes"), table.figures("Mbytes/sec")
        if "Msg/sec" in columns:
            messages = table.figures("Msg/sec")
            for at, (size, rate, count) in enumerate(zip(sizes, rates, messages, strict=True)):
                if abs(rate - size * count / 1e6) > 0.006 + 0.51e-6 * size:
                    refuse(f"{rate} MB/s are not {count} messages/s of {size} bytes", line + at)
        else:
            times = table.figures("t[usec]" if "t[usec]" in columns else "t_max[usec]")
            for at, (size, rate, time) in enumerate(zip(sizes, rates, times, strict=True)):
                if not _agree(size, time, rate):
                    refuse(f"{rate} MB/s are not {size} bytes in {time} us", line + at)


def _agree(size: float, time: float, rate: float) -> bool:
    """Return whether time and rate, both rounded to two decimals, can be of the same messages.

    A rate may count the messages of all directions: Sendrecv twice the bytes, Exchange four times.
    """
    return any(
        size * n / (time + 0.0051) - 0.0051
        <= rate
        <= (size * n / (time - 0.0051) if time > 0.0051 else float("inf")) + 0.0051
        for n in (1, 2, 4)
    )


def _check_sizes(table: _Table, longest: int) -> None:
    """Refuse sizes that do not double up to the longest, each for every group."""
    groups = table.groups if "Group" in table.columns else 1
    found = [int(size) for size in table.columns["#bytes"]]
    every = found[::groups]
    if [size for size in every for _ in range(groups)] != found:
        refuse("a size is not there for every group", table.line)
    if groups > 1 and list(table.columns["Group"]) != [
        str(g) for _ in every for g in range(groups)
    ]:
        refuse("a group is not there for every size", table.line)
    if longest:
        for one, other in pairwise(every):
            if one and other != 2 * one:
                refuse(f"the size after {one} is {other}, not {2 * one}", table.line)
        if every[-1] != longest:
            refuse(f"the longest size is {longest}, the table ends with {every[-1]}", table.line)


def _check_counts(own: list[_Table], *, fixed: bool) -> int:
    """Return the ranks that the tables of one benchmark account for; refuses others than all."""
    totals = {table.groups * table.processes + table.waiting for table in own}
    counts = [table.processes for table in own]
    ranks = max(totals)
    whole = counts == [2] if fixed else counts == _counts(counts[0], ranks)
    if len(totals) > 1 or not whole:
        told = ", ".join(map(str, counts))
        refuse(f"tables of {told} processes do not account for {ranks} ranks", own[0].line)
    return ranks


def _parameters(own: list[_Table], output: _Output) -> dict[str, str | int | float | bool]:
    """Return what tables and calling sequence say of how was measured."""
    said: dict[str, str | int | float | bool] = {}
    # Unless it is told not to, IMB repeats what takes long less often: no setting of the user's.
    if "-iter_policy off" in " ".join(output.words):
        counts = list(dict.fromkeys(n for table in own for n in table.columns["#repetitions"]))
        said["iterations"] = int(counts[0]) if len(counts) == 1 else "/".join(counts)
    if any("Group" in table.columns for table in own):
        said["multi"] = 1
    elif any(table.multi for table in own):
        said["multi"] = 0
    kept: list[str] = []
    option, parts = "", {part.lower() for part in output.listed}
    for word in output.words[1:]:
        option = word if word.startswith("-") else option
        if option and option not in _POINTS and word.lower() not in parts:
            kept.append(word)
    if kept:
        said["options"] = " ".join(kept)
    return said


def _samples(table: _Table, metrics: tuple[Metric, ...], several: bool) -> list[Sample]:
    """Return the samples of a table, without the row of 0 bytes where nothing is measured."""
    rows = len(table.columns["#repetitions"])
    nothing: tuple[None, ...] = (None,) * rows
    sizes = tuple(map(int, table.columns.get("#bytes", ()))) or nothing
    groups = tuple(map(int, table.columns.get("Group", ()))) or nothing
    processes = table.processes if several else None
    cases = [_case(processes, group, n) for group, n in zip(groups, sizes, strict=True)]
    found = []
    for metric in metrics:
        name = next((n for n in _COLUMNS[metric.name] if n in table.columns), None)
        if name is None:
            refuse(f"no column of {metric.name}: {' '.join(table.columns)}", table.line - 1)
        empty = metric.name == "latency"
        for at, (n, case, value) in enumerate(zip(sizes, cases, table.figures(name), strict=True)):
            if n == 0 and not empty:
                continue
            if not value > 0:
                refuse(f"{value} at {case}: too small for what is printed", table.line + at)
            found.append(Sample(metric.name, case, (value,)))
    return found


def _iso(date: str, line: int) -> str:
    """Return the local time of a launch, as ctime(3) prints it, in the form of ISO 8601."""
    try:
        return datetime.strptime(date, "%a %b %d %H:%M:%S %Y").isoformat()
    except ValueError:
        refuse(f"not a date: {date!r}", line)
