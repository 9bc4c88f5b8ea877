"""The reader of the tables of nccl-tests (nccl_tests.py)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from paribus.benchmarks._apps import found, near
from paribus.benchmarks._tool import line_at, line_of, once, refuse
from paribus.model import Case, Reading, Sample, Scalar

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
    "hypercube": 1.0,
}
"""Bus over algorithm bandwidth, in (n - 1) / n of n ranks; 0 where they are the same
(doc/PERFORMANCE.md of nccl-tests)."""

_VERSION = re.compile(r"# nccl-tests version (\S+)")
_STARTED = re.compile(r"# Collective test starting: (\w+?)_perf[ \t]*$", re.M)
_SETTINGS = re.compile(
    r"nThread +(\d+) +nGpus +(\d+) +minBytes +(\d+) +maxBytes +(\d+) +step: (\d+)\((factor|bytes)\)"
    r" +warmup iters: (\d+) +iters: (\d+)(?: +agg iters: (\d+))? +validation: (\d+)(.*)$",
    re.M,
)
_REDUCED = re.compile(r"# Reducing maxBytes to (\d+) due to memory limitation")
_RANK = re.compile(r"# +Rank +(\d+) .*\bdevice +(\d+) \[[^]]*\] (.+?)[ \t]*$", re.M)
_LISTED = re.compile(r"^# +Rank +", re.M)
_HEADING = re.compile(
    r"# +size +count +type(?: +redop)? +(root +)?(?:cpu)?time +algbw +busbw +(#wrong|error)"
    r"( +i_min +i_max +i_p99 +i_cv%)? +(?:cpu)?time +algbw +busbw +(?:#wrong|error)",
    re.M,
)
_ROWS = re.compile(r" *\d+ +\d+ +\w+ ", re.M)
_BOUNDS = re.compile(r"# Out of bounds values : (\d+) (OK|FAILED)[ \t]*$", re.M)
_AVERAGE = re.compile(r"# Avg bus bandwidth +: (\d\S*)(?: +(OK|FAILED))?[ \t]*$", re.M)


@cache
def case_of(size: int) -> Case:
    """Return the case of a size; there are few, and they are met often."""
    return Case.of(bytes=size)


@cache
def _row(root: bool, iterations: bool) -> re.Pattern[str]:
    """Return the pattern of one row."""
    number = r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
    more = r"(?: +\d\S*){4}" if iterations else ""
    figures = rf" +{number} +{number} +{number} +(N/A|\d\S*){more}"
    place = r" +(-?\d+)" if root else "()"
    return re.compile(
        rf" *(\d+) +(\d+) +(\w+)(?: +([a-z]\w*))?{place}{figures}{figures}"
        r"(?: +\d+-\d+-\d+ [\d:]+)?[ \t]*$",
        re.M,
    )


def read(text: str) -> Reading:
    """Return the time of every size, out of place and in place, and the bus bandwidth of it."""
    at = once(text, "nThread ", "the line of settings, 'nThread ... nGpus ...'")
    said = _SETTINGS.search(text, at)
    if said is None or said.start() != at:
        refuse("the line of settings is damaged", line_of(text, at))
    low, high, step = map(int, said.group(3, 4, 5))
    checked = said[10] != "0"
    if reduced := _REDUCED.search(text):
        high = int(reduced[1])
    ranks = _check_ranks(text)
    headings = found(text, " algbw ", _HEADING)
    if len(headings) != 1:
        refuse("the heading of the table is not there once and whole")
    heading = headings[0]
    name = _collective(text)
    rows = _rows(text, heading)
    sizes_found = [int(row[0]) for _, row in rows]
    _check_sizes(sizes_found, low, high, step, ranks, factor=said[6] == "factor")
    empty = sum(row[0] == "0" for _, row in rows)
    rows = [(line, row) for line, row in rows if row[0] != "0"]
    factor = _factor(name, ranks, [row for _, row in rows])
    samples: dict[str, list[Sample]] = {}
    speeds: list[float] = []
    for line, row in rows:
        case = case_of(int(row[0]))
        for suffix, start in (("", 5), ("_in_place", 9)):
            if checked or row[start + 3] != "N/A":
                _check_data(row, start, old=heading[2] == "error", line=line)
            time, bus = _figures(row, start, factor, line)
            speeds.append(bus)
            for metric, value in (("time", time), ("bus_bandwidth", bus)):
                sample = Sample(f"{metric}{suffix}", case, (value,))
                samples.setdefault(sample.metric, []).append(sample)
    # Sizes of less than an element are rows of 0 B, and count in the average of the program.
    _check_footer(text, [*speeds, *[0.0] * (2 * empty)])
    version, first = _VERSION.search(text), rows[0][1]
    parameters: dict[str, Scalar] = {
        "type": first[2],
        "redop": first[3] or "none",
        "root": first[4] or "-1",
        "iterations": int(said[8]),
        "gpus_per_thread": int(said[2]),
        "checked": checked,
    }
    if name:
        parameters["collective"] = name
    gpus = sorted({match[3] for match in found(text, " Rank ", _RANK)})
    facts = {"gpu.ranks": ranks, "gpu.models": gpus}
    every = tuple(sample for group in samples.values() for sample in group)
    release = version[1] if version else "before 2.17"
    guards = () if checked else ("the data were not checked (-c 0): wrong ones take the same time",)
    return Reading("nccl_tests", release, parameters, ranks, every, facts, guards)


def _check_ranks(text: str) -> int:
    """Return how many ranks took part, each named once."""
    ranks = [int(match[1]) for match in found(text, " Rank ", _RANK)]
    if sorted(ranks) != list(range(len(ranks))) or len(_LISTED.findall(text)) != len(ranks):
        refuse("the list of ranks and devices is damaged, or of several outputs")
    if len(ranks) < 2:
        refuse(f"{len(ranks)} rank took part, so nothing was communicated: built without MPI=1?")
    return len(ranks)


def _collective(text: str) -> str:
    """Return what was measured, "" where an old version does not say."""
    started = _STARTED.findall(text)
    if text.count("# Collective test starting") != len(started) or len(started) > 1:
        refuse("the line 'Collective test starting' is damaged or there twice")
    return started[0] if started else ""


def _rows(text: str, heading: re.Match[str]) -> list[tuple[int, tuple[str, ...]]]:
    """Return the rows of the table with their line numbers."""
    pattern = _row(bool(heading[1]), bool(heading[3]))
    rows: list[tuple[int, tuple[str, ...]]] = []
    line = line_of(text, heading.start())
    at = heading.start()
    stop = text.find("# Out of bounds", at)
    while at < (stop if stop >= 0 else len(text)):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if match := pattern.match(text, at):
            rows.append((line, match.groups()))
        elif _ROWS.match(text, at):
            refuse(f"not a whole row: {line_at(text, at).strip()[:100]!r}", line)
        at, line = end + 1, line + 1
    if not any(int(row[0]) for _, row in rows):
        refuse("the table has no rows", line_of(text, heading.start()))
    if len({(row[2], row[3], row[4]) for _, row in rows}) > 1:
        refuse("several types, operations or roots in one table: use one file for each")
    return rows


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
    for one, other in zip(found, wanted, strict=True):
        if not other - max(4096, 64 * ranks) <= one <= other:
            refuse(f"a row of {one} B where {other} B were announced")


def _factor(name: str, ranks: int, rows: Sequence[Sequence[str]]) -> float:
    """Return bus over algorithm bandwidth; for a version that does not name its collective the
    one that its largest size shows.
    """
    share = (ranks - 1) / ranks
    if name:
        return FACTORS.get(name, 0.0) * share or 1.0
    algorithm, bus = map(float, rows[-1][6:8])
    fits = [f for f in (1.0, share, 2 * share) if near(bus, f * algorithm, 0.015)]
    if algorithm < 1 or not fits:
        refuse(f"which collective it is cannot be told from {bus:g} and {algorithm:g} GB/s")
    return fits[0]


def _check_data(row: Sequence[str], start: int, *, old: bool, line: int) -> None:
    """Refuse half a row whose data were wrong, or, out of place, not checked.

    `old`: the last column is the largest deviation, where it is the number of wrong values now; in
    place it was printed for collectives that have no data to be checked there, too.
    """
    word = row[start + 3]
    if old and start != 5:
        return
    if word == "N/A":
        if start == 5:
            refuse(f"the data of {row[0]} B were not checked (#wrong is N/A)", line)
    elif float(word) > (1e-3 if old else 0):
        refuse(f"{word} wrong values at {row[0]} B", line)


def _figures(row: Sequence[str], start: int, factor: float, line: int) -> tuple[float, float]:
    """Return time in us and bus bandwidth in GB/s of half a row; refuses figures that differ.

    The bandwidth is computed, for it is printed with two decimals.
    """
    words = row[start : start + 3]
    time, algorithm, bus = map(float, words)
    if not time > 0:
        refuse(f"a time of {words[0]} us at {row[0]} B", line)
    speed = int(row[0]) / time / 1e3
    if abs(speed - algorithm) > 0.011 + 0.006 * speed:
        refuse(f"{row[0]} B in {words[0]} us are not {words[1]} GB/s", line)
    if abs(speed * factor - bus) > 0.011 + 0.006 * bus:
        refuse(f"{words[1]} GB/s are not {words[2]} GB/s of the bus", line)
    return time, speed * factor


def _check_footer(text: str, speeds: Sequence[float]) -> None:
    """Refuse an output whose end is missing or contradicts its rows."""
    bounds, average = (
        [match.groups() for match in found(text, mark, pattern)]
        for mark, pattern in (("Out of bounds", _BOUNDS), ("Avg bus", _AVERAGE))
    )
    if len(bounds) != 1 or len(average) != 1:
        refuse("the last lines, 'Out of bounds values' and 'Avg bus bandwidth', are not there once")
    if bounds[0] != ("0", "OK"):
        refuse(f"out of bounds values: {' '.join(bounds[0])}")
    if average[0][1] == "FAILED":
        refuse(f"the average of {average[0][0]} GB/s is below what NCCL_TESTS_MIN_BW demands")
    mean = sum(speeds) / len(speeds)
    if not near(float(average[0][0]), mean, 0.02):
        refuse(f"the bus bandwidth of the rows is {mean:.4g} GB/s, not {average[0][0]} on average")
