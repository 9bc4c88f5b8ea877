"""What perftest's programs print, and the checks that its report files share.

Formats as printed by perftest 4.5 and as written in its source, src/perftest_parameters.c and .h,
up to 26.04. Its MB/sec and, from 24.07 on, MiB/sec are both 2^20 B; its Gb are 10^9 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from paribus.benchmarks._tool import count, figure, line_at, line_of, refuse
from paribus.model import Case, Reading, Sample, Scalar

TO_MIB = {"MB/sec": 1.0, "MiB/sec": 1.0, "Gb/sec": 1e9 / 8 / 2**20}
SAID = ("Mtu", "Link type", "Transport type", "TX depth")
NEEDED = ("Number of qps", "Connection type", "Mtu", "Link type", "Device")
_TITLE = re.compile(
    r"^ +(RDMA_Write|RDMA_Read|Send) (Bidirectional )?(?:Post List )?(BW|Latency) Test *$", re.M
)
_SETTING = re.compile(
    r"(?:^ |\t| {2})(Number of qps|Transport type|Connection type|Mtu|Link type|GID index|Device"
    r"|TX depth)[ \t]*: (\S+)",
    re.M,
)
_BW = re.compile(
    r"^ #bytes +#iterations +BW peak\[(MB/sec|MiB/sec|Gb/sec)\] +BW average\[\1\]"
    r" +MsgRate\[Mpps\] *$",
    re.M,
)
_LAT = re.compile(
    r"^ #bytes #iterations +t_min\[usec\] +t_max\[usec\] +t_typical\[usec\] +t_avg\[usec\]"
    r" +t_stdev\[usec\] +99% percentile\[usec\] +99\.9% percentile\[usec\] *$",
    re.M,
)
_LAT_DURATION = re.compile(r"^ #bytes +#iterations +t_avg\[usec\] +tps average *$", re.M)
_RULE = "-" * 40
_CLOCK = "Conflicting CPU frequency values detected:"
"""What perftest says inside its table: its clock is the CPU's, whose speed it takes for fixed."""

_TOUCHING = re.compile(r"( *\d+ +\d+(?:[ \t]+\d+\.\d\d){5})(\d+\.\d\d[ \t]+\d+\.\d\d)[ \t]*")
"""A row of latencies whose deviation is 1000 us or more: it touches the next column."""

_COMPLAINTS = (
    "Unable to find the Infiniband/RoCE device",
    "Couldn't ",
    "Unable to ",
    "Failed to ",
    "Failed status ",
    "Completion with error",
    "Problems with warm up",
    "ERROR",
)

Row = tuple[int, int, float, float, float, int]


def of_text(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return what one of the programs printed; raises ParseError with the line."""
    title, settings = heading(text)
    if (title[1], title[3]) != (verb, kind):
        refuse(f"{title[0].strip()!r} is not {program}'s", line_of(text, title.start()))
    parameters = parameters_of(settings, bidirectional=bool(title[2]))
    version = "not printed"
    if kind == "BW":
        label, rows = bandwidth_rows(text, title.end())
        version = {"MB/sec": "before 24.07", "MiB/sec": "24.07 or later"}.get(label, version)
        sizes = [row[0] for row in rows]
        samples = [
            sample
            for size, _, _, average, rate, _ in rows
            for sample in bandwidths(size, average * TO_MIB[label], rate)
        ]
        set_iterations(parameters, [row[1] for row in rows if row[2] > 0], len(rows))
    else:
        sizes, samples = _latency(text, title.end(), parameters)
    if any(after != 2 * before for before, after in pairwise(sizes)):
        refuse("the sizes do not double: a row is missing", line_of(text, title.end()))
    facts = {
        f"perftest.{k.lower().replace(' ', '_')}": settings[k].removesuffix("[B]")
        for k in SAID
        if k in settings
    }
    return Reading(program, version, parameters, None, tuple(samples), facts, clock(text))


def clock(text: str) -> tuple[str, ...]:
    """Return what perftest said of CPU frequencies that differ, once, or nothing."""
    if (at := text.find(_CLOCK)) < 0:
        return ()
    return (f"perftest says {line_at(text, at).strip()[:120]!r}: its clock is the CPU's",)


def heading(text: str) -> tuple[re.Match[str], dict[str, str]]:
    """Return the title and the settings under it; raises ParseError with perftest's own words."""
    for mark in _COMPLAINTS:
        if (at := text.find(mark)) >= 0:
            refuse(f"perftest says {line_at(text, at).strip()[:160]!r}", line_of(text, at))
    titles = list(_TITLE.finditer(text))
    if len(titles) != 1:
        refuse(f"expected one title such as 'RDMA_Write BW Test', got {len(titles)}")
    at, end = titles[0].end(), text.find(" #bytes", titles[0].end())
    if end < 0 or text.count(" #bytes") != 1:
        refuse("expected one heading that begins with '#bytes'", line_of(text, at))
    found = _SETTING.findall(text, at, end)
    if len(dict(found)) != len(found):
        refuse("a setting is there twice: two outputs in one", line_of(text, at))
    return titles[0], dict(found)


def bandwidth_rows(text: str, at: int) -> tuple[str, list[Row]]:
    """Return the unit and every row: size, iterations, peak, average, million messages/s, line."""
    head = _BW.search(text, at)
    if not head:
        refuse("expected the heading '#bytes #iterations BW peak[...] ...'", line_of(text, at))
    found: list[Row] = []
    for cells, line in _rows(text, head.end(), 5):
        if not all(re.fullmatch(r"\d+\.(?:\d\d|\d{6})", cell) for cell in cells[2:]):
            refuse(f"expected figures with decimals, got {' '.join(cells[2:])!r}", line)
        size, iterations = count(cells[0], line), count(cells[1], line)
        average, rate = figure(cells[3], line), figure(cells[4], line)
        if not fits(average * TO_MIB[head[1]], size, rate, 0.0051 * TO_MIB[head[1]]):
            refuse(f"{cells[3]} {head[1]} are not {cells[4]} million messages of {size} B", line)
        found.append((size, iterations, float(cells[2]), average, rate, line))
    return head[1], found


def fits(mib: float, size: int, rate: float, rounding: float) -> bool:
    """Return whether `rate` million messages/s of `size` B are `mib` MiB/s, as far as printed."""
    exact = rate * size * 1e6 / 2**20
    return abs(exact - mib) <= rounding + exact * (1e-5 + min(6e-7 / rate, 0.02))


def bandwidths(size: int, mib: float, rate: float) -> list[Sample]:
    """Return the samples of one size."""
    return [
        Sample("bandwidth", case_of(size), (mib,)),
        Sample("message_rate", case_of(size), (rate,)),
    ]


def latencies(
    size: int, points: tuple[float, float, float, float, float], mean: float, line: int
) -> list[Sample]:
    """Return the samples of one size; `points` are minimum, median, p99, p99.9 and maximum.

    The maximum leaves out the two longest, so that a percentile of few iterations may exceed it.
    """
    low, median, p99, p999, high = points
    if not (0 < low <= median <= min(p99, high) and p99 <= p999 and low <= mean <= max(high, p999)):
        refuse("minimum, median, mean, percentiles and maximum are out of order", line)
    return [
        Sample("latency", case_of(size), (median,)),
        Sample("latency_p99", case_of(size), (p99,)),
    ]


def parameters_of(settings: Mapping[str, str], *, bidirectional: bool) -> dict[str, Scalar]:
    """Return the settings that two outputs must share; raises ParseError for a missing one."""
    for key in NEEDED:
        if key not in settings:
            refuse(f"the setting {key!r} is missing")
    if not (pairs := count(settings["Number of qps"])):
        refuse("0 queue pairs")
    return {
        "queue_pairs": pairs,
        "connection": settings["Connection type"],
        "bidirectional": bidirectional,
    }


def set_iterations(parameters: dict[str, Scalar], seen: list[int], rows: int) -> None:
    """Set the iterations where their number was fixed: equal in all rows, and a peak was printed.

    A row counts the iterations of all queue pairs.
    """
    if len(seen) == rows and len(set(seen)) == 1:
        pairs = int(parameters["queue_pairs"])
        if seen[0] % pairs:
            refuse(f"{seen[0]} iterations of {pairs} queue pairs")
        parameters["iterations"] = seen[0] // pairs


@cache
def case_of(size: int) -> Case:
    """Return the case of one message size."""
    return Case.of(bytes=size)


def _rows(text: str, at: int, columns: int) -> list[tuple[list[str], int]]:
    """Return the rows between the heading that ends at `at` and the rule that ends the table."""
    found = []
    for number, row in enumerate(text[at + 1 :].split("\n"), line_of(text, at) + 1):
        if row.startswith(_RULE):
            break
        if row.startswith(_CLOCK):
            continue
        cells = row.split()
        if len(cells) == 8 and columns == 9 and (touching := _TOUCHING.fullmatch(row)):
            cells = [*touching[1].split(), *touching[2].split()]
        if not cells:
            refuse("the table has no end: the program ended before", number)
        if len(cells) != columns:
            refuse(f"expected a row of {columns} figures, got {row.strip()[:80]!r}", number)
        found.append((cells, number))
    else:
        refuse("the table has no end: a line of dashes", line_of(text, at))
    if not found:
        refuse("the table has no row", line_of(text, at))
    return found


def _latency(text: str, at: int, parameters: dict[str, Scalar]) -> tuple[list[int], list[Sample]]:
    """Return sizes and samples of a latency table, its statistic and iterations as parameters."""
    sizes: list[int] = []
    samples: list[Sample] = []
    if head := _LAT_DURATION.search(text, at):
        parameters["statistic"] = "mean"
        for cells, line in _rows(text, head.end(), 4):
            mean, rate = figure(cells[2], line), figure(cells[3], line)
            count(cells[1], line)
            # Transactions are counted whole, the time is half of one but for reads.
            if min(abs(rate * mean * trips / 1e6 - 1) for trips in (1, 2)) > 0.0001 + 0.006 / mean:
                refuse(f"{cells[3]} per second of {cells[2]} us each", line)
            sizes.append(count(cells[0], line))
            samples.append(Sample("latency", case_of(sizes[-1]), (mean,)))
        return sizes, samples
    head = _LAT.search(text, at)
    if not head:
        refuse("expected the heading '#bytes #iterations t_min[usec] ...'", line_of(text, at))
    iterations = []
    for cells, line in _rows(text, head.end(), 9):
        if not all(re.fullmatch(r"\d+\.\d\d", cell) for cell in cells[2:]):
            refuse(f"expected figures with two decimals, got {' '.join(cells[2:])!r}", line)
        low, high, median, mean, _, p99, p999 = map(float, cells[2:])
        sizes.append(count(cells[0], line))
        iterations.append(count(cells[1], line))
        samples += latencies(sizes[-1], (low, median, p99, p999, high), mean, line)
    parameters["statistic"] = "median"
    set_iterations(parameters, iterations, len(iterations))
    return sizes, samples
