"""What perftest's programs print, and the checks that its report files share.

Formats as printed by perftest 4.5 and as written in its source, src/perftest_parameters.c and .h,
up to 26.04. Its MB/sec and, from 24.07 on, MiB/sec are both 2^20 B; its Gb are 10^9 bits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from paribus.core import Reading, Sample, Scalar
from paribus.readers.figures import count
from paribus.readers.reader import point, single
from paribus.readers.text import line_at, line_of, refuse, refuse_said, within
from paribus.readers.units import rate_of

TO_MIB = {
    unit: (rate_of(unit, two=True) or 0.0) / 2**20 for unit in ("MB/sec", "MiB/sec", "Gb/sec")
}
FACTS = {
    "Mtu": "perftest.mtu",
    "Link type": "perftest.link_type",
    "Transport type": "perftest.transport_type",
    "TX depth": "perftest.tx_depth",
}
"""Settings that are facts, and the keys of these."""

NEEDED = ("Number of qps", "Connection type", "Mtu", "Link type", "Device")
"""Settings that every output has."""

_TITLE = re.compile(
    r"\n +(RDMA_Write|RDMA_Read|Send) (Bidirectional )?(?:Post List )?(BW|Latency) Test *$", re.M
)
_KEYS = (*NEEDED, "Transport type", "GID index", "TX depth")
# What stands before a key is looked at after it, so that the search goes by first letters: a fifth
# of the time.
_SETTING = re.compile(
    "(" + "|".join(rf"{key}(?<=(?:\n |  |\s\t|\S\t){key})" for key in _KEYS) + r")[ \t]*: (\S+)"
)
_BW = re.compile(
    r"^ #bytes +#iterations +BW peak\[(MB/sec|MiB/sec|Gb/sec)\] +BW average\[\1\]"
    r" +MsgRate\[Mpps\](?P<more>(?: +BW min\[\1\])?(?: +CPU_Util\[%\])?)[ \t]*$",
    re.M,
)
_LAT = re.compile(
    r"^ #bytes #iterations +t_min\[usec\] +t_max\[usec\] +t_typical\[usec\] +t_avg\[usec\]"
    r" +t_stdev\[usec\] +99% percentile\[usec\] +99\.9% percentile\[usec\]"
    r"(?P<more> +CPU_Util\[%\])? *$",
    re.M,
)
_LAT_DURATION = re.compile(
    r"^ #bytes +#iterations +t_avg\[usec\] +tps average(?P<more> +CPU_Util\[%\])? *$", re.M
)
# Nothing of a row is to be tried in two ways: hence the possessive quantifiers.
_SIZE_AND_COUNT = r"\n[ \t]*+([0-9]++)[ \t]++([0-9]++)"
_HUNDREDTHS = r"([0-9]++\.[0-9]{2})"
_RATES = _SIZE_AND_COUNT + 3 * r"[ \t]++([0-9]++\.[0-9]{2}(?:[0-9]{4})?)"
# The deviation is the fifth figure: of 1000 us or more, it touches the next column.
_TIMES = (
    _SIZE_AND_COUNT + 5 * rf"[ \t]++{_HUNDREDTHS}" + rf"[ \t]*+{_HUNDREDTHS}[ \t]++{_HUNDREDTHS}"
)
_MEANS = _SIZE_AND_COUNT + 2 * r"[ \t]++([0-9]++(?:\.[0-9]*+)?)"
_RULE = "\n" + "-" * 40
_CLOCK = "Conflicting CPU frequency values detected:"
"""What perftest says inside its table: its clock is the CPU's, whose speed it takes for fixed."""

# The last: its clock could not be set against the time of day, and all rates are 0.
COMPLAINTS = (
    "Unable to find the Infiniband/RoCE device",
    "Couldn't ",
    "Unable to ",
    "Failed to ",
    "Failed status ",
    "Completion with error",
    "Problems with warm up",
    "ERROR",
    "Correlation coefficient r^2:",
)

DISORDER = "minimum, median, mean, percentiles and maximum are out of order"

Row = tuple[int, int, float, float, float]
"""Size in bytes, iterations, peak and average bandwidth, and million messages per second."""


def of_text(program: str, verb: str, kind: str, text: str) -> Reading:
    """Return the reading of a program's output; raises ParseError with the line."""
    title, settings, at = heading(text, within(COMPLAINTS, text))
    if (title[1], title[3]) != (verb, kind):
        refuse(f"{title[0].strip()!r} is not {program}'s", line_of(text, title.start(1)))
    parameters = parameters_of(settings, bidirectional=bool(title[2]))
    version = "not printed"
    if kind == "BW":
        label, rows = bandwidth_rows(text, at)
        version = {"MB/sec": "before 24.07", "MiB/sec": "24.07 or later"}.get(label, version)
        sizes = [row[0] for row in rows]
        unit = TO_MIB[label]
        samples = [
            sample
            for size, _, _, average, rate in rows
            for sample in single(point(bytes=size), bandwidth=average * unit, message_rate=rate)
        ]
        set_iterations(parameters, [row[1] for row in rows if row[2] > 0], len(rows))
    else:
        sizes, samples = _latency(text, at, parameters)
    if sizes[1:] != [2 * size for size in sizes[:-1]]:
        refuse("the sizes do not double: a row is missing", line_of(text, title.end()))
    facts = {
        fact: settings[key].removesuffix("[B]") for key, fact in FACTS.items() if key in settings
    }
    return Reading(program, version, parameters, None, tuple(samples), facts, clock(text))


def clock(text: str) -> tuple[str, ...]:
    """Return a guard if perftest warns of CPU frequencies that differ."""
    if (at := text.find(_CLOCK)) < 0:
        return ()
    return (f"perftest says {line_at(text, at).strip()[:120]!r}: its clock is the CPU's",)


def heading(text: str, complaints: Sequence[str]) -> tuple[re.Match[str], dict[str, str], int]:
    """Return the title, the settings under it, and where the heading of the table begins.

    Raises ParseError with perftest's own words if one of those complaints is in the text.
    """
    refuse_said(text, complaints, "perftest says")
    titles = list(_TITLE.finditer(text))
    if _TITLE.match(f"\n{text[:100]}"):
        refuse("a title in the first line, without the line of dashes above it")
    if len(titles) != 1:
        refuse(f"expected one title such as 'RDMA_Write BW Test', got {len(titles)}")
    at, end = titles[0].end(), text.find(" #bytes")
    if end < at or text.find(" #bytes", end + 1) >= 0:
        refuse("expected one heading that begins with '#bytes'", line_of(text, at))
    found = _SETTING.findall(text, at, end)
    settings = dict(found)
    if len(settings) != len(found):
        refuse("a setting is there twice: two outputs in one", line_of(text, at), alone=True)
    return titles[0], settings, end


def bandwidth_rows(text: str, at: int) -> tuple[str, list[Row]]:
    """Return the unit of the table whose heading begins at `at`, and its rows."""
    head = _BW.match(text, at)
    if not head:
        columns = line_at(text, at).strip()
        refuse(f"columns that are not known: {columns[:120]!r}", line_of(text, at))
    unit = TO_MIB[head[1]]
    found: list[Row] = []
    for row in _rows(text, head, _RATES):
        cells = row.groups()
        size, rate, average = int(cells[0]), float(cells[4]), float(cells[3])
        if int(cells[1]) == 0:
            cause = f"no message of {size} B was completed in its time: it must measure for longer"
            refuse(cause, line_of(text, row.start(1)))
        if not (average > 0 and rate > 0 and fits(average * unit, size, rate, 0.0051 * unit)):
            cause = f"{cells[3]} {head[1]} are not {cells[4]} million messages of {size} B"
            refuse(cause, line_of(text, row.start(1)))
        found.append((size, int(cells[1]), float(cells[2]), average, rate))
    return head[1], found


def fits(mib: float, size: int, rate: float, rounding: float) -> bool:
    """Return whether `rate` million messages/s of `size` B are `mib` MiB/s, within `rounding`."""
    exact = rate * size * 1e6 / 2**20
    return abs(exact - mib) <= rounding + exact * (1e-5 + min(6e-7 / rate, 0.02))


def ordered(low: float, median: float, p99: float, p999: float, high: float, mean: float) -> bool:
    """Return whether minimum, median, percentiles, maximum and mean may belong together.

    The maximum leaves out the two longest, so that a percentile of few iterations may exceed it.
    """
    return 0 < low <= median <= min(p99, high) and p99 <= p999 and low <= mean <= max(high, p999)


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
    """Set the parameter "iterations" if their number was fixed: all `rows` have the same.

    `seen` are the iterations of rows with a peak, which is not printed where a time was fixed. A
    row counts those of all queue pairs.
    """
    if len(seen) == rows and len(set(seen)) == 1:
        pairs = int(parameters["queue_pairs"])
        if seen[0] % pairs:
            refuse(f"{seen[0]} iterations of {pairs} queue pairs")
        parameters["iterations"] = seen[0] // pairs


@cache
def _row(figures: str, more: int) -> re.Pattern[str]:
    """Return the pattern of a row of these figures and of so many columns that are not read.

    Those are the least bandwidth, which some builds print, and the processor's load (--cpu_util).
    """
    return re.compile(figures + more * r"[ \t]++[0-9]++\.[0-9]{2}" + r"[ \t]*+$", re.M)


def _rows(text: str, head: re.Match[str], figures: str) -> list[re.Match[str]]:
    """Return the rows between the heading and the rule below; nothing else."""
    at, row = head.end(), _row(figures, (head["more"] or "").count("["))
    end = text.find(_RULE, at)
    if end < 0:
        refuse(
            "the table has no end, a line of dashes: the program ended before", line_of(text, at)
        )
    found = list(row.finditer(text, at, end))
    others = text.count("\n", at, end) - text.count(f"\n{_CLOCK}", at, end) - len(found)
    if others:
        for number, line in enumerate(text[at + 1 : end].split("\n"), line_of(text, at) + 1):
            if not line.startswith(_CLOCK) and not row.match(f"\n{line}"):
                refuse(f"expected a row of figures, got {line.strip()[:80]!r}", number)
    if others or not found:
        refuse("the table has no row", line_of(text, at))
    return found


def _latency(text: str, at: int, parameters: dict[str, Scalar]) -> tuple[list[int], list[Sample]]:
    """Return sizes and samples of a latency table; set its statistic and iterations."""
    sizes: list[int] = []
    iterations: list[int] = []
    samples: list[Sample] = []
    if head := _LAT_DURATION.match(text, at):
        for row in _rows(text, head, _MEANS):
            if not _agree(float(row[3]), float(row[4])):
                refuse(f"{row[4]} per second of {row[3]} us each", line_of(text, row.start(1)))
            sizes.append(int(row[1]))
            samples += single(point(bytes=sizes[-1]), latency=float(row[3]))
        parameters["statistic"] = "mean"
        return sizes, samples
    head = _LAT.match(text, at)
    if not head:
        refuse("expected the heading '#bytes #iterations t_min[usec] ...'", line_of(text, at))
    for row in _rows(text, head, _TIMES):
        low, high, median, mean, _, p99, p999 = map(float, row.groups()[2:])
        if not ordered(low, median, p99, p999, high, mean):
            refuse(DISORDER, line_of(text, row.start(1)))
        sizes.append(int(row[1]))
        iterations.append(int(row[2]))
        samples += single(point(bytes=sizes[-1]), latency=median, latency_p99=p99)
    parameters["statistic"] = "median"
    set_iterations(parameters, iterations, len(iterations))
    return sizes, samples


def _agree(mean: float, rate: float) -> bool:
    """Return whether `rate` transactions per second take `mean` us each, as far as printed.

    The mean is of half a transaction, but of a read it is of a whole one.
    """
    if not (mean > 0 and rate > 0):
        return False
    off = min(abs(rate * mean * trips / 1e6 - 1) for trips in (1, 2))
    return off <= 0.0001 + 0.006 / mean
