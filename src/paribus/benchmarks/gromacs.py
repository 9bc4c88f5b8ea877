"""GROMACS mdrun: what it writes into its log, md.log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from paribus.benchmarks._apps import absolute, columns, counts, near
from paribus.benchmarks._parameters import positive, threads, wanted_threads
from paribus.benchmarks._phrases import Phrases
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, path_or, refuse, tool
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

_SIGNAL, _FATAL = " signal, stopping ", "\nFatal error:"
_FAILED = Phrases((_SIGNAL, _FATAL))
_BEGIN = ":-) GROMACS - gmx mdrun,"
_TITLE = re.compile(r":-\) GROMACS - gmx mdrun, (?:VERSION )?(\S+) \(-:[ \t]*$", re.M)
_LINES = re.compile(
    r"\n(?:On (?P<ranks>\d+) MPI ranks?(?:, each using (?P<threads>\d+) OpenMP threads)?"
    r"(?: doing .*, and)?[ \t]*$"
    r"|on (?P<pme>\d+) MPI ranks?(?:, each using \d+ OpenMP threads)? doing PME[ \t]*$"
    r"|   nsteps += (?P<steps>\d+)[ \t]*$"
    r"|Overriding nsteps with value passed on the command line: (?P<override>\d+) steps"
    r"|There are: (?P<atoms>\d+) Atoms[ \t]*$"
    r"|[ \t]*Statistics over (?P<done>\d+) steps using \d+ frames[ \t]*$"
    r"|       Time: +(?P<core>\d+\.\d{3}) +(?P<wall>\d+\.\d{3}) +(?P<share>\d+\.\d)[ \t]*$"
    r"| +\(ns/day\) +\(hour/ns\)[ \t]*\nPerformance: +(?P<speed>\d+\.\d{3})"
    r" +(?P<hours>\d+\.\d{3})[ \t]*$)",
    re.M,
)
_END = re.compile(r"Finished mdrun on rank 0 \w+ \w+ +\d+ [\d:]+ \d{4}[ \t]*$", re.M)


def command(request: Request) -> Program:
    """Return the command line; the log that it writes is read."""
    asked = request.parameters
    argv = [path_or(request, "gmx_mpi"), "-quiet", "mdrun", "-g", "md.log", "-noconfout"]
    argv += ["-s", str(asked["input"]), "-ntomp", str(asked["threads"])]
    if asked.get("steps"):
        argv += ["-nsteps", str(asked["steps"])]
    needs = (str(asked["input"]),)
    return Program(tuple(argv), outputs=("md.log",), threads=wanted_threads(asked), needs=needs)


def read(text: str) -> Reading:
    """Return speed and wall time of a simulation that came to its end."""
    begin = once(text, _BEGIN, "the title of mdrun's log") if _BEGIN in text else -1
    failed = _FAILED.within(text)
    if _SIGNAL in failed:
        at = text.find(_SIGNAL)
        refuse("mdrun was ended by a signal before its last step", line_of(text, at))
    if _FATAL in failed:
        at = text.find(_FATAL) + 1
        why = line_at(text, text.find("\n", at) + 1)
        refuse(f"GROMACS says: {why[:160]!r}", line_of(text, at))
    said = columns(text, _LINES)
    title = _TITLE.match(text, begin) if begin >= 0 else None
    if title is None or len(said["ranks"]) != 1:
        refuse("title or 'On N MPI ranks' are missing, damaged or there twice")
    end = once(text, "Finished mdrun", "the last line, 'Finished mdrun on rank 0',")
    if _END.match(text, end) is None:
        refuse("the last line, 'Finished mdrun on rank 0', is damaged")
    if not len(said["speed"]) == len(said["wall"]) == 1 or text.count("Performance:") != 1:
        refuse("the lines 'Time:' and 'Performance:' are missing, damaged or there twice")
    ns_per_day, wall = _times(said)
    samples = (
        Sample("ns_per_day", Case(), (ns_per_day,)),
        Sample("wall", Case(), (wall,)),
    )
    tasks = sum(counts(said["ranks"] + said["pme"]))
    return Reading("gromacs", title[1], _parameters(said), tasks, samples)


def _times(said: Mapping[str, Sequence[str]]) -> tuple[float, float]:
    """Return ns/day and wall time; refuses figures that contradict each other."""
    keys = ("speed", "hours", "core", "wall", "share")
    ns_per_day, hours, core, wall, share = (figure(said[key][0]) for key in keys)
    if not near(ns_per_day * hours, 24, 0.002 + 6e-4 / hours):
        refuse(f"{ns_per_day} ns/day are not {hours} hour/ns")
    if not near(core, wall * share / 100, 0.01):
        refuse(f"{core} s of cores are not {share} % of {wall} s")
    return ns_per_day, wall


def _parameters(said: Mapping[str, Sequence[str]]) -> dict[str, Scalar]:
    """Return threads, steps and atoms; refuses steps other than those of the statistics."""
    for key in ("steps", "atoms"):
        if len(said[key]) != 1:
            refuse(f"what it says of {key} is there {len(said[key])} times, not once")
    (steps,), (atoms,) = counts(said["steps"]), counts(said["atoms"])
    if said["override"]:
        steps = count(said["override"][-1])
    if len(said["done"]) == 1 and int(said["done"][0]) not in (steps, steps + 1):
        refuse(f"{steps} steps were to be made, {said['done'][0]} were")
    (threads,) = counts(said["threads"]) or [1]
    return {"threads": threads, "steps": steps, "atoms": atoms}


BENCHMARK = tool(
    "gromacs",
    layer="application",
    summary="GROMACS mdrun: molecular dynamics of a run input file of your own",
    metrics=(Metric("ns_per_day", "ns/day", "higher"), Metric("wall", "s", "lower")),
    reader=read,
    marks=(":-) GROMACS - gmx mdrun",),
    command=command,
    parameters={
        "input": Parameter(
            None, absolute, "the run input file (.tpr), as an absolute path", required=True
        ),
        "steps": Parameter(None, positive, "-nsteps: time steps, instead of the input's"),
        "threads": Parameter(1, threads, '-ntomp: OpenMP threads of each rank, or "all"'),
    },
    program="gmx_mpi",
    get="apt install gromacs; https://www.gromacs.org",
    versions="2018 to 2022.5",
    proof=(
        "title once, 'Finished mdrun', no signal and no fatal error, ns/day x hour/ns = 24, the"
        " steps made are those of the input, ranks, threads and steps as asked"
    ),
    means=(
        "from the start of the first step, tuning of PME included unless the counters are reset"
        " (-resethway); the column (%) counts ranks, it stays at 200 % for two ranks that share a"
        " core: it tells nothing of contamination"
    ),
)
