"""fio's text: a block for each job, then the run status of each group."""

from __future__ import annotations

import re
from collections import Counter

from paribus.benchmarks._dates import launch_date
from paribus.benchmarks._tool import figure, line_of, refuse
from paribus.model import Case, Reading, Sample, Scalar

_VERSION = re.compile(r"^fio-(\d+\.\d+\S*) *$", re.M)
_HEAD = re.compile(
    r"^(\S.*): \(g=\d+\): rw=(\w+),"
    r" bs=\(R\) ([\d.]+\w*)-([\d.]+\w*), \(W\) ([\d.]+\w*)-([\d.]+\w*),"
    r" .*ioengine=(\w+), iodepth=(\d+) *$",
    re.M,
)
_JOB = re.compile(r"^(\S.*): \(groupid=\d+, jobs=(\d+)\): err= *(\d+)(.*)$", re.M)
_OP = re.compile(
    r"^  (read|write): IOPS=([\d.]+[kMG]?), BW=([\d.]+)([KMGT]?i?)B/s \(([\d.]+)([kMGT]?)B/s\)"
    r"\(([\d.]+)([KMGT]?i?)B/(\d+)msec\)",
    re.M,
)
_LATENCY = re.compile(
    r"^     lat \((nsec|usec|msec)\): min= *([\d.]+[kM]?), max= *([\d.]+[kM]?), avg= *([\d.]+),"
    r" stdev=",
    re.M,
)
_TAILS = re.compile(r"^    clat percentiles \((nsec|usec|msec)\):\n((?:     \|.*\n)+)", re.M)
_TAIL = re.compile(r"(?<!\d)(\d+\.\d\d)th=\[ *(\d+)\]")
_ISSUED = re.compile(r"^     issued rwts: total=(\d+),(\d+),(\d+),\d+ short=\d", re.M)
_STATUS = re.compile(r"^ +(READ|WRITE): bw=\S+ \(\S+\), .* run=\d+-\d+msec *$", re.M)
_US = {"nsec": 1e-3, "usec": 1.0, "msec": 1e3}
_TEN = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TWO = {"": 1.0, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


def of_text(text: str) -> Reading:
    """Return what fio's text says; several jobs become cases of their own."""
    versions = _VERSION.findall(text)
    if len(versions) != 1:
        refuse(f"expected fio's version once, as 'fio-3.33', got it {len(versions)} times")
    end = text.find("\nRun status group ")
    jobs = list(_JOB.finditer(text, 0, max(end, 0)))
    if end < 0 or not jobs:
        refuse("no job with its run status: fio did not end")
    if len(jobs) != text.count("): err="):
        refuse("a job's first line is not whole", line_of(text, jobs[0].start()))
    samples: list[Sample] = []
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    for job, after in zip(jobs, [*jobs[1:], None], strict=True):
        if job[3] != "0":
            refuse(f"fio says err={job[3]}{job[4][:120]}", line_of(text, job.start()))
        counts[job[1]] += 1
        label = job[1] if counts[job[1]] == 1 else f"{job[1]}.{counts[job[1]]}"
        found = _job(text, job.end(), after.start() if after else end)
        seen |= set(found)
        for op, values in found.items():
            case = Case.of(op=op, job=label) if len(jobs) > 1 else Case.of(op=op)
            samples += [Sample(metric, case, (value,)) for metric, value in values.items()]
    if {match[1].lower() for match in _STATUS.finditer(text, end)} != seen:
        refuse("the run status does not fit what the jobs did", line_of(text, end) + 1)
    jobs_at_once = int(jobs[0][2]) if len(jobs) == 1 else len(jobs)
    ended = re.search(r": pid=\d+: (.*)$", jobs[0][4])
    facts = launch_date(ended[1]) if ended else {}
    parameters = _parameters(text, jobs_at_once)
    return Reading("fio", versions[0], parameters, None, tuple(samples), facts)


def _job(text: str, at: int, end: int) -> dict[str, dict[str, float]]:
    """Return the figures of each direction of a job."""
    ops = list(_OP.finditer(text, at, end))
    issued = list(_ISSUED.finditer(text, at, end))
    line = line_of(text, at)
    if not ops or len(issued) != 1 or len({op[1] for op in ops}) != len(ops):
        refuse("a job without its figures, or with those of another", line)
    if len(ops) != text.count(": IOPS=", at, end):
        refuse("a line with IOPS is not whole", line)
    found = {}
    for op, until in zip(ops, [*(o.start() for o in ops[1:]), end], strict=True):
        done = int(issued[0][1 if op[1] == "read" else 2])
        found[op[1]] = _figures(text, op, until, done, line_of(text, op.start()))
    return found


def _figures(text: str, op: re.Match[str], end: int, done: int, line: int) -> dict[str, float]:
    seconds = figure(op[9], line) / 1000
    rate = figure(op[5], line) * _TEN[op[6]]
    iops = done / seconds
    if not (
        abs(figure(op[3], line) * _TWO[op[4]] / rate - 1) < 0.02
        and abs(figure(op[7], line) * _TWO[op[8]] / seconds / rate - 1) < 0.02
        and abs(_scaled(op[2], line) / max(iops, 0.5) - 1) < 0.02
    ):
        refuse(f"{op[1]}: rate, bandwidth, bytes and {seconds} s do not agree", line)
    latency = list(_LATENCY.finditer(text, op.end(), end))
    tails = list(_TAILS.finditer(text, op.end(), end))
    if len(latency) != 1 or len(tails) != 1:
        refuse(f"{op[1]}: latency or its percentiles are missing", line)
    low, high, mean = (_scaled(latency[0][n], line) for n in (2, 3, 4))
    if not low <= mean <= high:
        refuse(f"{op[1]}: the mean latency is not between minimum and maximum", line)
    points = [(float(key), int(value)) for key, value in _TAIL.findall(tails[0][2])]
    if points != sorted(points) or [v for _, v in points] != sorted(v for _, v in points):
        refuse(f"{op[1]}: percentiles of the latency out of order", line)
    p99 = dict(points).get(99.0, 0)
    if not p99 or len(points) != tails[0][2].count("th="):
        refuse(f"{op[1]}: the percentiles of the latency are not whole", line)
    return {
        "bandwidth": rate / 1e6,
        "iops": iops,
        "latency": mean * _US[latency[0][1]],
        "latency_p99": p99 * _US[tails[0][1]],
    }


def _scaled(word: str, line: int) -> float:
    scale = _TEN.get(word[-1], 1.0)
    value = float(word[:-1] if scale > 1 else word) * scale
    if not value >= 0:
        refuse(f"{word!r} is not a figure", line)
    return value


def _parameters(text: str, jobs: int) -> dict[str, Scalar]:
    """Return what every job's first line says; nothing of what differs between jobs."""
    heads = {match.groups()[1:] for match in _HEAD.finditer(text)}
    found: dict[str, Scalar] = {"jobs": jobs}
    if not heads:
        refuse("no line 'NAME: (g=0): rw=..., bs=..., ioengine=..., iodepth=...'")
    if len(heads) == 1:
        mode, low, high, write_low, write_high, engine, depth = heads.pop()
        found |= {"mode": mode, "engine": engine, "depth": int(depth)}
        if low == high == write_low == write_high:
            size = re.fullmatch(r"([\d.]+)([KMG]?i?)B", low)
            if not size or size[2] not in _TWO:
                refuse(f"a block size of {low!r}")
            found["block"] = round(float(size[1]) * _TWO[size[2]])
    return found
