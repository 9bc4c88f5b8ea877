"""What the eight kernels of the NAS Parallel Benchmarks (MPI, 3.3 and 3.4) have in common.

They print one footer at the end, and exit 0 whatever happened. Mop/s is the number of operations
that the kernel's source counts for the size, divided by the time. So the footer proves itself:
Mop/s times the printed time must be that number. And the time follows from Mop/s with more digits
than the two decimals that are printed, which are 0.00 for the smallest classes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NoReturn

from paribus.benchmarks._parameters import one_of
from paribus.benchmarks._tool import line_at, line_of, once, path_or, refuse, tool
from paribus.model import (
    Benchmark,
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

GET = (
    "https://www.nas.nasa.gov/software/npb.html: make KERNEL CLASS=A NPROCS=2 (3.4: without NPROCS)"
)
VERSIONS = "3.3 and 3.4, MPI"
PROOF = (
    "title and footer once, Verification SUCCESSFUL, total processes equal to compiled or active"
    " ones, Mop/s total times seconds equal to the operations that the kernel counts for its size"
)
MEANS = (
    "operations as the source counts them, so Mop/s of two kernels or classes are not comparable;"
    " one figure per launch, without initialisation; the time follows from Mop/s, for it is printed"
    " with two decimals only; classes S and W last milliseconds and say little"
)

_TITLE = re.compile(r"NAS Parallel Benchmarks (\d+\.\d+(?:\.\d+)?) +-- +(\w\w) Benchmark")
_FIELD = re.compile(
    r"\n (Class|Size|Iterations|Time in seconds|Total processes|Compiled procs|Active processes|"
    r"Mop/s total|Mop/s/process|Verification|Version) *= *(\S(?:[^\n]*\S)?)?[ \t]*(?![^\n])"
)
_NEEDED = {
    *("Class", "Size", "Iterations", "Time in seconds", "Total processes"),
    *("Mop/s total", "Mop/s/process", "Verification", "Version"),
}
_PRINTED = re.compile(r"[0-9]+\.[0-9][0-9]")
_SIZE = re.compile(r"(\d+)x *(\d+)x *(\d+)|(\d+)\.?")
_ALL = Case()
_COMPLAINTS = (
    "VERIFICATION FAILED",
    "erification failed",  # also "Result verification failed"
    "UNSUCCESSFUL",
    "Problem size too big",
    "is not equal to",
    "ERROR: compiled for",
    "SUBDOMAIN SIZE IS TOO LARGE",
)

Operations = Callable[[tuple[int, ...], int, str], float]
"""Millions of operations, from the size (one number or three), the iterations and the output."""


def npb(kernel: str, summary: str, operations: Operations) -> Benchmark:
    """Return the benchmark of one kernel, such as "bt"; `operations` are its source's formula."""
    mops = Metric("mops", "Mop/s", "higher")
    seconds = Metric("time", "s", "lower")
    return tool(
        f"npb_{kernel}",
        layer="compute",
        summary=f"NPB {kernel.upper()}: {summary}",
        metrics=(mops, seconds),
        reader=partial(read, kernel, operations),
        marks=(f" -- {kernel.upper()} Benchmark",),
        command=partial(command, kernel),
        parameters={
            "class": Parameter("A", one_of(*"SWABCDEF"), "size of the problem, S to F"),
            "suffix": Parameter(
                "ranks",
                one_of("ranks", "x"),
                'name of the program: "ranks" bt.A.4 (3.3), "x" bt.A.x (3.4)',
            ),
        },
        program=f"{kernel}.A.2",
        get=GET.replace("KERNEL", kernel),
        versions=VERSIONS,
        proof=PROOF,
        means=MEANS,
        ranks=4 if kernel in ("bt", "sp") else 2,
    )


def command(kernel: str, request: Request) -> Program:
    """Return the program's command line: NPB takes everything from its name."""
    asked = request.parameters
    last = request.ranks if asked.get("suffix") == "ranks" else "x"
    return Program(
        (path_or(request, f"{kernel}.{asked['class']}.{last}"),), env={"OMP_NUM_THREADS": "1"}
    )


def read(kernel: str, operations: Operations, text: str) -> Reading:
    """Return what one NPB kernel printed; raises ParseError with the line."""
    start = once(text, "NAS Parallel Benchmarks", "the title of an NPB kernel")
    title = _TITLE.match(text, start)
    if title is None or title[2].lower() != kernel:
        refuse(
            f"expected NPB {kernel.upper()}, got {line_at(text, start).strip()[:80]!r}",
            line_of(text, start),
        )
    for mark in _COMPLAINTS:
        if (at := text.find(mark, start)) >= 0:
            refuse(f"the program says {_said(text, at)!r}", line_of(text, at))
    fields = _footer(text, start)
    if fields["Verification"] != "SUCCESSFUL":
        _refuse(f"verification: {fields['Verification'][:40]!r}", text, "Verification")
    ranks = _count(fields, "Total processes", text)
    for key in ("Compiled procs", "Active processes"):
        if key in fields and _count(fields, key, text) != ranks:
            _refuse(f"Total processes = {ranks}, but {key} = {fields[key]}", text, key)
    size = _SIZE.fullmatch(fields["Size"])
    if size is None:
        _refuse(f"{fields['Size'][:40]!r} is not a size", text, "Size")
    numbers = tuple(int(n) for n in size.groups() if n)
    iterations = _count(fields, "Iterations", text)
    mops, seconds = _speed(fields, ranks, operations(numbers, iterations, text), text)
    parameters: dict[str, Scalar] = {
        "class": fields["Class"],
        "size": "x".join(map(str, numbers)),
        "iterations": iterations,
    }
    samples = (Sample("mops", _ALL, (mops,)), Sample("time", _ALL, (seconds,)))
    return Reading(f"npb_{kernel}", fields["Version"], parameters, ranks, samples)


def _said(text: str, at: int) -> str:
    """Return the line at `at`; CG's sentence on ranks goes over three."""
    lines = [line_at(text, at)]
    if lines[0].strip() == "is not equal to":
        first, last = text.rfind("\n", 0, at), text.find("\n", at)
        lines = [line_at(text, max(first - 1, 0)), *lines, line_at(text, last + 1)]
    return " ".join(" ".join(lines).split())[:100]


def _footer(text: str, start: int) -> dict[str, str]:
    """Return the fields of the footer; refuses a missing one and one twice."""
    found = _FIELD.findall(text, max(start, once(text, "Benchmark Completed")))
    fields = dict(found)
    if len(fields) != len(found):
        keys = [key for key, _ in found]
        twice = next(key for key in keys if keys.count(key) > 1)
        _refuse(f"{twice!r} is there twice", text, twice)
    if not fields.keys() >= _NEEDED:
        refuse(f"{min(_NEEDED.difference(fields))!r} is missing in the footer")
    return fields


def _refuse(cause: str, text: str, key: str) -> NoReturn:
    """Refuse what the field `key` of the footer says: the last of that name."""
    refuse(cause, line_of(text, text.rfind(f"\n {key}") + 1))


def _count(fields: Mapping[str, str], key: str, text: str) -> int:
    if not (fields[key].isascii() and fields[key].isdigit()):
        _refuse(f"expected a whole number, got {fields[key][:40]!r}", text, key)
    return int(fields[key])


def _speed(
    fields: Mapping[str, str], ranks: int, operations: float, text: str
) -> tuple[float, float]:
    """Return Mop/s and the seconds that follow from it; refuses figures that contradict."""
    total, each = fields["Mop/s total"], fields["Mop/s/process"]
    printed = fields["Time in seconds"]
    if not all(map(_PRINTED.fullmatch, (total, each, printed))):
        what = f"expected figures with two decimals, got {total}, {each}, {printed}"
        _refuse(what, text, "Mop/s total")
    mops = float(total)
    if not 0 < mops < math.inf:
        _refuse(f"expected a figure above zero, got {total[:40]!r}", text, "Mop/s total")
    if abs(float(each) * ranks - mops) > 0.01 * (ranks + 1):
        what = f"Mop/s/process {each} times {ranks} is not Mop/s total {total}"
        _refuse(what, text, "Mop/s/process")
    seconds = operations / mops
    if abs(seconds - float(printed)) > 0.006 * (1 + seconds / mops):
        what = f"{total} Mop/s for {printed} s are not {operations:.6g} million operations"
        _refuse(what, text, "Time in seconds")
    return mops, seconds
