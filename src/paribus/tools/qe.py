"""Quantum ESPRESSO's pw.x: self-consistent calculations, by what they print on stdout."""

from __future__ import annotations

from paribus.benchmarks.parameters import absolute, positive, real, threads, wanted_threads
from paribus.benchmarks.tool import path_or, shipped, tool
from paribus.core import Metric, Parameter, Program, Request, UserError
from paribus.tools.readers.qe import READER


def command(request: Request) -> Program:
    """Return the command line: our pw.in, or the input file that was asked for."""
    asked = request.parameters
    program, wanted = path_or(request, "pw.x"), wanted_threads(asked)
    if asked.get("input"):
        own = str(asked["input"])
        return Program((program, "-in", own), threads=wanted, needs=(own,))
    cells = round((int(asked["atoms"]) / 4) ** (1 / 3))
    if 4 * cells**3 != asked["atoms"]:
        raise UserError(
            "pw.in has 4 atoms per cell, and as many cells along each edge",
            place=f"qe: atoms = {asked['atoms']}",
            fix="use 4, 32, 108 or 256, or name an `input` of your own",
        )
    values = {
        "{atoms}": str(asked["atoms"]),
        "{edge}": f"{7.65 * cells:.4f}",
        "{cutoff}": f"{float(asked['ecut']):.4f}",
        "{pseudo_dir}": str(asked["pseudo_dir"]),
        "{positions}": _positions(cells),
    }
    text = shipped("pw.in")
    for key, value in values.items():
        text = text.replace(key, value)
    needs = (f"{asked['pseudo_dir']}/Al.pz-vbc.UPF",)
    return Program((program, "-in", "pw.in"), files={"pw.in": text}, threads=wanted, needs=needs)


def _positions(cells: int) -> str:
    """Return the lines of pw.in on the atoms of `cells` face-centred cells along each edge."""
    corners = ((0.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5))
    steps = range(cells)
    return "\n".join(
        "Al "
        + " ".join(f"{(at + shift) / cells:.6f}" for at, shift in zip(cell, corner, strict=True))
        for cell in ((x, y, z) for x in steps for y in steps for z in steps)
        for corner in corners
    )


BENCHMARK = tool(
    READER,
    layer="application",
    summary="Quantum ESPRESSO pw.x: density functional theory, an aluminium cell or your own input",
    metrics=(Metric("iteration", "s", "lower"), Metric("wall", "s", "lower")),
    command=command,
    parameters={
        "atoms": Parameter(
            32,
            positive,
            "atoms: 4, 32, 108 or 256 of aluminium; your input's are checked where set",
            unless="input",
        ),
        "ecut": Parameter(20.0, real, "cutoff of the kinetic energy in Ry", unless="input"),
        "input": Parameter(None, absolute, "an input file of your own, as an absolute path"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "pseudo_dir": Parameter(
            "/usr/share/espresso/pseudo", absolute, "of our Al.pz-vbc.UPF", needs=("input", None)
        ),
    },
    program="pw.x",
    get="apt install quantum-espresso quantum-espresso-data; https://www.quantum-espresso.org",
)
