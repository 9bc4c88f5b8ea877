"""What GROMACS' mdrun writes into its log, md.log: at its end, for example,

                 (ns/day)    (hour/ns)
Performance:       12.345        1.944
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from paribus.core import Reading, Scalar
from paribus.readers.dates import CTIME, date
from paribus.readers.figures import count, counts, figure, inverse, near
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, single
from paribus.readers.text import columns, line_of, once, refuse, within

ENDLESS = -1
"""The number of steps that means: until -maxh is over."""

_SIGNAL, _FATAL, _PROGRAM = " signal, stopping ", "\nFatal error:", "\nProgram:  "
_FAILED = (_SIGNAL, _FATAL, _PROGRAM)
_ERROR = re.compile(r"\n(?:Fatal error|Program:  .*\n(?:.+\n)+\n.*):\n(.*)")
"""The message that ends a program; its group is the first line behind the kind of error."""

_APPENDED = "\nRestarting from checkpoint, appending "
_MDRUN = re.compile(r":-\) GROMACS - (?:gmx )?mdrun\w*,")
"""The beginning of the title; a build of mdrun alone has its own name there: mdrun_mpi."""

_TITLE = re.compile(
    rf"{_MDRUN.pattern} (?:VERSION )?(\S+(?: \(double precision\))?) \(-:[ \t]*$", re.M
)
_LINES = re.compile(
    r"\n(?:On (?P<ranks>\d+) MPI ranks?(?P<pp> doing PP)?"
    r"(?:,(?: each)? using (?P<threads>\d+) OpenMP threads)?(?(pp), and)[ \t]*$"
    r"|on (?P<pme>\d+) MPI ranks? doing PME(?:,(?: each)? using \d+ OpenMP threads)?[ \t]*$"
    r"|   nsteps += (?P<steps>-?\d+)[ \t]*$"
    r"|   dt += (?P<dt>\d\S*)[ \t]*$"
    r"|Overriding nsteps with value passed on the command line: (?P<override>-?\d+) steps"
    r"|There are: (?P<atoms>\d+) Atoms[ \t]*$"
    r"|step (?P<reset>\d+): resetting all time and cycle counters[ \t]*$"
    r"|Step (?P<out>\d+): Run time exceeded "
    r"| +#\d+: (?:name: )?(?P<gpus>[^,\n]+), [^\n]*\bstat(?:us)?: "
    r"|[ \t]*Statistics over (?P<done>\d+) steps using \d+ frames[ \t]*$"
    r"|       Time: +(?P<core>\d+\.\d{3}) +(?P<wall>\d+\.\d{3}) +(?P<share>\d+\.\d)[ \t]*$"
    r"| +\(ns/day\) +\(hour/ns\)[ \t]*\nPerformance: +(?P<speed>\d+\.\d{3})"
    r" +(?P<hours>\d+\.\d{3})[ \t]*$)",
    re.M,
)
_STARTED = re.compile(r"\nStarted (.{1,80}) on rank 0 ")
_END = re.compile(r"Finished mdrun on rank 0 \w+ \w+ +\d+ [\d:]+ \d{4}[ \t]*$", re.M)


def read(text: str) -> Reading:
    """Return speed and wall time of a simulation that came to its end.

    Without the wall time where the input asked for steps without an end: -maxh set it then.
    """
    begin = _title(text)
    failed = within(_FAILED, text)
    if _SIGNAL in failed:
        at = text.find(_SIGNAL)
        refuse("mdrun was ended by a signal before its last step", line_of(text, at))
    if failed and (error := _ERROR.search(text)):
        refuse(f"GROMACS says: {error[1][:160]!r}", line_of(text, error.start(1)))
    lines = columns(text, _LINES)
    title = _TITLE.match(text, begin) if begin >= 0 else None
    if title is None or len(lines["ranks"]) != 1:
        _refuse_other(text)
    if len(lines["pp"]) != len(lines["pme"]):
        refuse("of the lines on ranks 'doing PP' and 'doing PME' one is missing or damaged")
    end = once(text, "Finished mdrun", "the last line, 'Finished mdrun on rank 0',")
    if _END.match(text, end) is None:
        refuse("the last line, 'Finished mdrun on rank 0', is damaged")
    if not len(lines["speed"]) == len(lines["wall"]) == 1 or text.count("Performance:") != 1:
        refuse("the lines 'Time:' and 'Performance:' are missing, damaged or there twice")
    ns_per_day, wall = _times(lines)
    parameters = _parameters(lines, ns_per_day, wall)
    samples = single(ns_per_day=ns_per_day)
    if parameters["steps"] != ENDLESS:
        samples += single(wall=wall)
    tasks = sum(counts(lines["ranks"] + lines["pme"]))
    facts = {"gpu.models": sorted({*lines["gpus"]})} if lines["gpus"] else {}
    return Reading("gromacs", title[1], parameters, tasks, samples, facts)


def _title(text: str) -> int:
    """Return where the title is, -1 if it is not there; refuses two of them."""
    titles = [one.start() for one in _MDRUN.finditer(text)]
    if not titles:
        return -1
    if _APPENDED in text:
        at = text.find(_APPENDED)
        cause = "the simulation was continued from a checkpoint: only its last part is timed"
        refuse(cause, line_of(text, at))
    if len(titles) > 1:
        cause = "the title of mdrun's log is there twice: two outputs in one"
        refuse(cause, line_of(text, titles[1]), alone=True)
    return titles[0]


def _refuse_other(text: str) -> NoReturn:
    """Refuse a log without an account of time, and say what it is if that can be seen."""
    started = _STARTED.search(text)
    if started and started[1] != "mdrun":
        refuse(f"{started[1]} makes no steps in time: there are no ns/day", form=True)
    if "\nstarting mdrun '" in text:
        cause = "this is what mdrun prints on the terminal; what is read is its log, md.log"
        refuse(cause, form=True)
    if "\nFinished mdrun" not in text:
        refuse("the simulation did not come to its end: the account of time is missing")
    refuse("title or 'On N MPI ranks' are missing, damaged or there twice")


def _times(lines: Mapping[str, Sequence[str]]) -> tuple[float, float]:
    """Return ns/day and wall time; refuses figures that contradict each other."""
    keys = ("speed", "hours", "core", "wall", "share")
    ns_per_day, hours, core, wall, share = (figure(lines[key][0]) for key in keys)
    if not inverse(ns_per_day, hours):
        refuse(f"{ns_per_day} ns/day are not {hours} hour/ns")
    if not near(core, wall * share / 100, 0.01):
        refuse(f"{core} s of cores are not {share} % of {wall} s")
    return ns_per_day, wall


def _parameters(
    lines: Mapping[str, Sequence[str]], ns_per_day: float, wall: float
) -> dict[str, Scalar]:
    """Return threads, steps and atoms; refuses steps other than those of statistics and time."""
    for key in ("steps", "atoms", "dt"):
        if len(lines[key]) != 1:
            refuse(f"what it says of {key} is there {len(lines[key])} times, not once")
    (atoms,), dt = counts(lines["atoms"]), figure(lines["dt"][0])
    word = [*lines["steps"], *lines["override"]][-1]
    steps = ENDLESS if word == str(ENDLESS) else count(word)
    if not steps:
        refuse("0 steps were to be made: nothing is timed")
    done = count(lines["done"][0]) if len(lines["done"]) == 1 else None
    if steps == ENDLESS:
        if done is None or len(lines["out"]) != 1:
            refuse("what it says of the steps made, and that -maxh ended them, is not there once")
    elif done not in (None, steps, steps + 1):
        why = ": its time, -maxh, ran out" if lines["out"] else ""
        refuse(f"{steps} steps were to be made, {done} were{why}")
    # The counters hold the step at which they were reset as well, and three decimals.
    timed = (steps + 1 if done is None else done) - sum(counts(lines["reset"][-1:]))
    counted = ns_per_day * wall / (86.4 * dt)
    if not abs(counted - timed) <= 2 + counted * (6e-4 / ns_per_day + 6e-4 / wall + 1e-3):
        made = f"{ns_per_day} ns/day in {wall} s are {counted:.0f} steps of {dt} ps"
        refuse(f"{made}, not {timed}: is it a rerun, or a part of a simulation?")
    (threads,) = counts(lines["threads"]) or [1]
    return {"threads": threads, "steps": steps, "atoms": atoms}


READER = Reader(
    "gromacs",
    read,
    marks=(":-) GROMACS - gmx mdrun", ":-) GROMACS - mdrun"),
    heads=(Head(":-) GROMACS - ", _MDRUN.pattern, above="Log file opened on .*", indent=None),),
    versions="2018 to 2022.5; 2023.3 and 2025 by parts of logs that others published",
    proof=(
        "title once, 'Finished mdrun', no signal and no fatal error, ns/day x hour/ns = 24, the"
        " steps made are those of the input, times their length they are ns/day x wall time, ranks,"
        " threads and steps as asked"
    ),
    means=(
        "from the start of the first step, tuning of PME included unless the counters are reset"
        " (-resethway); of an input without an end (-nsteps -1 -maxh) ns/day alone; ranks include"
        " those of PME, threads are those of the others; the column (%) counts ranks, it stays at"
        " 200 % for two ranks that share a core: it shows nothing about contamination"
    ),
    dates=(
        date("Log file opened", rf"Log file opened on {CTIME}"),
        date("Started mdrun", rf"Started mdrun on rank 0 {CTIME}"),
    ),
)
