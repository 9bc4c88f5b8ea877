"""Kernels of memory and computation of one node as benchmarks (docs/kernels.md)."""

from __future__ import annotations

from typing import Any

from paribus.benchmarks.own import command_line, native
from paribus.benchmarks.parameters import positive, refuse_ranks, sizes
from paribus.core import Metric, Parameter, Program, Request, UserError, parse_bytes


def _array(value: Any) -> int:
    if not isinstance(value, str | int) or not 768 <= (found := parse_bytes(value)) < 2**40:
        raise ValueError('use a size from 768 B to 1 TiB, such as "1 GiB"')
    return found


def _table(value: Any) -> int | str:
    if value == "half":
        return "half"
    found = _array(value)
    if found < 2**14 or found.bit_count() != 1:
        raise ValueError('use a power of two of at least 16 KiB, such as "1 GiB", or "half"')
    return found


def _side(value: Any) -> int:
    if (found := positive(value)) % 8 or not 16 <= found <= 512:
        raise ValueError("use a multiple of 8 from 16 to 512: there are three coarser grids")
    return found


def _conjugate_gradient(request: Request) -> Program:
    """Return the command line; raises UserError for blocks that the rules of HPCG forbid."""
    sides = [request.parameters[key] for key in ("nx", "ny", "nz")]
    if max(sides) > 8 * min(sides):
        raise UserError(
            "HPCG's rules forbid sides that differ by more than a factor of 8",
            place="nx, ny, nz = " + ", ".join(map(str, sides)),
            fix="use three sides of about one length",
        )
    return command_line("conjugate_gradient", request)


def _random_access(request: Request) -> Program:
    """Return the command line; raises UserError for a number of ranks that is not a power of 2."""
    if request.ranks.bit_count() != 1:
        refuse_ranks(request, "random_access", "to one of 1, 2, 4, 8 ...")
    return command_line("random_access", request)


BENCHMARKS = (
    native(
        "memory_bandwidth",
        "memory bandwidth of STREAM's loops and a dot product, all ranks at once, summed",
        Metric("bandwidth", "GB/s", "higher"),
        layer="memory",
        samples=10,
        extra={
            "bytes": Parameter(
                None, sizes, "of each of a rank's arrays, instead of 4 times the last-level caches"
            )
        },
    ),
    native(
        "random_access",
        "RandomAccess of HPCC: updates of a table at random places, all ranks together",
        Metric("updates", "Gup/s", "higher"),
        layer="memory",
        intervals=True,
        paced=False,
        extra={
            "table": Parameter(
                128 << 20, _table, 'bytes of a rank\'s part, a power of two; "half" of the memory'
            )
        },
        command=_random_access,
    ),
    native(
        "roofline",
        "speed from memory-bound to compute-bound, in double, float and int, all ranks",
        Metric("performance", "Gop/s", "higher"),
        layer="compute",
        samples=20,
        extra={
            "array": Parameter(
                None, _array, "bytes of a rank's numbers, instead of 4 times the last-level caches"
            )
        },
    ),
    native(
        "conjugate_gradient",
        "conjugate gradients with a multigrid preconditioner, by the rules of HPCG",
        *(Metric("gflops", "Gflop/s", "higher"), Metric("time", "s", "lower")),
        layer="compute",
        intervals=True,
        paced=False,
        extra={
            **{
                f"n{axis}": Parameter(48, _side, f"points of a rank in {axis}, a multiple of 8")
                for axis in "xyz"
            },
            "seconds": Parameter(
                3, positive, "of measuring; a rating takes 1800", needs=("sets", None)
            ),
            "sets": Parameter(None, positive, "of 50 iterations, instead of those seconds"),
        },
        command=_conjugate_gradient,
    ),
)
