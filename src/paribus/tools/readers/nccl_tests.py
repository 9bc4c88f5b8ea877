"""What the programs of nccl-tests print: settings, the ranks with their GPUs, and a table.

A row, "1024  256  float  sum  -1  30.20  0.03  0.05  0  30.84  0.03  0.05  0" with more blanks, has
a size, then time, algorithm and bus bandwidth and wrong values, out of place and in place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby

from paribus.core import Case, Reading, Sample, Scalar
from paribus.readers.figures import near
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, point
from paribus.readers.text import found, line_at, line_of, once, refuse

FACTORS = {
    "all_reduce": 2.0,
    "all_gather": 1.0,
    "reduce_scatter": 1.0,
    "alltoall": 1.0,
    "broadcast": 0.0,
    "reduce": 0.0,
    "sendrecv": 0.0,
    "gather": 1.0,
    "scatter": 1.0,
    "hypercube": 0.0,
}
"""Bus over algorithm bandwidth, in (n - 1) / n of n ranks; 0 where they are the same
(doc/PERFORMANCE.md of nccl-tests)."""

_REDUCING = frozenset({"all_reduce", "reduce_scatter", "reduce", "sendrecv"})
_ROOTED = frozenset({"broadcast", "reduce", "gather", "scatter"})
_NOT_IN_PLACE = frozenset({"alltoall", "sendrecv"})
"""Collectives whose tables name an operation, those that name a root, and those whose data the
program cannot check in place."""

_VERSION = re.compile(
    r"# [nr]ccl-tests version (\S+)(?: [nr]ccl-headers=\d+ [nr]ccl-library=(\d+)$)?", re.M
)
_NAMED = re.compile(rf"(?m)^(?![ \t]*#).*\b((?:{'|'.join(FACTORS)})(?:v|_bias)?)_perf\b")
_STARTED = re.compile(r"# Collective test starting: (\w+?)_perf(?:_mpi)?[ \t]*$", re.M)
_SETTINGS = re.compile(
    r"nThread +(\d+) +nGpus +(\d+) +minBytes +(\d+) +maxBytes +(\d+) +step: (\d+)\((factor|bytes)\)"
    r" +warmup iters: (\d+) +iters: (\d+)(?: +agg iters: (\d+))? +validation: (\d+)(.*)$",
    re.M,
)
_REDUCED = re.compile(r"# Reducing maxBytes to (\d+) due to memory limitation")
_RANK = re.compile(r"# +Rank +(?:(\d+) .* device +\d+ \[[^]\n]*\] (.*\S))?")
_HEADING = re.compile(
    r"# +size +count +type(?: +redop)? +(root +)?(?:cpu)?time +algbw +busbw +(#wrong|error)"
    r"( +i_min +i_max +i_p99 +i_cv%)? +(?:cpu)?time +algbw +busbw +(?:#wrong|error)",
    re.M,
)
_END = "# Out of bounds"
_BOUNDS = re.compile(r"# Out of bounds values : (\d+) (OK|FAILED)[ \t]*$", re.M)
_AVERAGE = re.compile(r"# Avg bus bandwidth +: (\d\S*)(?: +GB/s)?(?: +(OK|FAILED))?[ \t]*$", re.M)

_KINDS = {"type": 2, "redop": 3, "root": 4}
"""Columns of a table that may have several values: -d, -o and -r ask for all."""

Row = tuple[str, ...]
"""The 13 cells of a row: size, count, type, operation, root; then, out of place and in place, time
in us, algorithm and bus bandwidth in GB/s, and wrong values."""


@cache
def _row(root: bool, iterations: bool) -> re.Pattern[str]:
    """Return the pattern of one row; a damaged row matches too, but has no size.

    `root` and `iterations` are whether the heading has those columns. It begins with the end of the
    line before, so that other lines are skipped at once.
    """
    figures = " ++([0-9]++[.]?+[0-9]*+(?:e[+-]?[0-9]++)?+)" * 3 + r" ++(N/A|[0-9]\S*+)"
    figures += r"(?: ++[0-9]\S*+){4}" if iterations else ""
    kind = r" ++(\w++)(?: ++([a-z]\w*+))?" + (" ++(-?[0-9]++)" if root else "()")
    return re.compile(
        rf"\n *+(?:(0|[1-9][0-9]*+) ++([0-9]++){kind}{figures}{figures}"
        r"(?: +\d+-\d+-\d+ [\d:]+)?[ \t]*(?=\n)|\d+ +\d+ +\w+ )"
    )


def read(text: str) -> Reading:
    """Return the time of every size, out of place and in place, and the bus bandwidth of it."""
    _check_alone(text)
    at = once(text, "nThread ", "the line of settings, 'nThread ... nGpus ...'")
    settings = _SETTINGS.match(text, at)
    if settings is None:
        refuse("the line of settings is damaged", line_of(text, at))
    low, high, step = map(int, settings.group(3, 4, 5))
    checked = settings[10] != "0"
    if reduced := _REDUCED.search(text):
        high = int(reduced[1])
    gpus = _gpus(text)
    ranks = len(gpus)
    collective = _collective(text, at)
    headings = found(text, " algbw ", _HEADING)
    if not headings and "in-place" in text and "out-of-place" not in text:
        refuse("a table without columns out of place: run it without -O 0", form=True)
    if not headings:
        refuse("the program ended before its table", text.rstrip("\n").count("\n") + 1)
    if len(headings) > 1:
        refuse("the heading of the table is there twice", line_of(text, headings[1].start()))
    every = _rows(text, headings[0])
    for several in _sweeps(text, every):
        sizes = [int(row[0]) for row in several]
        _check_sizes(sizes, low, high, step, ranks, factor=settings[6] == "factor")
    # Sizes of less than an element are rows of 0 B, and count in the average of the program.
    rows = [row for row in every if row[0] != "0"]
    sizes = [int(row[0]) for row in rows]
    unknown = not checked or headings[0][2] == "error"
    in_place = None if unknown else any(row[12] != "N/A" for row in rows)
    collective, factor = _shown(collective, ranks, rows, in_place)
    apart = [name for name, at in _KINDS.items() if len({row[at] for row in rows}) > 1]
    cases = [_case_of(row, apart) for row in rows]
    columns = list(zip(*rows, strict=True))[5:]
    # Both bandwidths of a hypercube count what the other ranks send, without a rank's own share.
    others = (ranks - 1) / ranks if collective == "hypercube" else 1.0
    samples: list[Sample] = []
    total = 0.0
    for suffix, half in (("", columns[:4]), ("_in_place", columns[4:])):
        _check_data(text, sizes, half[3], suffix, checked=checked, old=headings[0][2] == "error")
        times, speeds = _figures(text, sizes, half, factor, others)
        total += sum(speeds)
        for name, values in (("time", times), ("bus_bandwidth", speeds)):
            samples += Sample.column(name + suffix, cases, values)
    _check_footer(text, total / (2 * len(every)))
    version = _VERSION.search(text)
    parameters: dict[str, Scalar] = {
        **{name: value for name, value in _kind(rows[0]).items() if name not in apart},
        "iterations": int(settings[8]),
        "gpus_per_thread": int(settings[2]),
        "checked": checked,
    }
    if collective:
        parameters["collective"] = collective
    facts = {"gpu.ranks": ranks, "gpu.models": sorted(set(gpus))}
    if version and version[2]:
        facts["nccl.version"] = _release(int(version[2]))
    release = version[1] if version else "before 2.17"
    guards = () if checked else ("the data were not checked (-c 0): wrong ones take the same time",)
    return Reading("nccl_tests", release, parameters, ranks, tuple(samples), facts, guards)


def _release(code: int) -> str:
    """Return the version of NCCL that a number stands for (NCCL_VERSION in nccl.h).

    >>> _release(23007), _release(2804)
    ('2.30.7', '2.8.4')
    """
    minor = 100 if code >= 10_000 else 10
    return f"{code // (100 * minor)}.{code // 100 % minor}.{code % 100}"


def _check_alone(text: str) -> None:
    """Refuse outputs of ranks that each measured itself, in one text."""
    listed = found(text, " Rank ", _RANK)
    if len(listed) > 1 and {match[1] for match in listed} == {"0"}:
        refuse(
            f"rank 0 is listed {len(listed)} times, and no other: built without MPI=1, so that each"
            " rank measured itself",
            line_of(text, listed[1].start()),
            alone=True,
        )


def _gpus(text: str) -> list[str]:
    """Return the model of every rank's device, each rank named once."""
    listed = [match.groups() for match in found(text, " Rank ", _RANK)]
    numbers = [int(number or -1) for number, _ in listed]
    if sorted(numbers) != list(range(len(numbers))):
        refuse("the list of ranks and devices is damaged, or of several outputs")
    if len(listed) < 2:
        refuse(
            "1 rank took part, so nothing was communicated: built without MPI=1, so that each rank"
            " measured itself?"
            if listed
            else "no rank and device is listed: the lines '#  Rank  0 ... device  0' are missing"
        )
    return [model for _, model in listed]


def _collective(text: str, at: int) -> str:
    """Return the collective, "" if neither an old version nor the command above it names it."""
    mark = "# Collective test starting"
    started = _STARTED.search(text)
    if text.count(mark) != (started is not None):
        refuse(f"the line {mark[2:]!r} is damaged or there twice")
    if started:
        return started[1]
    named = _NAMED.findall(text, max(0, at - 2048), at)
    return named[-1] if named else ""


def _rows(text: str, heading: re.Match[str]) -> list[Row]:
    """Return the rows of the table; lines of NCCL itself may stand between them."""
    pattern = _row(bool(heading[1]), bool(heading[3]))
    start, end = heading.end(), text.find(_END, heading.end())
    if end < 0:
        refuse(f"no line {_END!r} after the table: the program ended before", line_of(text, start))
    rows = pattern.findall(text, start, end)
    if not all(row[0] for row in rows):
        broken = next(match for match in pattern.finditer(text, start, end) if not match[1])
        at = broken.start() + 1
        refuse(f"not a whole row: {line_at(text, at).strip()[:100]!r}", line_of(text, at))
    if not any(int(row[0]) for row in rows):
        refuse("the table has no rows", line_of(text, start))
    return rows


def _sweeps(text: str, rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in lists, one for each type, operation and root.

    Raises ParseError if those of one do not follow each other.
    """
    found = [list(several) for _, several in groupby(rows, key=lambda row: row[2:5])]
    if len({several[0][2:5] for several in found}) < len(found):
        refuse("rows of one type, operation and root stand apart", line_of(text, text.find(_END)))
    return found


def _kind(row: Row) -> dict[str, Scalar]:
    """Return type, operation and root of a row as parameters."""
    return {"type": row[2], "redop": row[3] or "none", "root": row[4] or "-1"}


def _case_of(row: Row, apart: Sequence[str]) -> Case:
    """Return the case of a row of a table in which `apart` differ from row to row."""
    kind = _kind(row)
    return point(bytes=int(row[0]), **{name: kind[name] for name in apart})


def _line(text: str, size: int) -> int:
    """Return the number of the line of the first row of a size, 0 if it is not found."""
    row = re.search(rf"\n *{size} ", text)
    return line_of(text, row.end()) if row else 0


def _check_sizes(
    found: Sequence[int], low: int, high: int, step: int, ranks: int, *, factor: bool
) -> None:
    """Refuse sizes that are not those that the settings announce.

    A collective rounds its size down to equal shares of whole elements.
    """
    wanted: list[int] = []
    size, before = low, -1
    while before < size <= high and len(wanted) <= len(found):
        wanted.append(size)
        size, before = (size * step if factor else size + step), size
    if len(wanted) != len(found) or size <= high:
        refuse(f"{len(found)} sizes, not those that the settings announce, {low} to {high} B")
    slack = max(4096, 64 * ranks)
    for one, other in zip(found, wanted, strict=True):
        if not other - slack <= one <= other:
            refuse(f"a row of {one} B where {other} B were announced")


def _shown(name: str, ranks: int, rows: Sequence[Row], in_place: bool | None) -> tuple[str, float]:
    """Return the collective, "" where it is not known, and its ratio of bus to algorithm bandwidth.

    Where nothing names it, or a name such as alltoallv that is not in FACTORS, the rows show it: by
    an operation, a root, data that were checked in place (None if that is not known), and both
    bandwidths.
    """
    share = (ranks - 1) / ranks
    factors = {one: factor * share or 1.0 for one, factor in FACTORS.items()}
    if name in factors:
        return name, factors[name]
    speeds = [(float(row[6]), float(row[7])) for row in rows]
    fits = [one for one, factor in factors.items() if _agree(speeds, factor)]
    rooted, reducing = rows[0][4] not in ("", "-1"), _kind(rows[0])["redop"] != "none"
    alike = [
        one
        for one in fits
        if ((one in _ROOTED), (one in _REDUCING)) == (rooted, reducing)
        and (in_place is None or (one in _NOT_IN_PLACE) != in_place)
    ]
    left = [factors[one] for one in alike or fits]
    if not left or not near(min(left), max(left), 0.015):
        refuse("the collective is unclear from {1:g} and {0:g} GB/s".format(*speeds[-1]))
    return name or (alike[0] if len(alike) == 1 else ""), left[0]


def _agree(speeds: Sequence[tuple[float, float]], factor: float) -> bool:
    """Return whether each bus bandwidth follows from its algorithm bandwidth, both rounded."""
    slack = 0.005 * (1 + factor) + 1e-9 if factor != 1 else 0
    return all(abs(bus - factor * algorithm) <= slack for algorithm, bus in speeds)


def _check_data(
    text: str, sizes: list[int], words: Row, suffix: str, *, checked: bool, old: bool
) -> None:
    """Refuse half a table whose data were wrong, or, out of place, not checked.

    `words` are its last column. `old`: that is the largest deviation, not the number of wrong
    values; in place it was printed also for collectives that have no data to check there.
    """
    if old and suffix:
        return
    if "N/A" in words and checked and not suffix:
        size = sizes[words.index("N/A")]
        refuse(f"the data of {size} B were not checked (#wrong is N/A)", _line(text, size))
    for word in set(words) - {"N/A"}:
        if float(word) > (1e-3 if old else 0):
            size = sizes[words.index(word)]
            refuse(f"{word} wrong values at {size} B", _line(text, size))


def _figures(
    text: str, sizes: list[int], words: Sequence[Row], factor: float, others: float
) -> tuple[list[float], list[float]]:
    """Return times in us and bus bandwidths in GB/s of half a table; refuses figures that differ.

    `others` is the share of a size that counts. The bandwidth is computed from the time, because it
    is printed with two decimals. A time of ten seconds or more has two digits ("1.0e+07"): it is
    computed from the bandwidth.
    """
    times, algorithms, buses = (list(map(float, column)) for column in words[:3])
    if not min(times) > 0:
        size = sizes[times.index(min(times))]
        refuse(f"a time of {min(times)} us at {size} B", _line(text, size))
    speeds: list[float] = []
    for at, (size, algorithm, bus) in enumerate(zip(sizes, algorithms, buses, strict=True)):
        rough = "e" in words[0][at] and algorithm > 0.1
        speed = others * size / times[at] / 1e3
        if abs(speed - algorithm) > 0.011 + (0.06 if rough else 0.006) * speed:
            refuse(f"{size} B in {times[at]} us are not {algorithm} GB/s", _line(text, size))
        if rough:
            speed, times[at] = algorithm, others * size / algorithm / 1e3
        speed *= factor
        if abs(speed - bus) > 0.011 + 0.006 * bus:
            refuse(f"{algorithm} GB/s are not {bus} GB/s of the bus", _line(text, size))
        speeds.append(speed)
    return times, speeds


def _check_footer(text: str, mean: float) -> None:
    """Refuse an output whose end is missing or contradicts the mean bandwidth of its rows."""
    bounds, average = (
        [match.groups() for match in found(text, mark, pattern)]
        for mark, pattern in ((_END, _BOUNDS), ("Avg bus", _AVERAGE))
    )
    if len(bounds) != 1 or len(average) != 1:
        refuse("the last lines, 'Out of bounds values' and 'Avg bus bandwidth', are not there once")
    if bounds[0] != ("0", "OK"):
        refuse(f"out of bounds values: {' '.join(bounds[0])}")
    if average[0][1] == "FAILED":
        refuse(f"the average of {average[0][0]} GB/s is below what NCCL_TESTS_MIN_BW demands")
    if not near(float(average[0][0]), mean, 0.02):
        refuse(f"the bus bandwidth of the rows is {mean:.4g} GB/s, not {average[0][0]} on average")


READER = Reader(
    "nccl_tests",
    read,
    marks=("# nThread ",),
    heads=(
        Head(
            "# nThread ",
            above=r"# [nr]ccl-tests version .*|# Collective test starting.*|(?!#).*\b\w+_perf\b.*",
        ),
    ),
    library=" NCCL ",
    versions="2.4 to 2.19; RCCL's rccl-tests",
    proof=(
        "settings and heading once, every rank and its device once and two at least, every size"
        " that the settings announce, size / time = algbw, #wrong 0 at every size unless checked ="
        " false, 0 values out of bounds, the average of the rows"
    ),
    means=(
        "mean over iterations, without the first; bus bandwidth is algorithm bandwidth times what"
        " the collective must send, so that it can be held against a link; rows of 0 bytes are"
        " left out; in place some collectives are not checked by the program"
    ),
)
