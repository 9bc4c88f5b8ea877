"""What Quantum ESPRESSO's pw.x prints on stdout."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paribus.core import Reading, Scalar, of_tool
from paribus.readers.dates import date
from paribus.readers.figures import count, counts, figure
from paribus.readers.heads import Head
from paribus.readers.reader import OTHER_WORK, Reader, single
from paribus.readers.text import columns, line_at, line_of, once, refuse, within

BUSY = 0.85
"""CPU time over wall time below which the report says that ranks waited. On a 2-core AMD EPYC KVM
guest 0.92 and 0.97 undisturbed, 0.35 in a launch 6.6 times slower (2026-11-21)."""

_ERROR, _NOT = "Error in routine", "convergence NOT achieved"
_TIMEOUT = "Maximum CPU time exceeded"
_FAILED = (_ERROR, _NOT, _TIMEOUT)
# The clock of what a hybrid functional does between self-consistent iterations, in the list of
# clocks at the end (PW/src/electrons.f90).
_EXCHANGE = "     aceinit      :"
# Up to 6.2 with the revision, of which a version had many.
_TITLE = re.compile(r"Program PWSCF v\.(\S+(?: \(svn rev\. [\w:]+\))?) +starts on ")
_OTHER = re.compile(r"^     Program (?!PWSCF)[\w-]+ +v\.[^\n]+ starts on ", re.M)
# Hours and days bring minutes without seconds: format of UtilXlib/clocks_handler.f90.
_TIME = (
    r"(?:(?:[0-9][0-9]?d *)?[0-9][0-9]?h *[0-9][0-9]?m"
    r"|(?:[0-9][0-9]?m *)?[0-9][0-9]?\.[0-9][0-9]s)"
)
_SAID_ONCE = re.compile(
    r"\n     (?:"
    r"Parallel version \((?P<parallel>[^)\n]+)\), running on +(?P<cores>\d+)"
    r" processor(?:s| cores)[ \t]*$"
    r"|Serial (?:(?P<serial>version)"
    r"|multi-threaded version, running on +(?P<alone>\d+) processor cores)[ \t]*$"
    r"|Number of MPI processes: +(?P<processes>\d+)[ \t]*$"
    r"|Threads/MPI process: +(?P<threads>\d+)[ \t]*$"
    r"|number of atoms/cell += +(?P<atoms>\d+)[ \t]*$"
    r"|number of Kohn-Sham states= *(?P<bands>\d+)[ \t]*$"
    r"|kinetic-energy cutoff += +(?P<ecut>\d+\.\d+) +Ry[ \t]*$"
    r"|number of k points= *(?P<k_points>\d+)"
    r"|electrons +: +\d+\.\d\ds CPU +(?P<electrons>\d+\.\d\d)s WALL \( *\d+ calls\)[ \t]*$"
    rf"|PWSCF +: +(?P<cpu>{_TIME}) CPU +(?P<wall>{_TIME}) WALL[ \t]*$)",
    re.M,
)
_OF_ITERATIONS = re.compile(
    r"\n(?:     (?:iteration (?P<begun>#) *\d+ +ecut="
    r"|total cpu time spent up to now is +(?P<spent>\d+\.\d) secs[ \t]*$"
    r"|convergence has been achieved in +(?P<needed>\d+) iterations?[ \t]*$)"
    r"|! +total energy +=  *(?P<energy>-?\d+\.\d+) Ry[ \t]*$)",
    re.M,
)
_WORK = ("atoms", "bands", "ecut", "k_points")
_CLOCK = re.compile(r"([0-9.]+)([dhms])")
_NONE_OF_A_UNIT = re.compile(r"0+[dhm]")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_Lines = Mapping[str, Sequence[str]]
"""What the named groups of _SAID_ONCE found."""


def read(text: str) -> Reading:
    """Return the time of the calculation, and that of one of its self-consistent iterations."""
    title = _TITLE.match(text, once(text, "Program PWSCF", "the line 'Program PWSCF v.'"))
    if title is None:
        refuse("expected 'Program PWSCF v.VERSION starts on', got something else")
    text = _without_others(text, title.end())
    _check_end(text)
    lines, iterations = columns(text, _SAID_ONCE), columns(text, _OF_ITERATIONS)
    ranks, threads = _ranks(lines)
    needed, done = counts(iterations["needed"]), len(iterations["begun"])
    if not needed:
        refuse("no self-consistent calculation: nothing 'convergence has been achieved in'")
    if sum(needed) != done or not all(needed):
        refuse(f"{done} iterations were made, by its own figures {sum(needed)} led to convergence")
    energies = iterations["energy"]
    if len(energies) != len(needed):
        refuse(f"{len(needed)} calculations converged, {len(energies)} have a final energy")
    cpu, wall, electrons = _times(lines, max(map(float, iterations["spent"]), default=0.0))
    parameters: dict[str, Scalar] = {"threads": threads}
    # A change of the cell may have it summed up anew.
    summaries = len(lines["atoms"])
    for key in _WORK:
        if not 1 <= len(lines[key]) == summaries <= len(needed):
            refuse(f"what it says of {key} is there {len(lines[key])} times, not once")
        if len(set(lines[key])) > 1:
            refuse(f"what it says of {key} changes: {', '.join(sorted(set(lines[key])))}")
        parameters[key] = float(lines[key][0]) if key == "ecut" else count(lines[key][0])
    guards: tuple[str, ...] = ()
    if threads == 1 and cpu < BUSY * wall:
        reported = f"it used the CPU for {cpu:g} s of {wall:g} s"
        guards = (f"{reported}: it waited for a core, or for input and output",)
    if text.find(_EXCHANGE, max(text.rfind("JOB DONE.") - 4096, 0)) >= 0:
        guards += ("the exchange (aceinit) is not in `electrons`: compare `wall`, not `iteration`",)
    samples = single(iteration=electrons / done, wall=wall)
    facts = {"work.qe.iterations": done, "work.qe.energy_ry": float(energies[-1])}
    return Reading("qe", title[1], parameters, ranks, samples, facts, guards)


def _without_others(text: str, start: int) -> str:
    """Return `text` up to another program of the suite, such as ph.x after pw.x in one log."""
    end = text.find("JOB DONE.", start)
    other = _OTHER.search(text, end) if text.find("JOB DONE.", end + 1) > end >= 0 else None
    return text[: other.start()] if other else text


def _check_end(text: str) -> None:
    """Refuse a calculation that says it failed, or that does not say it has ended well."""
    failed = within(_FAILED, text)
    if _ERROR in failed:
        at = text.find(_ERROR)
        why = line_at(text, text.find("\n", at) + 1).strip()
        refuse(f"pw.x says: {line_at(text, at).strip()[:80]} {why[:120]}", line_of(text, at))
    if _NOT in failed:
        at = text.find(_NOT)
        refuse(f"it did not converge: {line_at(text, at).strip()[:80]!r}", line_of(text, at))
    if _TIMEOUT in failed:
        cause = "it was stopped by its own time limit, max_seconds"
        refuse(cause, line_of(text, text.find(_TIMEOUT)))
    at = once(text, "JOB DONE.", "the last line, 'JOB DONE.',")
    if text.find("Self-consistent Calculation", at) >= 0:
        refuse("it goes on after 'JOB DONE.'", line_of(text, at))


def _ranks(lines: _Lines) -> tuple[int, int]:
    """Return the number of ranks, and of threads of each."""
    if len(lines["parallel"]) + len(lines["serial"]) + len(lines["alone"]) != 1:
        refuse("the line 'Parallel version' or 'Serial version' is not there once and whole")
    if not lines["parallel"]:
        return 1, count(lines["alone"][0]) if lines["alone"] else 1
    cores = count(lines["cores"][0])
    if "OpenMP" not in lines["parallel"][0]:
        return cores, 1
    if len(lines["processes"]) != 1 or len(lines["threads"]) != 1:
        refuse("what it says of processes and threads is not there once and whole")
    tasks, each = count(lines["processes"][0]), count(lines["threads"][0])
    if tasks * each != cores:
        refuse(f"{cores} processor cores are not {tasks} processes x {each} threads")
    return tasks, each


def _times(lines: _Lines, spent: float) -> tuple[float, float, float]:
    """Return CPU and wall time of the whole, and wall time of the iterations, in seconds.

    `spent` is the longest "total cpu time spent up to now" of an iteration.
    """
    if len(lines["wall"]) != 1 or len(lines["electrons"]) != 1:
        refuse("the clocks PWSCF and electrons are missing, damaged or there twice")
    cpu, wall = _clocks(lines["cpu"][0], lines["wall"][0])
    inside = figure(lines["electrons"][0])
    rough = 60.0 if wall >= 3600 else 0.0
    if not max(inside, spent - 0.1) <= wall + rough + 0.02:
        refuse(f"it took {wall:g} s, less than the {max(inside, spent):g} s of a part of it")
    return cpu, wall, inside


def _clocks(cpu: str, wall: str) -> tuple[float, float]:
    """Return CPU and wall time in seconds.

    Refuses a clock that begins with 0 of a unit, unless the other has the same units: up to 6.2
    both had those that either needed.
    """
    units = [[unit for _, unit in _CLOCK.findall(clock)] for clock in (cpu, wall)]
    for clock in (cpu, wall):
        if _NONE_OF_A_UNIT.match(clock) and units[0] != units[1]:
            refuse(f"a clock shows {clock}")
    return _seconds(cpu), _seconds(wall)


def _seconds(clock: str) -> float:
    """Return the time above zero that a clock shows as days, hours, minutes or seconds."""
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _CLOCK.findall(clock))
    if not seconds > 0:
        refuse(f"a clock shows {clock}")
    return seconds


READER = Reader(
    "qe",
    read,
    marks=("Program PWSCF",),
    heads=(Head("Program PWSCF", indent=5),),
    versions="6.0 to 6.7; 7.4 and 7.5 by parts of outputs that others published",
    proof=(
        "title, clocks and 'JOB DONE.' once, every calculation converged, the iterations as many"
        " as it reports, the whole no shorter than its parts, ranks, atoms and cutoff as asked"
    ),
    means=(
        "iteration: wall time of `electrons` over the number of self-consistent iterations, which"
        " may differ between arms (fact work.qe.iterations), without the exchange of a hybrid"
        " functional; wall: the whole calculation, in minutes from an hour on; clocks of the first"
        " rank; below 10 s the figures are those of noise"
    ),
    dates=(
        date(
            "starts on ",
            r".*starts on +(\d+\w{3}\d{4} at [ \d]\d:[ \d]\d:[ \d]\d)",
            "%d%b%Y at %H:%M:%S",
        ),
    ),
    facts=(of_tool("work.qe.iterations", reason=OTHER_WORK),),
)
