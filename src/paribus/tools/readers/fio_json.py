"""fio's JSON: one document, a job in it for each that was reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import Reading, Scalar
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse
from paribus.tools.readers.fio_text import Figures, samples_of

_BUSY = 97.0
_UNUSED = "0.00"
"""The key that some versions write, with 0, for each unused place of the list of percentiles."""

_SUFFIX = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def of_json(text: str) -> Reading:
    """Return the reading of fio's JSON; each of several jobs is a case of its own."""
    tree = document(text, '"fio version"')
    version = str(inner(tree, "fio version")).removeprefix("fio-")
    jobs = inner(tree, "jobs")
    if not isinstance(jobs, list) or not jobs:
        refuse("fio reports no job")
    guards: list[str] = []
    asked: list[Mapping[str, Scalar]] = []
    figures: list[tuple[str, Figures]] = []
    for job in jobs:
        options = {**tree.get("global options", {}), **inner(job, "job options")}
        asked.append(parameters_of(options))
        figures.append((str(inner(job, "jobname")), job_of_json(job, options)))
        busy = amount(job, "usr_cpu", zero=True) + amount(job, "sys_cpu", zero=True)
        if busy > _BUSY:
            guards.append(f"fio used {busy:.0f} % of a core: the core limits, not the storage")
    samples = samples_of(figures)
    return Reading("fio", version, shared(asked), None, samples, guards=tuple(guards))


def shared(jobs: Sequence[Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """Return the parameters in which all jobs agree; each job has the same keys."""
    return {key: value for key, value in jobs[0].items() if all(job[key] == value for job in jobs)}


def job_of_json(job: dict[str, Any], options: dict[str, Any]) -> Figures:
    """Return the figures of a job.

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
    """Return the figures of one direction of a job, and its "operations"."""
    if "bw_bytes" not in inner(job, op):
        refuse(f"{op}.bw_bytes is missing: fio older than 3.1 wrote it; repeat it with a newer one")
    keys = ("runtime", "io_bytes", "bw_bytes", "total_ios", "iops")
    milliseconds, moved, rate, done, iops = _amounts(job, (op,), keys)
    seconds = milliseconds / 1000
    slack = 0.001 + 0.001 / seconds
    if abs(moved / seconds / rate - 1) > slack or abs(done / seconds / iops - 1) > slack:
        refuse(f"{op}: bandwidth or rate do not fit bytes, operations and {seconds} s")
    found = {"bandwidth": rate / 1e6, "iops": iops, "operations": done}
    if not any(_was_measured(job, op, kind) for kind in ("slat_ns", "clat_ns", "lat_ns")):
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


def _was_measured(job: dict[str, Any], op: str, kind: str) -> bool:
    """Return whether a latency was measured: not all of its figures are zero."""
    found = inner(job, op, kind)
    return not isinstance(found, dict) or "mean" not in found or any(found.values())


def _amounts(
    job: dict[str, Any], path: Sequence[str], keys: Sequence[str], *, zero: bool = False
) -> list[float]:
    """Return the numbers of these names that `path` leads to, each as `amount` checks it."""
    return [amount(job, *path, key, zero=zero) for key in keys]


def parameters_of(options: dict[str, Any]) -> dict[str, Scalar]:
    """Return the parameters that the options of a job show; raises ParseError."""
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
    """Return the number that an option such as "4k" says, in powers of two."""
    word = str(value).lower()
    scale = _SUFFIX.get(word[-1:], 1)
    digits = word[:-1] if scale > 1 else word
    if not digits.isdigit():
        refuse(f"fio echoes {word[:40]!r}, which is not a number")
    return int(digits) * scale
