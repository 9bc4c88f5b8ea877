"""fio's JSON: one document, a job in it for each that was reported."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from paribus.core import Reading, Sample, Scalar
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse
from paribus.tools.readers.fio_text import of_op

_BUSY = 97.0
_NUMBERS = {int, float}
_UNUSED = "0.00"
"""What some versions write, with 0, for each place of the list of percentiles that is not used."""

_SUFFIX = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def of_json(text: str) -> Reading:
    """Return what fio's JSON says; several jobs become cases of their own."""
    said = document(text, '"fio version"')
    version = str(inner(said, "fio version")).removeprefix("fio-")
    jobs = inner(said, "jobs")
    if not isinstance(jobs, list) or not jobs:
        refuse("fio reports no job")
    counts: Counter[str] = Counter()
    samples: list[Sample] = []
    guards: list[str] = []
    every: dict[str, set[Scalar]] = {}
    for job in jobs:
        name = str(inner(job, "jobname"))
        options = {**said.get("global options", {}), **inner(job, "job options")}
        for key, value in parameters_of(options).items():
            every.setdefault(key, set()).add(value)
        counts[name] += 1
        label = name if counts[name] == 1 else f"{name}.{counts[name]}"
        for op, values in job_of_json(job, options).items():
            case = of_op(op, label if len(jobs) > 1 else "")
            samples += [
                Sample(metric, case, (value,))
                for metric, value in values.items()
                if metric != "operations"
            ]
        busy = amount(job, "usr_cpu", zero=True) + amount(job, "sys_cpu", zero=True)
        if busy > _BUSY:
            guards.append(f"fio used {busy:.0f} % of a core: the core limits, not the storage")
    parameters = {key: found.pop() for key, found in every.items() if len(found) == 1}
    return Reading("fio", version, parameters, None, tuple(samples), guards=tuple(guards))


def job_of_json(job: dict[str, Any], options: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the figures of each direction of a job, and how many operations it did.

    Raises ParseError for an error of the job, and for directions that its options do not ask for.
    """
    name = str(inner(job, "jobname"))
    if inner(job, "error") != 0:
        refuse(f"fio says error {inner(job, 'error')} in job {name!r}")
    mode = str(options.get("rw", "read")).removeprefix("rand")
    ops = ("read", "write") if mode in ("rw", "readwrite") else (mode,)
    for op in ("read", "write"):
        if (amount(job, op, "io_bytes", zero=True) > 0) != (op in ops):
            refuse(f"{op} of job {name!r} does not fit rw={options.get('rw', 'read')}")
    return {op: _figures(job, op) for op in ops}


def _figures(job: dict[str, Any], op: str) -> dict[str, float]:
    """Return the figures of one direction of a job."""
    if "bw_bytes" not in inner(job, op):
        refuse(f"{op}.bw_bytes is missing: fio older than 3.1 wrote it; repeat it with a newer one")
    keys = ("runtime", "io_bytes", "bw_bytes", "total_ios", "iops")
    milliseconds, moved, rate, done, iops = _amounts(job, (op,), keys)
    seconds = milliseconds / 1000
    slack = 0.001 + 0.001 / seconds
    if abs(moved / seconds / rate - 1) > slack or abs(done / seconds / iops - 1) > slack:
        refuse(f"{op}: bandwidth or rate do not fit bytes, operations and {seconds} s")
    found = {"bandwidth": rate / 1e6, "iops": iops, "operations": done}
    if not any(_said(job, op, kind) for kind in ("slat_ns", "clat_ns", "lat_ns")):
        # --gtod_reduce: no clock was read for any of them
        return found
    low, mean, high = _amounts(job, (op, "lat_ns"), ("min", "mean", "max"))
    if not low <= mean <= high:
        refuse(f"{op}: the mean latency is not between minimum and maximum")
    if "percentile" not in inner(job, op, "clat_ns"):
        refuse(f"{op}: the percentiles of completion are missing (--clat_percentiles=1)")
    tails = inner(job, op, "clat_ns", "percentile")
    asked = tuple(key for key in tails if key != _UNUSED)
    values = _amounts(job, (op, "clat_ns", "percentile"), asked, zero=True)
    if values != sorted(values) or values[-1] > high * 1.05:
        refuse(f"{op}: a percentile of the latency is below a lower one or above the maximum")
    return found | {"latency": mean / 1e3, "latency_p99": amount(tails, "99.000000") / 1e3}


def _said(job: dict[str, Any], op: str, kind: str) -> bool:
    """Return whether a latency was measured: it is there, and not nothing but zeros."""
    found = inner(job, op, kind)
    return not isinstance(found, dict) or "mean" not in found or any(found.values())


def _amounts(
    job: dict[str, Any], path: Sequence[str], keys: Sequence[str], *, zero: bool = False
) -> list[float]:
    """Return the numbers of these names that `path` leads to, each as `amount` checks it."""
    found = inner(job, *path)
    try:
        values = [found[key] for key in keys]
    except (KeyError, TypeError):
        values = []
    if values and _NUMBERS.issuperset(map(type, values)):
        least, most = min(values), max(values)
        if least >= 0 and most < math.inf and (least > 0 or zero):
            return [float(value) for value in values]
    return [amount(job, *path, key, zero=zero) for key in keys]  # refuses the first that is wrong


def parameters_of(options: dict[str, Any]) -> dict[str, Scalar]:
    """Return what the options of a job say of how was measured; raises ParseError."""
    found: dict[str, Scalar] = {
        "mode": str(options.get("rw", "read")).replace("readwrite", "rw"),
        "engine": str(options.get("ioengine", "psync")),
        "depth": _number(options.get("iodepth", "1")),
        "jobs": _number(options.get("numjobs", "1")),
        "direct": str(options.get("direct", "0")) == "1",
    }
    block = str(options.get("bs", options.get("blocksize", "4k")))
    found["block"] = _number(block) if block.rstrip("kKmMgG").isdigit() else block
    return found


def _number(value: object) -> int:
    word = str(value).lower()
    scale = _SUFFIX.get(word[-1:], 1)
    digits = word[:-1] if scale > 1 else word
    if not digits.isdigit():
        refuse(f"fio echoes {word[:40]!r}, which is not a number")
    return int(digits) * scale
