"""What HPL and the HPL inside HPCC have in common: input file, grid, threads of the BLAS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paribus.benchmarks.parameters import positive, several, wanted_threads
from paribus.benchmarks.tool import path_or, with_stderr
from paribus.core import Program, Request, UserError

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def counts(value: Any) -> list[int]:
    """Return one whole number of at least 1, or several, as a list."""
    return several(value, "use whole numbers of at least 1, each once")


def grid(value: Any) -> list[int]:
    """Return the rows or columns of one process grid, or of several: numbers may repeat."""
    return [positive(item) for item in (value if isinstance(value, list | tuple) else [value])]


def check_grid(request: Request, name: str, p: Sequence[int], q: Sequence[int]) -> None:
    """Raise UserError where a process grid has not as many places as there are ranks."""
    if len(p) != len(q):
        raise UserError(
            f"{len(p)} values of p and {len(q)} of q", place=name, fix="give as many of both"
        )
    for rows, columns in zip(p, q, strict=True):
        if rows * columns != request.ranks:
            places = rows * columns
            raise UserError(
                f"p = {rows} by q = {columns} has {places} places for {request.ranks} ranks",
                place=name,
                fix="set p, q and ranks so that p times q is ranks",
            )


def program(request: Request, name: str, **files: Any) -> Program:
    """Return the program `name`, whose stderr comes before its output.

    There OpenBLAS says which of its kernels it chose. Each BLAS has a variable of its own for its
    threads, and takes that of OpenMP only without it. `files` and `outputs` are those of Program.
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
