"""The benchmarks of NPB by a kernel of ours; tools/npb.py starts the original programs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isqrt

from paribus.benchmarks.own import arguments, native
from paribus.benchmarks.parameters import one_of, refuse_ranks
from paribus.core import Benchmark, Metric, Parameter, Program, Request

_LEAST = {("is", "D"): 4}
"""The least ranks of a kernel and class: 4 as in NPB 3.3, as the counters of `is` have 32 bits."""


def npb(
    kernel: str, summary: str, most: Mapping[str, int], *, powers: bool, squares: bool = False
) -> Benchmark:
    """Return a benchmark of NPB; `most` are the most ranks by class.

    Ranks must be `powers` of two, or `squares`, or may be any number.
    """
    return native(
        kernel,
        f"NPB {kernel.upper()}: {summary}",
        *(Metric("mops", "Mop/s", "higher"), Metric("time", "s", "lower")),
        layer="compute",
        samples=10,
        intervals=True,
        ranks=4 if squares else 2,
        extra={"class": Parameter("A", one_of(*most), "size of the problem, S to D")},
        command=partial(_npb_command, kernel, most, powers, squares),
    )


def _npb_command(
    kernel: str, most: Mapping[str, int], powers: bool, squares: bool, request: Request
) -> Program:
    """Return the command line of a benchmark of NPB; raises UserError for illegal ranks."""
    ranks, size = request.ranks, request.parameters["class"]
    least = _LEAST.get((kernel, size), 1)
    odd = (powers and ranks.bit_count() != 1) or (squares and isqrt(ranks) ** 2 != ranks)
    if odd or not least <= ranks <= most[size]:
        several = "1, 4, 9" if squares else "4, 8, 16" if least > 1 else "1, 2, 4, 8"
        legal = f"to one of {several} ... {most[size]}" if powers or squares else ""
        refuse_ranks(request, f"{kernel} of class {size}", legal or f"= 1 to {most[size]}")
    return Program((kernel, *arguments(request)), "npb")


BENCHMARKS = (
    npb(
        "ep",
        "random numbers: floating point, almost without messages",
        {"S": 2**8, "W": 2**9, "A": 2**12, "B": 2**14, "C": 2**16, "D": 2**20},
        powers=False,
    ),
    npb(
        "is",
        "sort of integer keys: random memory access and all-to-all messages",
        {"S": 2**9, "W": 2**10, "A": 2**10, "B": 2**10, "C": 2**10, "D": 2**10},
        powers=True,
    ),
    npb(
        "cg",
        "conjugate gradient: irregular memory access and messages",
        {"S": 2**8, "W": 2**10, "A": 2**10, "B": 2**10, "C": 2**10, "D": 2**10},
        powers=True,
    ),
    npb(
        "mg",
        "multigrid: memory bandwidth, messages to neighbours, short ones on coarse grids",
        {"S": 2**9, "W": 2**15, "A": 2**18, "B": 2**18, "C": 2**21, "D": 2**24},
        powers=True,
    ),
    npb(
        "ft",
        "Fourier transforms of a cube: long all-to-all messages",
        {"S": 2**8, "W": 2**8, "A": 2**11, "B": 2**12, "C": 2**14, "D": 2**16},
        powers=True,
    ),
    npb(
        "lu",
        "relaxation along a wavefront: many short messages, each of which a neighbour waits for",
        {"S": 2**4, "W": 2**6, "A": 2**8, "B": 2**10, "C": 2**10, "D": 2**14},
        powers=True,
    ),
    npb(
        "sp",
        "scalar pentadiagonal systems along lines, solved from neighbour to neighbour",
        {"S": 4**2, "W": 12**2, "A": 21**2, "B": 34**2, "C": 54**2, "D": 136**2},
        powers=False,
        squares=True,
    ),
    npb(
        "bt",
        "block tridiagonal systems along lines, solved from neighbour to neighbour",
        {"S": 4**2, "W": 8**2, "A": 21**2, "B": 34**2, "C": 54**2, "D": 136**2},
        powers=False,
        squares=True,
    ),
)
