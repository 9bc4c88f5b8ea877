"""fio's text: a block for each job, then the run status of each group.

A block has for each direction a line such as
"  read: IOPS=7264, BW=28.4MiB/s (29.8MB/s)(56.8MiB/2001msec)", and latencies below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from paribus.core import Case, ParseError, Reading, Sample, Scalar
from paribus.readers.figures import figure
from paribus.readers.reader import point, single
from paribus.readers.text import line_of, refuse
from paribus.readers.units import TEN, TWO, seconds_of

_VERSION = re.compile(r"\nfio-(\d+\.\d+\S*) *(?=\n)")
_HEAD = re.compile(
    r"\n\S.*: \(g=\d+\): rw=(\w+),"
    r" bs=\(R\) ([\d.]+\w*)-([\d.]+\w*), \(W\) ([\d.]+\w*)-([\d.]+\w*),"
    r" .*ioengine=(\w+), iodepth=(\d+) *(?=\n)"
)
JOB = re.compile(r"\n(\S.*): \(groupid=\d+, jobs=(\d+)\): err= *(\d+)(.*)")
"""The first line of the block of a job, behind the end of the line before."""

_OP = re.compile(
    r"\n   ?(read|write): IOPS=([\d.]+[kMG]?), BW=([\d.]+)([KMGT]?i?)B/s \(([\d.]+)([kMGT]?)B/s\)"
    r"\(([\d.]+)([KMGT]?i?)B/(\d+)msec\)"
)
_LATENCY = re.compile(
    r"\n     lat \((nsec|usec|msec)\): min= *([\d.]+[kM]?), max= *([\d.]+[kM]?), avg= *([\d.]+),"
    r" stdev="
)
_TAILS = re.compile(r"\n    clat percentiles \((nsec|usec|msec)\):((?:\n     \|.*)+)")
_TAIL = re.compile(r" (\d+\.\d\d)th=\[ *(\d+)\]")
_ISSUED = re.compile(r"\n     issued rwts?: total=(\d+),(\d+),\d+,\d* short=\d")
_STATUS = re.compile(r"\n +(READ|WRITE): bw=\S+ \(\S+\), .* run=\d+-\d+msec *(?![^\n])")
_BLOCK = re.compile(r"([\d.]+)([KMG]?i?)B")
_TWO = {"": 1.0, **TWO}

Figures = Mapping[str, Mapping[str, float]]
"""Figures of a job by direction and metric; "operations" is how many it did."""


def of_text(text: str) -> Reading:
    """Return the reading of fio's text; each of several jobs is a case of its own."""
    # Patterns begin with the end of the line before: so they are found much faster than by "^".
    # With the one that is put here, line_of of a match's start is still the number of its line.
    text = f"\n{text}"
    versions = _VERSION.findall(text)
    if len(versions) != 1:
        refuse(f"expected fio's version once, as 'fio-3.33', got it {len(versions)} times")
    if versions[0].startswith("2."):
        refuse(f"fio {versions[0]} prints other lines than fio 3, which is read", form=True)
    end = text.find("\nRun status group ")
    jobs = list(JOB.finditer(text, 0, max(end, 0)))
    if end < 0 or not jobs:
        refuse("no job with its run status: fio did not end")
    if len(jobs) != text.count("): err="):
        refuse("a job's first line is not whole", line_of(text, jobs[0].start()))
    found: list[tuple[str, Figures]] = []
    for job, until in zip(jobs, [*(job.start() for job in jobs[1:]), end], strict=True):
        name, _, error, rest = job.groups()
        if error != "0":
            refuse(f"fio says err={error}{rest[:120]}", line_of(text, job.start()))
        found.append((name, job_of_text(text, job.start(), until)))
    if set(map(str.lower, _STATUS.findall(text, end))) != {op for _, ops in found for op in ops}:
        refuse("the run status does not fit what the jobs did", line_of(text, end))
    count = int(jobs[0][2]) if len(jobs) == 1 else len(jobs)
    parameters = parameters_of_text(text, count)
    return Reading("fio", versions[0], parameters, None, samples_of(found))


def samples_of(jobs: Sequence[tuple[str, Figures]]) -> tuple[Sample, ...]:
    """Return the samples of jobs by name, of which several may have the same."""
    counts: Counter[str] = Counter()
    samples: list[Sample] = []
    for name, ops in jobs:
        counts[name] += 1
        label = name if counts[name] == 1 else f"{name}.{counts[name]}"
        for op, values in ops.items():
            figures = {key: value for key, value in values.items() if key != "operations"}
            samples += single(of_op(op, label if len(jobs) > 1 else ""), **figures)
    return tuple(samples)


def of_op(op: str, job: str) -> Case:
    """Return the case of a direction, and of the job where there are several."""
    return point(op=op, job=job) if job else point(op=op)


def job_of_text(text: str, at: int, end: int) -> Figures:
    """Return the figures of a job whose block is from `at` to `end`; raises ParseError."""
    ops = list(_OP.finditer(text, at, end))
    issued = _ISSUED.findall(text, at, end)
    if not ops or len(issued) != 1 or len({op[1] for op in ops}) != len(ops):
        refuse("a job without its figures, or with those of another", line_of(text, at))
    if len(ops) != text.count(": IOPS=", at, end):
        refuse("a line with IOPS is not whole", line_of(text, at))
    found = {}
    for op, until in zip(ops, [*(o.start() for o in ops[1:]), end], strict=True):
        done = int(issued[0][op[1] == "write"])
        try:
            figures = _figures(text[op.end() : until], op.groups(), done)
            found[op[1]] = {**figures, "operations": done}
        except ParseError as error:
            refuse(f"{op[1]}: {error.cause}", line_of(text, op.start()))
    return found


def _figures(rest: str, words: Sequence[str], done: int) -> dict[str, float]:
    """Return the figures of a direction.

    `words` are the groups of _OP in its first line, `rest` its other lines, `done` its operations.
    """
    _, iops, two, two_unit, ten, ten_unit, moved, moved_unit, milliseconds = words
    seconds = figure(milliseconds) / 1000
    right = done / seconds
    printed = ((ten, TEN[ten_unit]), (two, _TWO[two_unit]), (moved, _TWO[moved_unit] / seconds))
    least, most = zip(*(_span(word, unit) for word, unit in printed), strict=True)
    low, high = _span(iops.rstrip("kMG"), TEN.get(iops[-1], 1.0))
    if max(least) > 1.02 * min(most) or not low / 1.02 <= max(right, 0.5) <= 1.02 * high:
        refuse(f"rate, bandwidth, bytes and {seconds} s do not agree")
    rate, *others = (figure(word) * unit for word, unit in printed)
    if max(others) > rate + 0.5 * TEN[ten_unit] and ten.endswith(".0"):
        rate = max(others)
    found = {"bandwidth": rate / 1e6, "iops": right}
    if "lat (" not in rest and "percentiles" not in rest:
        return found  # --gtod_reduce: no clock was read for any of them
    latency, tails = _LATENCY.findall(rest), _TAILS.findall(rest)
    if len(latency) != 1 or len(tails) != 1:
        refuse("latency, or the percentiles of completion, are missing (--clat_percentiles=1)")
    unit, *extremes = latency[0]
    low, high, mean = map(_scaled, extremes)
    if not low <= mean <= high:
        refuse("the mean latency is not between minimum and maximum")
    tail_unit, lines = tails[0]
    points = _TAIL.findall(lines)
    shares, values = [float(share) for share, _ in points], [int(value) for _, value in points]
    if shares != sorted(shares) or values != sorted(values):
        refuse("percentiles of the latency out of order")
    p99 = dict(zip(shares, values, strict=True)).get(99.0, 0)
    if not p99 or len(points) != lines.count("th="):
        refuse("the percentiles of the latency are not whole")
    return {**found, "latency": mean * _us(unit), "latency_p99": p99 * _us(tail_unit)}


def _span(word: str, unit: float) -> tuple[float, float]:
    """Return between which values a rounded figure lies: fio prints 17.0 for 17.97."""
    value = figure(word)
    half = 0.5 * 10.0 ** -len(word.partition(".")[2])
    return (value - half) * unit, (value + (1.0 if word.endswith(".0") else half)) * unit


def _us(unit: str) -> float:
    """Return the us in a unit of time."""
    return (seconds_of(unit) or 0.0) / 1e-6


def _scaled(word: str) -> float:
    """Return the number that a word such as "7264" or "170k" says."""
    scale = TEN.get(word[-1], 1.0)
    return float(word[:-1] if scale > 1 else word) * scale


def parameters_of_text(text: str, jobs: int) -> dict[str, Scalar]:
    """Return the parameters in the first lines of all jobs: values that differ in their order.

    Raises ParseError if there is no such line.
    """
    heads = _HEAD.findall(text)
    if not heads:
        refuse("no line 'NAME: (g=0): rw=..., bs=..., ioengine=..., iodepth=...'")
    modes, *sizes, engines, depths = zip(*heads, strict=True)
    found: dict[str, Scalar] = {"jobs": jobs, "mode": _all(modes), "engine": _all(engines)}
    found["depth"] = _all(depths)
    blocks = [_all([_bytes_of(size) for size in of_jobs]) for of_jobs in sizes]
    found["block"] = blocks[0] if len({*blocks}) == 1 else ",".join(map(str, blocks))
    return found


def _all(several: Sequence[str]) -> Scalar:
    """Return the value of all jobs, a number where it is one; several values in one text."""
    if len({*several}) > 1:
        return "/".join(several)
    return int(several[0]) if several[0].isdigit() else several[0]


def _bytes_of(word: str) -> str:
    size = _BLOCK.fullmatch(word)
    if not size or size[2] not in _TWO:
        refuse(f"a block size of {word!r}")
    return f"{float(size[1]) * _TWO[size[2]]:.0f}"
