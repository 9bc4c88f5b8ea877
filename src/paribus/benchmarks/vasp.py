"""VASP: what it writes into OUTCAR of its loops and of the whole."""

from __future__ import annotations

import re
from pathlib import Path

from paribus.benchmarks._apps import absolute, found, near
from paribus.benchmarks._parameters import positive, threads, wanted_threads
from paribus.benchmarks._tool import count, figure, line_of, once, path_or, refuse, tool
from paribus.errors import UserError
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

INPUTS = ("INCAR", "KPOINTS", "POSCAR", "POTCAR")
BUSY = 0.9
"""CPU time over elapsed time of rank 0 below which it is said to have waited; public outputs of
undisturbed calculations have 0.997 (3257.637 of 3266.838 s)."""

_TITLE = re.compile(r" vasp\.(\d[\w.]*) +\S")
_RANKS = re.compile(
    r" running (?:on +(\d+) total cores| +(\d+) mpi-ranks, with +(\d+) threads/rank)"
)
_WORK = {
    "ions": ("NIONS", re.compile(r"[^\n]{0,200}?\bNIONS += *(\d+)[ \t]*$", re.M)),
    "k_points": ("NKPTS", re.compile(r"[^\n]{0,200}?\bNKPTS += *(\d+)\b")),
    "bands": ("NBANDS", re.compile(r"[^\n]{0,200}?\bNBANDS *= *(\d+)[ \t]*$", re.M)),
    "encut": ("ENCUT", re.compile(r" +ENCUT += +(\d+\.\d+) eV\b")),
}
_LIMITS = {
    "NELM": re.compile(r" +NELM += +(\d+);"),
    "NSW": re.compile(r" +NSW += +(\d+) "),
    "IBRION": re.compile(r" +IBRION *= +(-?\d+) "),
}
_STEP = re.compile(r"-+ Iteration +(\d+)\( *(\d+)\) +-+[ \t]*$", re.M)
_LOOP = re.compile(r" +LOOP: +cpu time *\d+\.\d+: real time *(\d+\.\d{4})[ \t]*$", re.M)
_IONIC = re.compile(r" +LOOP\+: +cpu time *\d+\.\d+: real time *(\d+\.\d{4})[ \t]*$", re.M)
_END = re.compile(
    r" +Total CPU time used \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +User time \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +System time \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +Elapsed time \(sec\): +(\d+\.\d{3})[ \t]*$",
    re.M,
)
_ENERGY = re.compile(r"  free  energy   TOTEN  = +(-?\d+\.\d+) eV[ \t]*$", re.M)


def command(request: Request) -> Program:
    """Return the command line, with the four inputs of the folder that was asked for."""
    folder = request.parameters.get("input")
    inputs: dict[str, str] = {}
    for name in INPUTS if folder else ():
        try:
            inputs[name] = (Path(str(folder)) / name).read_text()
        except (OSError, UnicodeError) as error:
            raise UserError(
                f"cannot be read: {error}",
                place=f"vasp: input = {folder!r}: {name}",
                mend=f"name a folder that holds {', '.join(INPUTS)}",
            ) from error
    program = path_or(request, "vasp_std")
    wanted = wanted_threads(request.parameters)
    return Program((program,), files=inputs, outputs=("OUTCAR",), threads=wanted)


def read(text: str) -> Reading:
    """Return the time of the calculation, and that of one of its electronic iterations."""
    start = once(text, " executed on ", "the second line of OUTCAR, 'executed on',")
    title = [m for m in found(text, " vasp.", _TITLE) if m.start() < start]
    if not title:
        refuse("the first line of OUTCAR, 'vasp.VERSION', is missing or damaged")
    ranks, threads = _ranks(text, start)
    at = once(text, "General timing and accounting informations", "the accounting at the end")
    end = found(text, "Total CPU time used", _END)
    if len(end) != 1 or end[0].start() < at:
        refuse("the accounting at the end is damaged", line_of(text, at))
    cpu, user, system, elapsed = map(figure, end[0].groups())
    if not near(user + system, cpu, 0.001) and abs(user + system - cpu) > 0.01:
        refuse(f"{end[0][2]} s of user and {end[0][3]} s of system are not {end[0][1]} s")
    loops, ionic = _loops(text)
    if sum(ionic) > elapsed + 0.1:
        refuse(f"{elapsed:g} s elapsed, less than the {sum(ionic):g} s of its LOOP+")
    parameters: dict[str, Scalar] = {"threads": threads}
    for key, (mark, pattern) in _WORK.items():
        if not (said := found(text, mark, pattern)):
            refuse(f"what it says of {key} is missing or damaged")
        parameters[key] = float(said[0][1]) if "." in said[0][1] else count(said[0][1])
    energies = found(text, "  free  energy   TOTEN", _ENERGY)
    if len(energies) < len(ionic):
        refuse(f"{len(ionic)} ionic steps, but {len(energies)} energies (TOTEN)")
    samples = (
        Sample("iteration", Case(), (sum(ionic) / loops,)),
        Sample("elapsed", Case(), (elapsed,)),
        Sample("ionic_step", Case(), tuple(ionic)),
    )
    facts = {
        "work.vasp.iterations": loops,
        "work.vasp.ionic_steps": len(ionic),
        "work.vasp.energy_ev": float(energies[-1][1]),
    }
    guards: tuple[str, ...] = ()
    if threads == 1 and cpu < BUSY * elapsed:
        told = f"rank 0 used the CPU for {cpu:g} s of {elapsed:g} s"
        guards = (f"{told}: it waited for a core, a GPU, or for input and output",)
    return Reading("vasp", title[-1][1], parameters, ranks, samples, facts, guards)


def _ranks(text: str, start: int) -> tuple[int, int]:
    """Return the number of ranks, and of threads of each."""
    said = found(text, " running ", _RANKS)
    match = next((m for m in said if m.start() > start), None)
    if match is None:
        refuse("the line 'running on N total cores' or 'running N mpi-ranks' is missing")
    return count(match[1] or match[2]), count(match[3] or "1")


def _loops(text: str) -> tuple[int, list[float]]:
    """Return how many electronic iterations were made, and the time of every ionic step, in s.

    Refuses a calculation that stopped before it converged, unless at a number of iterations that
    its input set: then the work is as asked.
    """
    steps = [(count(m[1]), count(m[2])) for m in found(text, " Iteration ", _STEP)]
    ionic = [figure(m[1]) for m in found(text, "LOOP+:", _IONIC)]
    loops = [figure(m[1]) for m in found(text, "LOOP:", _LOOP)]
    if not steps or text.count(" Iteration ") != len(steps):
        refuse(f"{text.count(' Iteration ')} headings of iterations, {len(steps)} of them whole")
    if len(loops) != len(steps):
        refuse(f"{len(steps)} iterations were begun, {len(loops)} have their time (LOOP)")
    last: dict[int, int] = {}
    for number, (ion, step) in enumerate(steps):
        if (ion, step) not in ((len(last), last.get(len(last), 0) + 1), (len(last) + 1, 1)):
            refuse(f"iteration {number + 1} is called {ion}({step})")
        last[ion] = step
    if len(ionic) != len(last):
        refuse(f"{len(last)} ionic steps were begun, {len(ionic)} have their time (LOOP+)")
    limits = {key: m[1] for key, p in _LIMITS.items() for m in found(text, f"   {key} ", p)}
    converged = text.count("aborting loop because EDIFF is reached")
    cut = sum(step == int(limits.get("NELM", 0)) for step in last.values())
    if converged + cut < len(last):
        refuse(f"of {len(last)} ionic steps {converged} converged, {cut} made all NELM iterations")
    relaxed = limits.get("IBRION") in ("1", "2", "3")
    accurate = "reached required accuracy - stopping structural energy minimisation" in text
    if relaxed and not accurate and int(limits.get("NSW", 0)) not in (0, len(last)):
        refuse("the relaxation ended before it reached the required accuracy")
    if sum(loops) > 1.01 * sum(ionic) + 0.01:
        refuse(f"the iterations took {sum(loops):g} s, longer than all of LOOP+")
    return len(steps), ionic


BENCHMARK = tool(
    "vasp",
    layer="application",
    summary="VASP: density functional theory, a calculation of your own",
    metrics=(
        Metric("iteration", "s", "lower"),
        Metric("elapsed", "s", "lower"),
        Metric("ionic_step", "s", "lower"),
    ),
    reader=read,
    marks=(" executed on  ",),
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
    versions="5.4.1 to 6.5, by their documented OUTCAR; none could be started here",
    proof=(
        "one OUTCAR with its accounting, user + system = CPU time, every iteration and ionic step"
        " with its time and numbered without a gap, electronic convergence or NELM iterations,"
        " 'reached required accuracy' or NSW steps of a relaxation, ranks as asked"
    ),
    means=(
        "iteration: real time of LOOP+ over the number of electronic iterations, which may differ"
        " between arms (fact work.vasp.iterations); elapsed: the whole; the terminal output has no"
        " times; clocks of rank 0"
    ),
)
