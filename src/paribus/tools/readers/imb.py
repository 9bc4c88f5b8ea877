"""What IMB-MPI1, IMB-NBC and IMB-RMA of the Intel MPI Benchmarks print.

One output may hold several benchmarks, such as PingPong and Allreduce, each with a table for each
number of processes. The reader of each benchmark takes its own tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress, pairwise
from typing import NamedTuple, NoReturn

from paribus.core import Case, ParseError, Reading, Sample, Scalar
from paribus.readers.dates import CTIME, date
from paribus.readers.heads import Head
from paribus.readers.imb_parts import MODES, PARTS, TITLES
from paribus.readers.reader import Reader, point
from paribus.readers.text import WINDOW, line_at, line_of, once, refuse

_PART = re.compile(r", MPI-(?:1|NBC|RMA) part")
_OTHER_PART = re.compile(r"MPI Benchmarks [\w.]+, (?!MPI-(?:1|NBC|RMA) )([A-Z][\w-]*) part")
_TITLE = re.compile(
    r"# +Intel ?\(R\) MPI Benchmark(?:s| Suite) (\S[^,\n]*),"
    r" (MPI-(?:1|NBC|RMA)) part(?: \(GPU\))?[ \t]*$",
    re.M,
)
# Until 4.1 a Mbyte was one of 2^20.
_OLD = re.compile(r"V?[234]\.")
_LIST = re.compile(
    r"\n# List of Benchmarks to run:[ \t]*\n\s*((?:# *\w+[ \t]*\n|#[ ]{5}\S[^\n]*\n)+)"
)
_LISTED = re.compile(r"^# *(\w+)[ \t]*$", re.M)
_CALLED = re.compile(r"\n# Calling sequence was:[ \t]*\n\s*# *(\S[^\n]*)")
_LONGEST = re.compile(r"\n# Maximum message length in bytes: +(\d+)")
_TYPE = re.compile(r"\n# MPI_Datatype +: +(\w+)")
# The date is read where logs are put in order; here it must only be one, as ctime(3) writes it.
_DATE = re.compile(
    r"\n# Date +: (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (?:[ 0][1-9]|[12]\d|3[01]) "
    r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d [1-9]\d{3}[ \t]*(?=\n)"
)
_END = "# All processes entering MPI_Finalize"
_LAST = "the last line, 'All processes entering MPI_Finalize',"
# After blank lines, the last line or the head of a table with its heading.
_NEXT = re.compile(
    rf"[ \t\n]*+(?:({_END})|"
    r"#-+[ \t]*\n# Benchmarking (Multi-)?(\w+)[ \t]*\n"
    r"(?:# #processes = ([1-9]\d*)(?:; rank order \(rowwise\):)?[ \t]*\n|"
    r"# \( ([1-9]\d*) groups of ([1-9]\d*) processes each running simultaneous \)[ \t]*\n)"
    r"(?:#(?: Group +\d+:)?[ \t\d]*\n)*"
    r"(?:# \( (\d+) additional process(?:es)? waiting in MPI_Barrier\)[ \t]*\n)?"
    r"#-+[ \t]*\n(?:#[ \t]*\n# +MODE: (NON-AGGREGATE|AGGREGATE)[ \t]*\n#[ \t]*\n)?([^\n]*)\n)"
)
_WHOLE, _DECIMAL = r"(?:[1-9][0-9]*+|0)", r"[0-9]++\.[0-9]++"
# In the order in which headings have them.
_FORMS = {
    "Group": _WHOLE,
    "#bytes": _WHOLE,
    "#repetitions": _WHOLE,
    "t[usec]": _DECIMAL,
    "t_min[usec]": _DECIMAL,
    "t_max[usec]": _DECIMAL,
    "t_avg[usec]": _DECIMAL,
    "t_ovrl[usec]": _DECIMAL,
    "t_pure[usec]": _DECIMAL,
    "t_CPU[usec]": _DECIMAL,
    "overlap[%]": _DECIMAL,
    "Mbytes/sec": _DECIMAL,
    "Msg/sec": _WHOLE,
    "defects": _DECIMAL,
}
_PASSIVE = ("#bytes", "#repetitions", "t_pure[usec]", "t_ovrl[usec]")
"""The columns of Truly_passive_put, in an order of their own."""

_ATOMIC = ("Fetch_and_op", "Compare_and_swap")
"""Parts whose size is that of an integer, whatever sizes were asked for."""

_COMPLAINTS = {
    "Invalid benchmark name": "it was asked for a benchmark or option that it does not know",
    " invalid for ": "it measures nothing with so many processes",
    "int-overflow.": "a size was left out for its overflow",
}
# Options of the calling sequence that say which points are measured, not how.
_SIZES = ("-msglen", "-msgsize")
_POINTS = ("-npmin", "-msglog", *_SIZES, "-iter", "-iter_policy", "-time", "-mem", "-multi")


_TOO_LARGE = re.compile(
    r"(?:[ \t]*\d+ (?:out-of-mem\.; needed X= *\d|time-out\.; Time limit )[^\n]*\n)+"
)
"""Lines at the end of a table on sizes that need more memory or time than allowed (-mem, -time).

Some versions print only the first of them.
"""


class Table(NamedTuple):
    """One table of `text`, by column; its first row is at `at`. `mode` is "" where it has none.

    `multi`: -multi was given, so `groups` of `processes` measured at once; `waiting` processes did
    not. `too_large` are sizes that were not measured: all logs of so many ranks lack them.
    """

    part: str
    mode: str
    multi: bool
    processes: int
    groups: int
    waiting: int
    columns: Mapping[str, list[str]]
    too_large: tuple[int, ...]
    text: str
    at: int

    def figures(self, name: str) -> list[float]:
        return list(map(float, self.columns[name]))

    def sizes(self) -> tuple[int, ...]:
        return tuple(map(int, self.columns["#bytes"]))

    def refuse(self, cause: str, row: int = 0) -> NoReturn:
        """Raise ParseError with the line of a row, -1 for the heading."""
        refuse(cause, line_of(self.text, self.at) + row)


class Settings(NamedTuple):
    """What stands before the tables: the `listed` benchmarks, the MPI type, and options.

    `longest` is the largest size, 0 if it is not known; `fixed` is whether the repetitions are;
    `options` are those that do not only say which points are measured.
    """

    listed: tuple[str, ...]
    datatype: str
    longest: int
    fixed: bool
    options: str


class _Output(NamedTuple):
    """All of one output; `program` is what its title says before "part"."""

    version: str
    program: str
    settings: Settings
    tables: list[Table]


# One output is read by every benchmark that it holds.
@lru_cache(maxsize=1)
def output_of(text: str) -> _Output:
    """Return all that `text` holds, checked; raises ParseError with the line."""
    # A complaint of the program is the cause of whatever is missing or there twice. Of many
    # outputs in one file only the first two are searched for it: divide.py cuts the file anyway.
    again = _PART.search(text, found.end()) if (found := _PART.search(text)) else None
    if again is not None:
        _check_complaints(text, again.start() + WINDOW)
        refuse("more than one title of IMB-MPI1: two outputs in one", alone=True)
    try:
        return _whole(text)
    except ParseError:
        _check_complaints(text, len(text))
        raise


def _check_complaints(text: str, end: int) -> None:
    """Raise ParseError for a complaint of the program before `end`."""
    for mark, cause in _COMPLAINTS.items():
        if (at := text.find(mark, 0, end)) >= 0:
            refuse(f"{cause}: {line_at(text, at).strip()[:100]!r}", line_of(text, at))


def _whole(text: str) -> _Output:
    """Return all that one output holds, checked."""
    title = _TITLE.search(text)
    if title is None:
        if other := _OTHER_PART.search(text):
            refuse(
                f"IMB-{other[1]} is not read: IMB-MPI1, NBC and RMA are",
                line_of(text, other.start(1)),
            )
        refuse("no title of IMB-MPI1")
    begin = title.end()
    listed = _LIST.search(text, begin)
    if listed is None:
        refuse("the list of benchmarks to run is missing", line_of(text, begin))
    tables, end = _tables(text, listed.end())
    # From the list to the last line there are tables and nothing else: no need to search them.
    around = text[: listed.end()] + text[end:]
    if around.count(_END) > 1:
        once(text, _END, _LAST)
    if any(mark in around for mark in _COMPLAINTS):
        refuse("it says that it did not measure all")
    header = text[title.start() : listed.end()]
    if header.count("\n# Date ") > (_DATE.search(header) is not None):
        at = text.find("\n# Date ", begin) + 1
        refuse(f"not a date: {line_at(text, at)[:100]!r}", line_of(text, at))
    settings = _settings(header, listed[1])
    mega = 2**20 if _OLD.match(title[1]) else 10**6
    for table in tables:
        _check(table, settings.longest, mega)
    if missing := set(settings.listed) ^ {table.part for table in tables}:
        refuse(f"{sorted(missing)[0]} is in the list or has a table, but not both")
    return _Output(title[1], title[2], settings, tables)


def _settings(header: str, listed: str) -> Settings:
    """Return the settings in the lines from the title on, and in those of the list."""
    called, longest, kind = (pattern.search(header) for pattern in (_CALLED, _LONGEST, _TYPE))
    parts = _LISTED.findall(listed)
    words = called[1].split() if called else []
    known, option = {part.lower() for part in parts}, ""
    kept = ["(GPU)"] if " part (GPU)" in header else []
    for word in words[1:]:
        option = word if word.startswith("-") else option
        if option and option not in _POINTS and word.lower() not in known:
            kept.append(word)
    return Settings(
        listed=tuple(parts),
        datatype=kind[1] if kind else "",
        longest=int(longest[1]) if longest and {*words}.isdisjoint(_SIZES) else 0,
        fixed="-iter_policy off" in " ".join(words),
        options=" ".join(kept),
    )


def _tables(text: str, at: int) -> tuple[list[Table], int]:
    """Return the tables from `at` to the program's last line, and where that begins."""
    found: list[Table] = []
    while True:
        head = _NEXT.match(text, at)
        if head is None:
            _refuse_instead(text, at, "a row or table")
        end, multi, part, processes, groups, each, waiting, mode, heading = head.groups()
        if end:
            return found, head.start(1)
        columns, rows = _rows(heading)
        first = head.end()
        if not columns:
            _refuse_instead(text, head.start(9), "a heading")
        block = rows.match(text, first)
        if block is None:
            _refuse_instead(text, first, "a row")
        words, at = block[0].split(), block.end()
        without = _TOO_LARGE.match(text, at)
        at = without.end() if without else at
        table = Table(
            part,
            (mode or "").lower(),
            bool(multi),
            int(processes or each),
            int(groups or 1),
            int(waiting or 0),
            {name: words[i :: len(columns)] for i, name in enumerate(columns)},
            tuple(int(line.split()[0]) for line in without[0].splitlines()) if without else (),
            text,
            first,
        )
        found.append(table)


def _refuse_instead(text: str, at: int, wanted: str) -> NoReturn:
    """Raise ParseError with what stands at `at` instead of `wanted`, or that the output was cut."""
    once(text, _END, _LAST)
    while at < len(text) and text[at] in " \t\n":
        at += 1
    reported = line_at(text, at).strip()
    refuse(f"expected {wanted}, got {reported[:80]!r}", line_of(text, at))


@lru_cache(maxsize=64)
def _rows(heading: str) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """Return the columns that a heading names, none if it is no heading, and a pattern of rows."""
    columns = tuple(heading.split())
    in_order = tuple(name for name in _FORMS if name in columns)
    if columns != (_PASSIVE if {*columns} == {*_PASSIVE} else in_order):
        columns = ()
    forms = r"[ \t]++".join(_FORMS[name] for name in columns)
    row = rf"[ \t]*+{forms}[ \t]*+\n"
    # Tables by group have blank lines between the sizes.
    return columns, re.compile(rf"(?:(?:[ \t]*+\n)?(?:{row})+)+")


def _check(table: Table, longest: int, mega: int) -> None:
    """Refuse rows that contradict themselves or each other.

    `longest` is the largest size, 0 if it is not known; `mega` are the bytes of a Mbyte.
    """
    columns = table.columns
    if any(map(float, columns.get("defects", ()))):
        table.refuse("the data of a size were wrong: a column of defects is not zero")
    if "t_min[usec]" in columns:
        times = map(table.figures, ("t_min[usec]", "t_avg[usec]", "t_max[usec]"))
        for row, (least, middle, most) in enumerate(zip(*times, strict=True)):
            if not least <= middle <= most:
                table.refuse(f"the mean {middle} is not between {least} and {most}", row)
    if "overlap[%]" in columns:
        _check_overlap(table)
    if "#bytes" not in columns:
        return
    _check_sizes(table, 0 if table.part in _ATOMIC else longest)
    if "Mbytes/sec" in columns:
        _check_rates(table, mega)


def _check_overlap(table: Table) -> None:
    """Refuse an overlap that does not follow from the times beside it, which have two decimals.

    It is the time that both save by being done together, in percent of the longer of the two.
    """
    names = ("t_ovrl[usec]", "t_pure[usec]", "t_CPU[usec]", "overlap[%]")
    for row, (whole, pure, cpu, overlap) in enumerate(zip(*map(table.figures, names), strict=True)):
        longer = max(pure, cpu)
        saved = pure + cpu - whole
        slack = 0.006 + 100 * (0.0155 + 0.0051 * abs(saved) / max(longer, 0.01)) / max(longer, 0.01)
        wanted = max(0.0, min(100.0, 100 * saved / max(longer, 0.01)))
        if abs(overlap - wanted) > slack:
            table.refuse(f"an overlap of {overlap} % does not fit the times beside it", row)


def _check_rates(table: Table, mega: int) -> None:
    """Refuse rates that are not size by time, or size by messages per second."""
    columns = table.columns
    sizes, rates = table.sizes(), table.figures("Mbytes/sec")
    if "Msg/sec" in columns:
        counts = table.figures("Msg/sec")
        for row, (size, rate, count) in enumerate(zip(sizes, rates, counts, strict=True)):
            if abs(rate - size * count / 1e6) > 0.006 + 0.51e-6 * size:
                table.refuse(f"{rate} MB/s are not {count} messages/s of {size} bytes", row)
        return
    times = table.figures("t[usec]" if "t[usec]" in columns else "t_max[usec]")
    rows = list(zip(sizes, times, rates, strict=True))
    # A rate may count the messages of all directions: Sendrecv twice the bytes, Exchange 4 times.
    row = max(_agreeing(rows, directions * 1e6 / mega) for directions in (1, 2, 4))
    if row < len(rows):
        size, time, rate = rows[row]
        table.refuse(f"{rate} MB/s are not {size} bytes in {time} us", row)


def _agreeing(rows: list[tuple[int, float, float]], share: float) -> int:
    """Return how many rows, from the first on, have a rate that may be size by time.

    `share` is how often a byte counts in a rate. Time and rate are rounded to two decimals.
    """
    off = 0.0051
    for at, (size, time, rate) in enumerate(rows):
        sent = size * share
        least, most = (rate - off) * (time - off), (rate + off) * (time + off)
        if sent > most or (sent < least and time > off):
            return at
    return len(rows)


def _check_sizes(table: Table, longest: int) -> None:
    """Refuse sizes that do not double up to the longest, each for every group."""
    groups = table.groups if "Group" in table.columns else 1
    found = table.sizes()
    every = (*found[::groups], *table.too_large)
    if groups > 1:
        sizes = found[::groups]
        if tuple(size for size in sizes for _ in range(groups)) != found:
            table.refuse("a size is not there for every group")
        if table.columns["Group"] != [str(group) for group in range(groups)] * len(sizes):
            table.refuse("a group is not there for every size")
    if longest:
        for one, other in pairwise(every):
            if one and other != 2 * one:
                table.refuse(f"the size after {one} is {other}, not {2 * one}")
        if every[-1] != longest and not table.too_large:
            table.refuse(f"the longest size is {longest}, the table ends with {every[-1]}")


_COLUMNS = {
    "latency": ("t[usec]", "t_avg[usec]"),
    "bandwidth": ("Mbytes/sec",),
    "time": ("t_ovrl[usec]", "t_avg[usec]", "t[usec]"),
    "time_max": ("t_max[usec]",),
    "pure_time": ("t_pure[usec]",),
}


def read(name: str, text: str) -> Reading:
    """Return the reading of one part of a program's output; raises ParseError with the line."""
    part = PARTS[name]
    output = output_of(text)
    own = [table for table in output.tables if table.part == part.name]
    if output.program != TITLES[part.program]:
        refuse(f"the title is that of the {output.program} part, not of {part.program}")
    if not own:
        refuse(f"no table of {part.name}: the list has {', '.join(output.settings.listed)[:100]}")
    by_mode = {mode: [one for one in own if one.mode == mode] for mode in (one.mode for one in own)}
    if (set(by_mode) == {*MODES}) != part.modes or len(by_mode) != 1 + part.modes:
        own[0].refuse(f"tables of the modes {', '.join(by_mode) or 'none'}")
    ranks = max(_check_counts(tables, fixed=part.two) for tables in by_mode.values())
    parameters = _parameters(own, output.settings)
    several = len(own) > len(by_mode)
    found = [sample for table in own for sample in _samples(table, part.metrics, several)]
    return Reading(name, output.version, parameters, ranks, tuple(found))


def doubled(least: int, ranks: int) -> list[int]:
    """Return the numbers of processes that IMB takes: doubled from the least, and all."""
    found = [min(least, ranks)]
    while found[-1] < ranks:
        found.append(min(2 * found[-1], ranks))
    return found


def _check_counts(own: list[Table], *, fixed: bool) -> int:
    """Return the ranks that the tables of one benchmark account for; refuses others than all."""
    totals = {table.groups * table.processes + table.waiting for table in own}
    counts = [table.processes for table in own]
    ranks = max(totals)
    whole = counts == [2] if fixed else counts == doubled(counts[0], ranks)
    if len(totals) > 1 or not whole:
        reported = ", ".join(map(str, counts))
        own[0].refuse(f"tables of {reported} processes do not account for the {ranks} of the job")
    return ranks


def _parameters(own: list[Table], settings: Settings) -> dict[str, Scalar]:
    """Return the parameters that the tables and the calling sequence show."""
    parameters: dict[str, Scalar] = {}
    # Unless an option forbids it, IMB repeats what takes long less often: no setting of the user's.
    if settings.fixed:
        counts = list(dict.fromkeys(n for table in own for n in table.columns["#repetitions"]))
        parameters["iterations"] = int(counts[0]) if len(counts) == 1 else "/".join(counts)
    if any("Group" in table.columns for table in own):
        parameters["multi"] = 1
    elif any(table.multi for table in own):
        parameters["multi"] = 0
    if settings.options:
        parameters["options"] = settings.options
    if settings.datatype:
        parameters["datatype"] = settings.datatype
    return parameters


def case_of(
    processes: int | None, group: int | None, size: int | None, mode: str | None = None
) -> Case:
    """Return the case of what is not None."""
    keys = {"ranks": processes, "group": group, "bytes": size, "mode": mode}
    return point(**{key: value for key, value in keys.items() if value is not None})


def _samples(table: Table, metrics: tuple[str, ...], several: bool) -> list[Sample]:
    """Return the samples of a table, without the row of 0 bytes where nothing is measured."""
    columns = table.columns
    nothing = (None,) * len(columns["#repetitions"])
    sizes: Sequence[int | None] = table.sizes() if "#bytes" in columns else nothing
    groups: Sequence[int | None] = (
        list(map(int, columns["Group"])) if "Group" in columns else nothing
    )
    processes = table.processes if several else None
    mode = table.mode or None
    cases = [
        case_of(processes, group, size, mode) for group, size in zip(groups, sizes, strict=True)
    ]
    found: list[Sample] = []
    for metric in metrics:
        name = next((n for n in _COLUMNS[metric] if n in columns), None)
        if name is None:
            table.refuse(f"no column of {metric}: {' '.join(columns)}", -1)
        values, at = table.figures(name), cases
        if 0 in sizes and metric != "latency":
            values, at = list(compress(values, sizes)), list(compress(cases, sizes))
        if values and not min(values) > 0:
            case = at[next(n for n, value in enumerate(values) if not value > 0)]
            table.refuse(f"0 at {case}: too small for what is printed", cases.index(case))
        found += Sample.column(metric, at, values)
    return found


_PROOF = (
    "title, list of benchmarks and last line once, a table for each benchmark of the list,"
    " sizes that double up to the longest echoed, min <= avg <= max, MB/s = bytes / time,"
    " no unknown name or option, no size left out but for lack of memory or time, no defect of a"
    " checking build"
)
_MEANS = (
    "latency is half the round trip; MB are 10^6, but 2^20 until 4.1; time is the mean over"
    " ranks, time_max the slowest; repetitions fall with the size unless they are set,"
    " which alone changed 1 MiB by 15 %; nothing is sent at 0 bytes of a collective, so"
    " that row is left out; the title of 2019 to 2021.3 says 2018; of IMB-NBC and"
    " Truly_passive_put time is that beside a computation, pure_time that alone"
)
READERS = {
    name: Reader(
        name,
        partial(read, name),
        marks=(f"\n# {part.name}\n",),
        heads=(
            Head(
                "#   ",
                rf"# +Intel ?\(R\) MPI Benchmark(?:s| Suite) [^,\n]*, {TITLES[part.program]} part",
                above="#-{40,}",
                names="\n# Benchmarking ",
            ),
        ),
        versions="2.3 to 4.1, 2018 to 2021.11" if part.program == "IMB-MPI1" else "2021.11",
        proof=_PROOF,
        means=_MEANS,
        dates=(date("# Date ", rf"# Date +: {CTIME}"),),
    )
    for name, part in PARTS.items()
}
