"""What HPL (2.0 to 2.3) and the HPL inside HPCC have in common: input file, rows, residuals.

A row gives N and a time with two decimals beside the Gflop/s; the operations are known
(HPL_pdtest.c: 2/3 N^3 + 3/2 N^2), so that one can be checked against the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice, product
from typing import Any, NamedTuple

from paribus.benchmarks._parameters import positive, wanted_threads
from paribus.benchmarks._shell import with_stderr
from paribus.benchmarks._tool import line_of, path_or, refuse
from paribus.errors import UserError
from paribus.model import Program, Request

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_CORE = re.compile(r"\nCore: (\w+)[ \t]*(?![^\n])")
_SETTING = re.compile(r"^([A-Z][A-Z0-9]*) +: ([\t -~]*(?:\n(?: {6}[\t -~]*|[ \t]*))*)$", re.M)
"""A setting with its values: more of them are on lines that are indented."""

_LINE = re.compile(
    r"\n(?:W([RC]\w+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+\.\d\d) +(\d\.\d+e[+-]\d\d)"
    r"(?: +\( *(\d\.\d+e[+-]\d\d)\))?"
    r"|\|\|Ax-b\|\|_oo/\(eps\*[^=\n]*= +([0-9.]+(?:e[+-]\d\d)?) \.{6} (PASSED|FAILED))"
    r"[ \t]*(?![^\n])"
)
_TOTALS = re.compile(
    r"\nFinished +(\d+) tests with the following results:\n"
    r" +(\d+) tests completed and passed residual checks,\n"
    r" +(\d+) tests completed and failed residual checks,\n"
    r" +(\d+) tests skipped because of illegal input values\.(?![^\n])"
)
_LIMIT = re.compile(r"\n- Computational tests pass if scaled residuals are less than +(\d+\.\d+)\n")
_Line = tuple[str, str, str, str, str, str, str, str, str, str]
"""What _LINE holds of a row, whose last two words are "", or of a residual, whose first are.

Between them is the share of each GPU, which NVIDIA's binary prints after the speed since 2023.
"""

_LISTS = ("PFACT", "NBMIN", "NDIV", "RFACT", "BCAST", "DEPTH")


class Row(NamedTuple):
    """One solved system: its encoded variant, its parameters, and its Gflop/s."""

    variant: str
    n: int
    nb: int
    p: int
    q: int
    gflops: float


def counts(value: Any) -> list[int]:
    """Return one whole number of at least 1, or several, as a list."""
    found = [positive(item) for item in (value if isinstance(value, list | tuple) else [value])]
    if not found or len(set(found)) != len(found):
        raise ValueError("use whole numbers of at least 1, each once")
    return found


def grid(value: Any) -> list[int]:
    """Return the rows or columns of one process grid, or of several: numbers may repeat."""
    return [positive(item) for item in (value if isinstance(value, list | tuple) else [value])]


def check_grid(request: Request, name: str, p: Sequence[int], q: Sequence[int]) -> None:
    """Raise UserError where a process grid has not as many places as there are ranks."""
    if len(p) != len(q):
        raise UserError(
            f"{len(p)} values of p and {len(q)} of q", place=name, mend="give as many of both"
        )
    for rows, columns in zip(p, q, strict=True):
        if rows * columns != request.ranks:
            places = rows * columns
            raise UserError(
                f"p = {rows} by q = {columns} has {places} places for {request.ranks} ranks",
                place=name,
                mend="set p, q and ranks so that p times q is ranks",
            )


def program(request: Request, name: str, **files: Any) -> Program:
    """Return `name` started so that its stderr, where OpenBLAS speaks, comes before its output.

    OpenBLAS says there which of its kernels it chose. Each BLAS has a variable of its own for its
    threads, and takes that of OpenMP only without it.
    """
    path, asked = path_or(request, name), request.parameters
    env = {**dict.fromkeys(_BLAS, str(asked["threads"])), "OPENBLAS_VERBOSE": "2"}
    # OpenMP would keep the first thread on one core, and a BLAS with threads of its own with it.
    env["OMP_PROC_BIND"] = "false"
    wanted = wanted_threads(asked)
    return Program(with_stderr(path), env=env, needs=(path,), threads=wanted, **files)


def input_file(n: list[int], nb: list[int], p: list[int], q: list[int], *, device: int) -> str:
    """Return HPL.dat; `device` 6 is stdout, 8 the file that its third line names.

    All but N, NB, P and Q is as HPL ships it, but the process mapping, which is by rows.
    """

    def several(values: list[int], what: str) -> str:
        return f"{len(values)} # of {what}\n{' '.join(map(str, values))} {what}\n"

    return (
        "HPLinpack benchmark input file\nwritten by Paribus\n"
        f"HPL.out output file name (if any)\n{device} device out (6=stdout,7=stderr,file)\n"
        f"{several(n, 'Ns')}{several(nb, 'NBs')}"
        f"0 PMAP process mapping (0=Row-,1=Column-major)\n{len(p)} # of process grids (P x Q)\n"
        f"{' '.join(map(str, p))} Ps\n{' '.join(map(str, q))} Qs\n16.0 threshold\n"
        "1 # of panel fact\n2 PFACTs\n1 # of recursive stopping criterium\n4 NBMINs\n"
        "1 # of panels in recursion\n2 NDIVs\n1 # of recursive panel fact.\n1 RFACTs\n"
        "1 # of broadcast\n1 BCASTs\n1 # of lookahead depth\n1 DEPTHs\n"
        "2 SWAP\n64 swapping threshold\n0 L1 transposed\n0 U transposed\n1 Equilibration\n"
        "8 memory alignment in double\n"
    )


def cores(text: str) -> dict[str, str]:
    """Return the kernels that OpenBLAS chose, as a fact; nothing where it did not say."""
    found = sorted(set(_CORE.findall("\n" + text))) if "Core: " in text else []
    return {"lib.blas.core": "/".join(found)} if found else {}


def settings(text: str, start: int) -> dict[str, list[str]]:
    """Return the values that HPL says it will use, by name, each as a list of words."""
    begin = text.find("The following parameter values will be used:", start)
    if begin < 0:
        refuse("HPL does not say which settings it uses")
    block = text[text.find("\n", begin) : text.find("\n---", begin)]
    parts = _SETTING.split(block)
    between, names, values = parts[::3], parts[1::3], parts[2::3]
    if other := "".join(between).strip():
        refuse(
            f"expected a setting of HPL, got {other.splitlines()[0][:60]!r}", line_of(text, begin)
        )
    found = dict(zip(names, map(str.split, values), strict=True))
    if len(found) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        refuse(f"the setting {twice} is there twice", line_of(text, begin))
    if missing := [key for key in ("N", "NB", "P", "Q", *_LISTS) if not found.get(key)]:
        refuse(f"the setting {missing[0]} of HPL is missing", line_of(text, begin))
    return found


def rows(text: str, start: int, said: dict[str, list[str]]) -> list[Row]:
    """Return the solved systems after `start`, as many as the settings `said` ask for.

    Raises ParseError where one is missing or its residual is not below the limit.
    """
    limit = _LIMIT.search(text, start)
    if limit is None:
        refuse("the limit of the residuals is missing", line_of(text, start))
    lines = _LINE.findall(text, start)
    for number, line in enumerate(lines):
        # A row, its residual, the next row.
        if wrong := _wrong_residual(line, limit[1]) if number % 2 else _wrong_row(line):
            at = next(islice(_LINE.finditer(text, start), number, None)).start() + 1
            refuse(wrong, line_of(text, at))
    _check_count(text, start, lines, said)
    return [
        Row(variant, int(n), int(nb), int(p), int(q), float(gflops))
        for variant, n, nb, p, q, _, gflops, _, _, _ in lines[::2]
    ]


def _wrong_row(line: _Line) -> str:
    """Return what is wrong with what should be a row, "" if nothing."""
    _, n, _, p, q, seconds, speed, share, residual, _ = line
    if residual:
        return "a residual without the row that it belongs to"
    gflops = float(speed)
    if not (gflops > 0 and int(n)):
        return f"{speed} Gflop/s is not a figure"
    right = operations(int(n)) * 1e-9 / gflops
    if abs(right - float(seconds)) > 0.006 + 1e-3 * right:
        return f"{speed} Gflop/s for {seconds} s are not the work of N = {n}"
    if share and abs(float(share) * int(p) * int(q) - gflops) > 1e-3 * gflops:
        return f"{speed} Gflop/s are not {share} of each of {p} times {q} GPUs"
    return ""


def _wrong_residual(line: _Line, limit: str) -> str:
    """Return what is wrong with what should be the residual of a row, "" if nothing."""
    residual, word = line[8:]
    if not residual:
        return "the row before has no residual check"
    if word == "FAILED" or not float(residual) < float(limit):
        return f"residual check failed: {residual} is not below {limit}"
    return ""


def _check_count(text: str, start: int, lines: list[_Line], said: dict[str, list[str]]) -> None:
    totals = _TOTALS.findall(text, start)
    if len(totals) != 1:
        refuse("the counts of passed and failed tests are missing")
    finished, passed, failed, skipped = map(int, totals[0])
    if failed or skipped or finished != passed:
        refuse(f"of {finished} tests {failed} failed and {skipped} were skipped")
    solved = lines[::2]
    if not (2 * len(solved) == len(lines) == 2 * passed > 0):
        had = f"{len(solved)} rows and {len(lines) // 2} residuals"
        refuse(f"{passed} tests passed, but there are {had}")
    grids = zip(said["P"], said["Q"], strict=False)
    asked = {(n, nb, *grid) for n, nb, grid in product(said["N"], said["NB"], grids)}
    if asked != {line[1:5] for line in solved}:
        refuse("the rows are not those of the settings N, NB, P and Q")
    if len(solved) != len(asked) * math.prod(len(said[key]) for key in _LISTS):
        refuse("there are fewer rows than the settings ask for")


def operations(n: int) -> float:
    """Return the floating-point operations that HPL counts (HPL_pdtest.c)."""
    return n * n * (2 / 3 * n + 3 / 2)
