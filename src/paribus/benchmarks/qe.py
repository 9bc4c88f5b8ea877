"""Quantum ESPRESSO's pw.x: self-consistent calculations, by what they print on stdout."""

from __future__ import annotations

import re

from paribus.benchmarks._apps import absolute, found, shipped
from paribus.benchmarks._parameters import positive, real, threads, wanted_threads
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, path_or, refuse, tool
from paribus.errors import UserError
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

BUSY = 0.85
"""CPU time over wall time below which ranks are said to have waited. On a 2-core AMD EPYC KVM
guest 0.92 and 0.97 undisturbed, 0.35 in a launch 6.6 times slower (2026-11-21)."""

_TITLE = re.compile(r"Program PWSCF v\.(\S+) +starts on ")
_PARALLEL = re.compile(
    r"     Parallel version \(([^)\n]*)\), running on +(\d+) processor(?:s| cores)[ \t]*$", re.M
)
_SERIAL = re.compile(r"     Serial version[ \t]*$", re.M)
_PROCESSES = re.compile(r"     Number of MPI processes: +(\d+)[ \t]*$", re.M)
_THREADS = re.compile(r"     Threads/MPI process: +(\d+)[ \t]*$", re.M)
_WORK = {
    "atoms": re.compile(r"     number of atoms/cell += +(\d+)[ \t]*$", re.M),
    "bands": re.compile(r"     number of Kohn-Sham states= *(\d+)[ \t]*$", re.M),
    "ecut": re.compile(r"     kinetic-energy cutoff += +(\d+\.\d+) +Ry[ \t]*$", re.M),
    "k_points": re.compile(r"     number of k points= *(\d+)"),
}
_MARKS = ("number of atoms/cell", "Kohn-Sham states=", "kinetic-energy cutoff", "k points=")
_STEP = re.compile(r"     iteration # *\d+ +ecut=")
_CONVERGED = re.compile(r"     convergence has been achieved in +(\d+) iterations?[ \t]*$", re.M)
_ENERGY = re.compile(r"! +total energy +=  *(-?\d+\.\d+) Ry[ \t]*$", re.M)
_SPENT = re.compile(r"     total cpu time spent up to now is +(\d+\.\d) secs[ \t]*$", re.M)
# Hours and days bring minutes without seconds: format of UtilXlib/clocks_handler.f90.
_TIME = r"(?:(?:(?:([1-9]\d?)d *(\d\d?)h|([1-9]\d?)h) *(\d\d?)m)|(?:([1-9]\d?)m *)?(\d\d?\.\d\d)s)"
_TOTAL = re.compile(rf"     PWSCF +: +{_TIME} CPU +{_TIME} WALL[ \t]*$", re.M)
_ELECTRONS = re.compile(
    r"     electrons +: +(\d+\.\d\d)s CPU +(\d+\.\d\d)s WALL \( *(\d+) calls\)[ \t]*$", re.M
)


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
            mend="use 4, 32, 108 or 256, or name an `input` of your own",
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
    """Return the places of the atoms of `cells` face-centred cells along each edge."""
    corners = ((0.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5))
    steps = range(cells)
    return "\n".join(
        "Al "
        + " ".join(f"{(at + shift) / cells:.6f}" for at, shift in zip(cell, corner, strict=True))
        for cell in ((x, y, z) for x in steps for y in steps for z in steps)
        for corner in corners
    )


def read(text: str) -> Reading:
    """Return the time of the calculation, and that of one of its self-consistent iterations."""
    title = _TITLE.match(text, once(text, "Program PWSCF", "the line 'Program PWSCF v.'"))
    if title is None:
        refuse("expected 'Program PWSCF v.VERSION starts on', got something else")
    _check_end(text)
    ranks, threads = _ranks(text)
    counts = [count(m[1]) for m in found(text, "convergence has been", _CONVERGED)]
    done = len(found(text, "iteration #", _STEP))
    if not counts:
        refuse("no self-consistent calculation: nothing 'convergence has been achieved in'")
    if sum(counts) != done or not all(counts):
        refuse(f"{done} iterations were made, {sum(counts)} are said to have led to convergence")
    cpu, wall, electrons = _times(text)
    parameters: dict[str, Scalar] = {"threads": threads}
    for mark, (key, pattern) in zip(_MARKS, _WORK.items(), strict=True):
        if len(said := found(text, mark, pattern)) != 1:
            refuse(f"what it says of {key} is there {len(said)} times, not once")
        parameters[key] = float(said[0][1]) if "." in said[0][1] else count(said[0][1])
    energies = found(text, "!    total energy", _ENERGY)
    if len(energies) != len(counts):
        refuse(f"{len(counts)} calculations converged, {len(energies)} have a final energy")
    guards: tuple[str, ...] = ()
    if threads == 1 and cpu < BUSY * wall:
        told = f"it used the CPU for {cpu:g} s of {wall:g} s"
        guards = (f"{told}: it waited for a core, or for input and output",)
    samples = (
        Sample("iteration", Case(), (electrons / done,)),
        Sample("wall", Case(), (wall,)),
    )
    facts = {"work.qe.iterations": done, "work.qe.energy_ry": float(energies[-1][1])}
    return Reading("qe", title[1], parameters, ranks, samples, facts, guards)


def _check_end(text: str) -> None:
    """Refuse a calculation that says it failed, or that does not say it has ended well."""
    if (at := text.find("Error in routine")) >= 0:
        why = line_at(text, text.find("\n", at) + 1).strip()
        refuse(f"pw.x says: {line_at(text, at).strip()[:80]} {why[:120]}", line_of(text, at))
    if (at := text.find("convergence NOT achieved")) >= 0:
        refuse(f"it did not converge: {line_at(text, at).strip()[:80]!r}", line_of(text, at))
    if (at := text.find("Maximum CPU time exceeded")) >= 0:
        refuse("it was stopped by its own time limit, max_seconds", line_of(text, at))
    at = once(text, "JOB DONE.", "the last line, 'JOB DONE.',")
    if text.find("Self-consistent Calculation", at) >= 0:
        refuse("it goes on after 'JOB DONE.'", line_of(text, at))


def _ranks(text: str) -> tuple[int, int]:
    """Return the number of ranks, and of threads of each."""
    parallel, serial = found(text, "Parallel v", _PARALLEL), found(text, "Serial v", _SERIAL)
    if len(parallel) + len(serial) != 1:
        refuse("the line 'Parallel version' or 'Serial version' is not there once and whole")
    if serial:
        return 1, 1
    cores = count(parallel[0][2])
    if "OpenMP" not in parallel[0][1]:
        return cores, 1
    processes = found(text, "Number of MPI processes", _PROCESSES)
    threads = found(text, "Threads/MPI process", _THREADS)
    if len(processes) != 1 or len(threads) != 1:
        refuse("what it says of processes and threads is not there once and whole")
    tasks, each = count(processes[0][1]), count(threads[0][1])
    if tasks * each != cores:
        refuse(f"{cores} processor cores are not {tasks} processes x {each} threads")
    return tasks, each


def _times(text: str) -> tuple[float, float, float]:
    """Return CPU and wall time of the whole, and wall time of the iterations, in seconds."""
    total, electrons = found(text, "PWSCF  ", _TOTAL), found(text, "electrons  ", _ELECTRONS)
    if len(total) != 1 or len(electrons) != 1:
        refuse("the clocks PWSCF and electrons are missing, damaged or there twice")
    cpu, wall = _seconds(total[0].groups()[:6]), _seconds(total[0].groups()[6:])
    inside = figure(electrons[0][2])
    spent = max((float(m[1]) for m in found(text, "total cpu time", _SPENT)), default=0.0)
    rough = 60.0 if wall >= 3600 else 0.0
    if not max(inside, spent - 0.1) <= wall + rough + 0.02:
        refuse(f"it took {wall:g} s, less than the {max(inside, spent):g} s of a part of it")
    return cpu, wall, inside


def _seconds(groups: tuple[str, ...]) -> float:
    """Return the time that a clock shows as days, hours and minutes, or minutes and seconds."""
    days, hours, alone, minutes, few, seconds = groups
    if minutes:
        return 86400.0 * int(days or 0) + 3600 * int(hours or alone) + 60 * int(minutes)
    return 60 * int(few or 0) + figure(seconds)


BENCHMARK = tool(
    "qe",
    layer="application",
    summary="Quantum ESPRESSO pw.x: density functional theory, an aluminium cell or your own input",
    metrics=(Metric("iteration", "s", "lower"), Metric("wall", "s", "lower")),
    reader=read,
    marks=("Program PWSCF",),
    command=command,
    parameters={
        "atoms": Parameter(32, positive, "atoms: 4, 32, 108 or 256 of aluminium, or your input's"),
        "ecut": Parameter(20.0, real, "cutoff of the kinetic energy in Ry"),
        "input": Parameter(None, absolute, "an input file of your own, as an absolute path"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"'),
        "pseudo_dir": Parameter(
            "/usr/share/espresso/pseudo", absolute, "where Al.pz-vbc.UPF is, for our input"
        ),
    },
    program="pw.x",
    get="apt install quantum-espresso quantum-espresso-data; https://www.quantum-espresso.org",
    versions="6.7",
    proof=(
        "title, clocks and 'JOB DONE.' once, every calculation converged, the iterations as many"
        " as are said, the whole no shorter than its parts, ranks, atoms and cutoff as asked"
    ),
    means=(
        "iteration: wall time of `electrons` over the number of self-consistent iterations, which"
        " may differ between arms (fact work.qe.iterations); wall: the whole calculation, in"
        " minutes from an hour on; clocks of the first rank; below 10 s the figures are those of"
        " noise"
    ),
)
