"""The kernels of the NAS Parallel Benchmarks (3.2 to 3.4) as benchmarks: command line, class."""

from __future__ import annotations

import re
from functools import partial
from math import isqrt
from pathlib import Path

from paribus.benchmarks.parameters import one_of, refuse_ranks
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Benchmark, Metric, Parameter, Program, Request, UserError
from paribus.tools.readers.npb import READERS

GET = (
    "https://www.nas.nasa.gov/software/npb.html: make KERNEL CLASS=C gives KERNEL.C.x (3.4),"
    " make KERNEL CLASS=C NPROCS=4 KERNEL.C.4 (3.3)"
)

_SQUARES = ("bt", "sp")
_ANY = ("ep", "lu")
"""LU needs a power of two up to version 3.3, and the others in every version."""

_NAME = re.compile(r"(bt|cg|ep|ft|is|lu|mg|sp)\.([SWABCDEF])\.(\d+|x)(?:\..*)?")


def npb(kernel: str, summary: str) -> Benchmark:
    """Return the benchmark of one kernel, such as "bt"."""
    mops = Metric("mops", "Mop/s", "higher")
    seconds = Metric("time", "s", "lower")
    return tool(
        READERS[kernel],
        layer="compute",
        summary=f"NPB {kernel.upper()}: {summary}",
        metrics=(mops, seconds),
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
        ranks=4 if kernel in _SQUARES else 2,
    )


def command(kernel: str, request: Request) -> Program:
    """Return the program's command line: NPB takes everything from its name."""
    asked = request.parameters
    _check_ranks(kernel, request)
    last = request.ranks if asked.get("suffix") == "ranks" else "x"
    path = path_or(request, f"{kernel}.{asked['class']}.{last}")
    _check_name(path, kernel, request)
    return Program((path,), env={"OMP_NUM_THREADS": "1"})


def _check_ranks(kernel: str, request: Request) -> None:
    """Raise UserError for a number of ranks with which no version of the kernel starts."""
    squares, ranks = kernel in _SQUARES, request.ranks
    if isqrt(ranks) ** 2 == ranks if squares else ranks.bit_count() == 1 or kernel in _ANY:
        return
    refuse_ranks(
        request, f"npb_{kernel}", f"to one of {'1, 4, 9, 16' if squares else '1, 2, 4, 8'} ..."
    )


def _check_name(path: str, kernel: str, request: Request) -> None:
    """Raise UserError where the name of a program, such as is.A.2, is not that of the request."""
    name = Path(path).name
    if not (match := _NAME.fullmatch(name)):
        return
    program, size, ranks = match.groups()
    for key, has, asked in (
        ("name", f'"npb_{program}"', f'"npb_{kernel}"'),
        ("class", f'"{size}"', f'"{request.parameters["class"]}"'),
        ("ranks", ranks, str(request.ranks)),
    ):
        if has not in (asked, "x"):
            raise UserError(
                f"the program is called {name}, which does not fit {key} = {asked}",
                place=f'path = "{path}"',
                fix=f"set {key} = {has}, or give the path of another program",
            )


BENCHMARKS = (
    npb("bt", "block-tridiagonal solver, pseudo-application; a square number of ranks"),
    npb("cg", "conjugate gradient: irregular memory access and messages"),
    npb("ep", "random numbers: floating point without messages"),
    npb("ft", "three-dimensional Fourier transform: all-to-all messages"),
    npb("is", "sort of integer keys: random memory access and all-to-all messages"),
    npb("lu", "lower-upper Gauss-Seidel solver, pseudo-application"),
    npb("mg", "multigrid on a sequence of meshes: memory and long- and short-distance messages"),
    npb("sp", "scalar-pentadiagonal solver, pseudo-application; a square number of ranks"),
)
