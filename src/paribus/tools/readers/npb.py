"""What the eight kernels of the NAS Parallel Benchmarks (3.2 to 3.4) print.

They print a footer (" Mop/s total     =                  1234.56") and exit 0 whatever happened.
Mop/s is the number of operations that the kernel's source counts for the size, over the time. So
the footer proves itself: Mop/s times the printed time must be that number. And the time follows
from Mop/s with more digits than the two decimals that are printed, 0.00 for the smallest classes.
"""

from __future__ import annotations

import math
import re
from functools import partial

from paribus.core import Reading, Scalar
from paribus.readers.figures import Fields
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import line_at, line_of, once, refuse

_VERSIONS = "3.2 to 3.4, MPI; of OpenMP and serial ones the output is read"
_PROOF = (
    "title and footer once, Verification SUCCESSFUL, total processes equal to compiled or active"
    " ones, Mop/s total times seconds equal to the operations that the kernel counts for its size,"
    " Mop/s of a process or thread times their number equal to the total"
)
_MEANS = (
    "operations as the source counts them, so Mop/s of two kernels or classes are not comparable;"
    " one figure per launch, without initialisation; the time follows from Mop/s, printed"
    " with two decimals only; classes S and W last milliseconds and say little"
)

_TITLE = re.compile(
    r"NAS Parallel Benchmarks (?:\d+\.\d+(?:\.\d+)? +--"
    r"|\(NPB\d+\.\d+(?:\.\d+)?-((?:OMP|SER)(?:-C)?)\) -) +(\w\w) Benchmark"
)
_BEGIN = "NAS Parallel Benchmarks"
_OTHER = re.compile(rf"{_BEGIN}[^\n]* --? (?:UA|DC|DT|(?:BT|LU|SP)-MZ)\b[^\n]* Benchmark")
_FIELD = re.compile(
    r"\n (Class|Size|Iterations|Time in seconds|Total processes|Compiled procs|Active processes|"
    r"Total threads|Avail threads|Mop/s total|Mop/s/process|Mop/s/thread|Verification|Version)"
    r" *= *(\S(?:[^\n]*\S)?)?[ \t]*(?![^\n])"
)
_NEEDED = {
    *("Class", "Size", "Iterations", "Time in seconds", "Mop/s total", "Verification", "Version")
}
# By the first three letters of what the title says of the parallelism; "" is MPI.
_WORKERS = {
    "": ("Total processes", "Mop/s/process"),
    "OMP": ("Total threads", "Mop/s/thread"),
    "SER": (),
}
_PRINTED = re.compile(r"[0-9]+\.[0-9][0-9]")
_SIZE = re.compile(r"(\d+)x *(\d+)x *(\d+)|(\d+)\.?")
_COMPLAINTS = (
    "VERIFICATION FAILED",
    "erification failed",  # also "Result verification failed"
    "UNSUCCESSFUL",
    "Problem size too big",
    "is not equal to",
    "ERROR: compiled for",
    "SUBDOMAIN SIZE IS TOO LARGE",
)


def read(kernel: str, text: str) -> Reading:
    """Return the reading of one NPB kernel's output; raises ParseError with the line."""
    start, text = _own_part(text, kernel)
    title = _TITLE.match(text, start)
    if title is None or title[2].lower() != kernel:
        refuse(
            f"expected NPB {kernel.upper()}, got {line_at(text, start).strip()[:80]!r}",
            line_of(text, start),
        )
    for mark in _COMPLAINTS:
        if (at := text.find(mark, start)) >= 0:
            refuse(f"the program says {_complaint(text, at)!r}", line_of(text, at))
    kind = title[1] or ""
    footer = _footer(text, start, _WORKERS[kind[:3]])
    fields = footer.words
    if fields["Verification"] != "SUCCESSFUL":
        footer.refuse(f"verification: {fields['Verification'][:40]!r}", "Verification")
    workers = _workers(footer, _WORKERS[kind[:3]])
    size = _SIZE.fullmatch(fields["Size"])
    if size is None:
        footer.refuse(f"{fields['Size'][:40]!r} is not a size", "Size")
    numbers = tuple(int(n) for n in size.groups() if n)
    iterations = footer.count("Iterations")
    mops, seconds = _speed(footer, _operations(kernel, numbers, iterations, text))
    parameters: dict[str, Scalar] = {
        "class": fields["Class"],
        "size": "x".join(map(str, numbers)),
        "iterations": iterations,
    }
    if kind:
        parameters["parallel"] = kind
    if kind.startswith("OMP"):
        parameters["threads"] = workers
    ranks, samples = 1 if kind else workers, single(mops=mops, time=seconds)
    return Reading(f"npb_{kernel}", fields["Version"], parameters, ranks, samples)


def _own_part(text: str, kernel: str) -> tuple[int, str]:
    """Return where the title of a kernel stands, and the text without that of kernels not read.

    Scripts run all kernels into one log; the lines of others become empty. Raises ParseError unless
    there is one title of a kernel that is read.
    """
    places = [found.start() for found in re.finditer(_BEGIN, text)]
    known = [at for at in places if not _OTHER.match(text, at)]
    if not (len(known) == 1 < len(places)):
        return once(text, _BEGIN, "the title of an NPB kernel"), text
    end = next((at for at in places if at > known[0]), len(text))
    lines = text.count("\n", 0, known[0])
    return lines, "\n" * lines + text[known[0] : end]


def _complaint(text: str, at: int) -> str:
    """Return the line at `at`; of CG's sentence on ranks, all its three lines."""
    lines = [line_at(text, at)]
    if lines[0].strip() == "is not equal to":
        first, last = text.rfind("\n", 0, at), text.find("\n", at)
        lines = [line_at(text, max(first - 1, 0)), *lines, line_at(text, last + 1)]
    return " ".join(" ".join(lines).split())[:100]


def _workers(footer: Fields, keys: tuple[str, ...]) -> int:
    """Return the number of processes or threads, 1 if serial; refuses figures that differ."""
    if not keys:
        return 1
    (total, each), fields = keys, footer.words
    workers = footer.count(total)
    for key in ("Compiled procs", "Active processes", "Avail threads"):
        if key in fields and footer.count(key) != workers:
            footer.refuse(f"{total} = {workers}, but {key} = {fields[key]}", key)
    share, mops = _printed(footer, each), _printed(footer, "Mop/s total")
    if abs(share * workers - mops) > 0.01 * (workers + 1):
        reported = (
            f"{each} {fields[each]} times {workers} is not Mop/s total {fields['Mop/s total']}"
        )
        footer.refuse(reported, each)
    return workers


def _printed(footer: Fields, key: str) -> float:
    """Return a figure of the footer that has two decimals."""
    if not _PRINTED.fullmatch(word := footer.word(key)):
        footer.refuse(f"expected a figure with two decimals, got {word[:40]!r}", key)
    return float(word)


def _footer(text: str, start: int, workers: tuple[str, ...]) -> Fields:
    """Return the fields of the footer; refuses a missing one and one twice."""
    begin = max(start, once(text, "Benchmark Completed"))
    # It ends with a blank line; scripts print what they grep of an output behind it.
    end = text.find("\n\n", begin)
    found = _FIELD.findall(text, begin, end if end >= 0 else len(text))
    fields = dict(found)
    footer = Fields(text, fields, "\n {}")
    if len(fields) != len(found):
        keys = [key for key, _ in found]
        twice = next(key for key in keys if keys.count(key) > 1)
        footer.refuse(f"{twice!r} is there twice", twice)
    if missing := _NEEDED.union(workers).difference(fields):
        refuse(f"{min(missing)!r} is missing in the footer")
    return footer


def _speed(footer: Fields, operations: float) -> tuple[float, float]:
    """Return Mop/s and the seconds that follow from it; refuses figures that contradict."""
    mops, printed = (_printed(footer, key) for key in ("Mop/s total", "Time in seconds"))
    total = footer.word("Mop/s total")
    if not 0 < mops < math.inf:
        footer.refuse(f"expected a figure above zero, got {total[:40]!r}", "Mop/s total")
    seconds = operations / mops
    if abs(seconds - printed) > 0.006 * (1 + seconds / mops):
        what = f"{total} Mop/s for {printed:.2f} s are not {operations:.6g} million operations"
        footer.refuse(what, "Time in seconds")
    return mops, seconds


# By the size, for classes S to F (setparams.c): OpenMP and serial CG do not print them.
_NONZEROES = {
    1400: 7,
    7000: 8,
    14000: 11,
    75000: 13,
    150000: 15,
    1500000: 21,
    9000000: 26,
    54000000: 31,
}


_SOLVERS = {
    "bt": (3478.8, -17655.7, 28023.7, 0.0),
    "lu": (1984.77, -10923.3, 27770.9, -144010.0),
    "sp": (881.174, -4683.91, 11484.5, -19272.4),
}
"""Operations of an iteration: for a point, and times the mean edge squared, the edge, and once."""

KERNELS = ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp")


def _operations(kernel: str, size: tuple[int, ...], iterations: int, text: str) -> float:
    """Return millions of operations, as each kernel counts them: at the end of bt.f, cg.f ... is.c.

    EP counts random numbers, IS keys that it ranks. `size` is one number or three.
    """
    points = math.prod(size)
    if kernel in _SOLVERS:
        edge = sum(size) / 3
        of_point, squared, linear, once_each = _SOLVERS[kernel]
        each = of_point * points + squared * edge**2 + linear * edge + once_each
    elif kernel == "cg":
        row = re.search(r"Number of nonzeroes per row: +(\d+)\s", text)
        nonzeroes = int(row[1]) if row else _NONZEROES.get(points, 0)
        if not nonzeroes:
            refuse("the number of nonzeroes per row is missing")
        filled = nonzeroes * (nonzeroes + 1)
        return 2e-6 * iterations * points * (3 + filled + 25 * (5 + filled) + 3)
    elif kernel == "ft":
        log = math.log(points)
        first = 14.8157 + 7.19641 * log
        return 1e-6 * points * (first + (5.23518 + 7.21113 * log) * iterations)
    elif kernel == "ep":
        return 1e-6 * points
    else:
        each = points * (58 if kernel == "mg" else 1)
    return 1e-6 * iterations * each


READERS = {
    kernel: Reader(
        f"npb_{kernel}",
        partial(read, kernel),
        marks=(f" -- {kernel.upper()} Benchmark", f") - {kernel.upper()} Benchmark"),
        heads=(
            Head(
                "NAS Parallel Benchmarks",
                rf"NAS Parallel Benchmarks [^\n]*-+ {kernel.upper()} Benchmark",
                indent=1,
            ),
        ),
        versions=_VERSIONS,
        proof=_PROOF,
        means=_MEANS,
    )
    for kernel in KERNELS
}
