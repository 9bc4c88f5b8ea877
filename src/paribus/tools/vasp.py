"""VASP: what it writes into OUTCAR of its loops and of the whole."""

from __future__ import annotations

from pathlib import Path

from paribus.benchmarks.parameters import absolute, positive, threads, wanted_threads
from paribus.benchmarks.tool import path_or, tool
from paribus.border import read_bounded
from paribus.core import Metric, Parameter, Program, Request, UserError
from paribus.tools.readers.vasp import READER

INPUTS = ("INCAR", "KPOINTS", "POSCAR", "POTCAR")
MOST_INPUT = 64 << 20
"""Bytes of an input, at most; the POTCAR of many elements has some MB."""


def command(request: Request) -> Program:
    """Return the command line, with the four inputs of the folder that was asked for."""
    folder = request.parameters.get("input")
    inputs: dict[str, str] = {}
    for name in INPUTS if folder else ():
        try:
            path = Path(str(folder)) / name
            inputs[name] = read_bounded(path, MOST_INPUT, "an input of VASP").decode()
        except (OSError, UnicodeError) as error:
            raise UserError(
                f"cannot be read: {getattr(error, 'strerror', None) or error}",
                place=f"vasp: input = {folder!r}: {name}",
                fix=f"name a folder that holds {', '.join(INPUTS)}",
            ) from error
    program = path_or(request, "vasp_std")
    wanted = wanted_threads(request.parameters)
    return Program((program,), files=inputs, outputs=("OUTCAR",), threads=wanted)


BENCHMARK = tool(
    READER,
    layer="application",
    summary="VASP: density functional theory, a calculation of your own",
    metrics=(
        Metric("iteration", "s", "lower"),
        Metric("elapsed", "s", "lower"),
        Metric("ionic_step", "s", "lower"),
    ),
    command=command,
    parameters={
        "input": Parameter(
            None,
            absolute,
            "the folder of INCAR, KPOINTS, POSCAR and POTCAR, as an absolute path",
            required=True,
        ),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "ions": Parameter(None, positive, "the ions that the output must speak of"),
    },
    program="vasp_std",
    get="https://www.vasp.at (licensed)",
)
