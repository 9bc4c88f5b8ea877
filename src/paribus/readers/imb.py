"""What IMB-MPI1, IMB-NBC and IMB-RMA of the Intel MPI Benchmarks print, read.

One output may hold several benchmarks, each with a table per number of processes; each benchmark
takes its own.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import compress

from paribus.model import Case, Reading, Sample, Scalar
from paribus.readers.dates import CTIME, date
from paribus.readers.heads import Head
from paribus.readers.imb_output import Settings, Table, numbers, output_of
from paribus.readers.imb_parts import MODES, PARTS, TITLES
from paribus.readers.reader import Reader
from paribus.readers.text import refuse

_COLUMNS = {
    "latency": ("t[usec]", "t_avg[usec]"),
    "bandwidth": ("Mbytes/sec",),
    "time": ("t_ovrl[usec]", "t_avg[usec]", "t[usec]"),
    "time_max": ("t_max[usec]",),
    "pure_time": ("t_pure[usec]",),
}


def read(name: str, text: str) -> Reading:
    """Return what one part of a program printed; raises ParseError with the line."""
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
    said = _parameters(own, output.settings)
    several = len(own) > len(by_mode)
    found = [sample for table in own for sample in _samples(table, part.metrics, several)]
    return Reading(name, output.version, said, ranks, tuple(found))


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
        told = ", ".join(map(str, counts))
        own[0].refuse(f"tables of {told} processes do not account for {ranks} ranks")
    return ranks


def _parameters(own: list[Table], settings: Settings) -> dict[str, Scalar]:
    """Return what tables and calling sequence say of how was measured."""
    said: dict[str, Scalar] = {}
    # Unless it is told not to, IMB repeats what takes long less often: no setting of the user's.
    if settings.fixed:
        counts = list(dict.fromkeys(n for table in own for n in table.columns["#repetitions"]))
        said["iterations"] = int(counts[0]) if len(counts) == 1 else "/".join(counts)
    if any("Group" in table.columns for table in own):
        said["multi"] = 1
    elif any(table.multi for table in own):
        said["multi"] = 0
    if settings.options:
        said["options"] = settings.options
    if settings.datatype:
        said["datatype"] = settings.datatype
    return said


@lru_cache(maxsize=4096)
def case_of(
    processes: int | None, group: int | None, size: int | None, mode: str | None = None
) -> Case:
    """Return the case of what is not None."""
    keys = {"ranks": processes, "group": group, "bytes": size, "mode": mode}
    return Case.of(**{key: value for key, value in keys.items() if value is not None})


def _samples(table: Table, metrics: tuple[str, ...], several: bool) -> list[Sample]:
    """Return the samples of a table, without the row of 0 bytes where nothing is measured."""
    columns = table.columns
    nothing = (None,) * len(columns["#repetitions"])
    sizes = table.sizes() if "#bytes" in columns else nothing
    groups = numbers(tuple(columns["Group"])) if "Group" in columns else nothing
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
    " no unknown name or option, no size left out, no defect of a checking build"
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
