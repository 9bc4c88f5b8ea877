"""High-Performance Linpack, where the site has it built; every N, NB, P and Q is a case."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import product

from paribus.benchmarks import _linpack
from paribus.benchmarks._complaints import begin
from paribus.benchmarks._parameters import threads
from paribus.benchmarks._tool import HEAD, line_of, once, refuse, tool
from paribus.model import (
    Case,
    Metric,
    Parameter,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)

_TITLE = "HPLinpack 2."
_VERSION = re.compile(r"HPLinpack (2\.\d)\s")
_COMPLAINTS = (">>> Need at least", ">>> Illegal input", "HPL ERROR")
_ONE = ("PMAP", "SWAP", "L1", "U", "EQUIL", "ALIGN")


def command(request: Request) -> Program:
    """Return xhpl with an HPL.dat made of the parameters; it prints to stdout."""
    asked = request.parameters
    _linpack.check_grid(request, "hpl", asked["p"], asked["q"])
    text = _linpack.input_file(asked["n"], asked["nb"], asked["p"], asked["q"], device=6)
    return _linpack.program(request, "xhpl", files={"HPL.dat": text})


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return a case per N, NB and process grid."""
    asked = request.parameters
    grids = zip(asked["p"], asked["q"], strict=True)
    every = product(asked["n"], asked["nb"], grids)
    return [("gflops", _case(n, nb, p, q, "")) for n, nb, (p, q) in every]


@lru_cache(maxsize=256)
def _case(n: int, nb: int, p: int, q: int, variant: str) -> Case:
    point = Case.of(n=n, nb=nb, p=p, q=q)
    return Case.of(**dict(point.items), variant=variant) if variant else point


def read(text: str) -> Reading:
    """Return what HPL printed, on stdout or into HPL.out; raises ParseError with the line."""
    start = begin(text, _TITLE, "the title of HPL", "HPL", _COMPLAINTS)
    version = _VERSION.match(text, start)
    if version is None:
        refuse("the version of HPL is missing", line_of(text, start))
    end = once(text, "End of Tests.")
    said = _linpack.settings(text, start)
    # Scripts print what they grep of an output behind it.
    found = _linpack.rows(text[:end], start, said)
    variants = {row.variant for row in found}
    ranks = {row.p * row.q for row in found}
    samples = tuple(
        Sample(
            "gflops",
            _case(r.n, r.nb, r.p, r.q, r.variant if len(variants) > 1 else ""),
            (r.gflops,),
        )
        for r in found
    )
    parameters: dict[str, Scalar] = {
        key.lower(): " ".join(said[key]) for key in _ONE if key in said
    }
    if len(variants) == 1:
        parameters["variant"] = variants.pop()
    return Reading(
        "hpl",
        version[1],
        parameters,
        ranks.pop() if len(ranks) == 1 else None,
        samples,
        _linpack.cores(text),
    )


def _recognise(text: str) -> bool:
    """HPCC carries the whole output of HPL inside its own, and is not HPL."""
    first, *challenges = text[:HEAD].split("HPC Challenge Benchmark")
    after = (one.partition("End of HPC Challenge tests")[2] for one in challenges)
    return _TITLE in first or any(_TITLE in rest for rest in after)


BENCHMARK = replace(
    tool(
        "hpl",
        layer="compute",
        summary="HPL: a dense linear system solved by LU factorisation, all ranks",
        metrics=(Metric("gflops", "Gflop/s", "higher"),),
        reader=read,
        marks=(_TITLE,),
        command=command,
        cases=cases,
        parameters={
            "n": Parameter([8000], _linpack.counts, "order of the matrix, or several"),
            "nb": Parameter([192], _linpack.counts, "block size, or several"),
            "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
            "p": Parameter([1], _linpack.grid, "rows of the process grid, or several"),
            "q": Parameter([2], _linpack.grid, "columns, as many; p times q is ranks"),
        },
        program="xhpl",
        get="https://www.netlib.org/benchmark/hpl: make arch=..., with the site's BLAS",
        versions="2.0 to 2.3",
        proof=(
            "title and 'End of Tests.' once, a row for every combination of the settings printed"
            " above, each followed by a residual below the limit and PASSED, the counts of passed"
            " tests, Gflop/s times seconds equal to the operations of N"
        ),
        means=(
            "the BLAS as much as the machine: OpenBLAS's Haswell kernels gave 99 Gflop/s where its"
            " SkylakeX kernels gave 130 on the same cores; N decides how much of the time is"
            " communication; four digits; one figure per launch and combination; the threads of the"
            " BLAS are not printed"
        ),
    ),
    recognise=_recognise,
)
