"""Pynamic (LLNL), where the site has it built: importing many generated shared libraries."""

from __future__ import annotations

from collections.abc import Iterable

from paribus.benchmarks.parameters import absolute, one_of
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.pynamic import READER

# The argument is the time since the epoch from which the script counts its start-up. Pynamic is
# built into a folder of its own and finds its libraries there.
_START = (
    '[ -r "$0" ] || { echo "$0: not found: give its path" >&2; exit 127; };'
    ' cd "${0%/*}" && LD_LIBRARY_PATH="$PWD:$LD_LIBRARY_PATH" exec "$@" "$0" "$(date +%s.%N)" 2>&1'
)


def command(request: Request) -> Program:
    """Return the executable, or Python with the driver script; started in its own folder."""
    exe = request.parameters["form"] == "exe"
    path = path_or(request, "pynamic-mpi4py" if exe else "pynamic_driver_mpi4py.py")
    starts = "env" if exe else "python3"
    return Program(("/bin/sh", "-c", _START, path, starts), needs=(starts, path))


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return what is printed: the time of the start-up by the script alone."""
    names = ["import", "visit", "fractal"]
    names += ["startup"] if request.parameters["form"] == "script" else []
    return [(name, Case()) for name in names]


BENCHMARK = tool(
    READER,
    layer="start-up",
    summary="Pynamic: importing many generated Python modules and libraries from all ranks at once",
    metrics=(
        Metric("import", "s", "lower", margin=0.05),
        Metric("visit", "s", "lower", margin=0.05),
        Metric("startup", "s", "lower", margin=0.05),
        Metric("fractal", "s", "lower", margin=0.05),
    ),
    command=command,
    cases=cases,
    optional=("startup",),
    parameters={
        "path": Parameter(
            None, absolute, "of the driver or executable that was built", required=True
        ),
        "form": Parameter(
            "script",
            one_of("script", "exe"),
            "pynamic_driver_mpi4py.py by python3, or pynamic-mpi4py",
        ),
    },
    program="pynamic_driver_mpi4py.py",
    get="https://github.com/LLNL/pynamic: config_pynamic.py 900 1250 -e -u 350 1250 --with-mpi4py",
)
