"""What VASP writes into OUTCAR of its loops and of the whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paribus.core import Case, Reading, Sample, Scalar, of_tool
from paribus.readers.dates import date
from paribus.readers.figures import count, counts, figure, figures, near
from paribus.readers.heads import Head
from paribus.readers.reader import OTHER_WORK, Reader, single
from paribus.readers.text import columns, first, found, line_of, once, refuse

BUSY = 0.9
"""CPU time over elapsed time of rank 0 below which the report says that it waited; public outputs
of undisturbed calculations have 0.997 (3257.637 of 3266.838 s)."""

_TITLE = re.compile(r" vasp\.(\d[\w.-]*) +\S")
_RANKS = re.compile(
    r" running +(?:on +(\d+) total cores"
    r"|(\d+) mpi-ranks, (?:with +(\d+) threads/rank|on +\d+ nodes))"
)
_WORK = {
    "ions": ("NIONS", re.compile(r"[^\n]{0,200}?\bNIONS += *(\d+)[ \t]*$", re.M)),
    "k_points": ("NKPTS", re.compile(r"[^\n]{0,200}?\bNKPTS += *(\d+)\b")),
    "bands": ("NBANDS", re.compile(r"[^\n]{0,200}?\bNBANDS *= *(\d+)[ \t]*$", re.M)),
    "encut": ("ENCUT", re.compile(r" +ENCUT += +(\d+\.\d+) eV\b")),
}
_ACCURATE = "reached required accuracy - stopping structural energy minimisation"
# On Blue Gene it is of no use: negative, or too long for its column.
_CPU = r"(?:-?\d+\.\d+|\*+)"
_LINES = re.compile(
    r"\n(?:-++ Iteration +(?P<ion>\d+)\( *(?P<step>\d+)\) +-+[ \t]*$"
    r"|  free  energy   TOTEN  = +(?P<energy>-?\d+\.\d+) eV[ \t]*$"
    r"|   ++(?:"
    rf"LOOP: +cpu time *{_CPU}: real time *(?P<loop>\d+\.\d\d(?:\d\d)?)[ \t]*$"
    rf"|LOOP\+: +cpu time *{_CPU}: real time *(?P<ionic>\d+\.\d\d(?:\d\d)?)[ \t]*$"
    r"|NELM += +(?P<most_steps>\d+);"
    r"|NSW += +(?P<most_ions>\d+) "
    r"|IBRION += +(?P<relaxation>-?\d+) "
    r"|Total CPU time used (?P<accounting>\(sec\)):))",
    re.M,
)
_END = re.compile(
    r" +Total CPU time used \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +User time \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +System time \(sec\): +(\d+\.\d{3})[ \t]*\n"
    r" +Elapsed time \(sec\): +(\d+\.\d{3})[ \t]*$",
    re.M,
)


def read(text: str) -> Reading:
    """Return the time of the calculation, and that of one of its electronic iterations."""
    start = once(text, " executed on ", "the second line of OUTCAR, 'executed on',")
    title = found(text[:start], " vasp.", _TITLE)
    if not title:
        refuse("the first line of OUTCAR, 'vasp.VERSION', is missing or damaged")
    ranks, threads = _ranks(text, start)
    lines = columns(text, _LINES)
    at = once(text, "General timing and accounting informations", "the accounting at the end")
    end = first(text, "Total CPU time used", _END, at)
    if end is None or len(lines["accounting"]) != 1:
        refuse("the accounting at the end is damaged", line_of(text, at))
    cpu, user, elapsed = map(figure, end.group(1, 2, 4))
    system = float(end[3])
    if not near(user + system, cpu, 0.001) and abs(user + system - cpu) > 0.01:
        refuse(f"{end[2]} s of user and {end[3]} s of system are not {end[1]} s")
    loops, ionic = _loops(text, lines)
    if sum(ionic) > elapsed + 0.1:
        refuse(f"{elapsed:g} s elapsed, less than the {sum(ionic):g} s of its LOOP+")
    parameters: dict[str, Scalar] = {"threads": threads}
    for key, (mark, pattern) in _WORK.items():
        if (match := first(text, mark, pattern)) is None:
            refuse(f"what it says of {key} is missing or damaged")
        parameters[key] = float(match[1]) if key == "encut" else count(match[1])
    if len(lines["energy"]) < len(ionic):
        refuse(f"{len(ionic)} ionic steps, but {len(lines['energy'])} energies (TOTEN)")
    samples = single(iteration=sum(ionic) / loops, elapsed=elapsed)
    samples += (Sample("ionic_step", Case(), tuple(ionic)),)
    facts = {
        "work.vasp.iterations": loops,
        "work.vasp.ionic_steps": len(ionic),
        "work.vasp.energy_ev": float(lines["energy"][-1]),
    }
    guards: tuple[str, ...] = ()
    if threads == 1 and cpu < BUSY * elapsed:
        reported = f"rank 0 used the CPU for {cpu:g} s of {elapsed:g} s"
        guards = (f"{reported}: it waited for a core, a GPU, or for input and output",)
    return Reading("vasp", title[-1][1], parameters, ranks, samples, facts, guards)


def _ranks(text: str, start: int) -> tuple[int, int]:
    """Return the number of ranks, and of threads of each; they are below the line of `start`."""
    match = first(text, " running ", _RANKS, text.find("\n", start))
    if match is None:
        refuse("the line 'running on N total cores' or 'running N mpi-ranks' is missing")
    return count(match[1] or match[2]), count(match[3] or "1")


def _loops(text: str, lines: Mapping[str, Sequence[str]]) -> tuple[int, list[float]]:
    """Return how many electronic iterations were made, and the time of every ionic step, in s.

    Refuses a calculation that did not converge, unless it stopped at a number of iterations that
    its input set: then it did the work that was asked for.
    """
    steps = list(zip(counts(lines["ion"]), counts(lines["step"]), strict=True))
    loops, ionic = _times(lines["loop"], lines["ionic"])
    begun = text.count(" Iteration ")
    if not steps or begun != len(steps):
        refuse(f"{begun} headings of iterations, {len(steps)} of them whole")
    if len(loops) != len(steps):
        refuse(f"{len(steps)} iterations were begun, {len(loops)} have their time (LOOP)")
    last = _last_steps(steps)
    if len(ionic) != len(last):
        refuse(f"{len(last)} ionic steps were begun, {len(ionic)} have their time (LOOP+)")
    converged = text.count("aborting loop because EDIFF is reached")
    # Of settings that are there again, the last counts.
    most = int(lines["most_steps"][-1]) if lines["most_steps"] else 0
    cut = last.count(most)
    if converged + cut < len(last):
        refuse(f"of {len(last)} ionic steps {converged} converged, {cut} made all NELM iterations")
    relaxed = lines["relaxation"][-1:] in (["1"], ["2"], ["3"])
    most_ions = int(lines["most_ions"][-1]) if lines["most_ions"] else 0
    if relaxed and most_ions not in (0, len(last)) and _ACCURATE not in text:
        refuse("the relaxation ended before it reached the required accuracy")
    if sum(loops) > 1.01 * sum(ionic) + 0.01:
        refuse(f"the iterations took {sum(loops):g} s, longer than all of LOOP+")
    return len(steps), ionic


def _times(loop: Sequence[str], ionic: Sequence[str]) -> tuple[list[float], list[float]]:
    """Return the times of LOOP and of LOOP+, in s; refuses those that have lost their last digits.

    They have four decimals, up to 5.3.5 two.
    """
    decimals = {len(word) - word.index(".") - 1 for word in (*loop, *ionic)}
    if len(decimals) > 1:
        refuse("some times of LOOP and LOOP+ have two decimals, others four")
    return figures(loop), figures(ionic)


def _last_steps(steps: Sequence[tuple[int, int]]) -> list[int]:
    """Return the number of the last iteration of each ionic step; refuses gaps in the numbers."""
    last: list[int] = []
    for number, (ion, step) in enumerate(steps, 1):
        if ion == len(last) + 1 and step == 1:
            last.append(step)
        elif last and ion == len(last) and step == last[-1] + 1:
            last[-1] = step
        else:
            again = ion == step == 1
            why = " again: responses (LEPSILON, IBRION 7 or 8) are not read" if again else ""
            refuse(f"iteration {number} is called {ion}({step}){why}")
    return last


READER = Reader(
    "vasp",
    read,
    marks=(" executed on  ",),
    heads=(Head("executed on  ", above=r"vasp\.\d.*", indent=1),),
    versions="5.3.3 to 6.4.2, by OUTCAR that others published; none could be started here",
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
    dates=(date("date ", r".*date (\d{4}\.\d\d\.\d\d +\d\d:\d\d:\d\d)", "%Y.%m.%d %H:%M:%S"),),
    facts=(of_tool("work.vasp.iterations", "work.vasp.ionic_steps", reason=OTHER_WORK),),
)
