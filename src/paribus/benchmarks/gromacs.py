"""GROMACS mdrun: what it writes into its log, md.log."""

from __future__ import annotations

import re

from paribus.benchmarks._apps import absolute, found, near
from paribus.benchmarks._parameters import positive, threads, wanted_threads
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, path_or, refuse, tool
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

_TITLE = re.compile(r":-\) GROMACS - gmx mdrun, (?:VERSION )?(\S+) \(-:[ \t]*$", re.M)
_RANKS = re.compile(
    r"On (\d+) MPI ranks?(?:, each using (\d+) OpenMP threads)?(?: doing .*, and)?[ \t]*$", re.M
)
_PME = re.compile(r"on (\d+) MPI ranks?(?:, each using \d+ OpenMP threads)? doing PME[ \t]*$", re.M)
_WORK = (
    ("steps", "   nsteps  ", re.compile(r"   nsteps += (\d+)[ \t]*$", re.M)),
    ("atoms", "There are: ", re.compile(r"There are: (\d+) Atoms[ \t]*$", re.M)),
)
_OVERRIDE = re.compile(
    r"Overriding nsteps with value passed on the command line: (\d+) steps", re.M
)
_DONE = re.compile(r"[ \t]*Statistics over (\d+) steps using (\d+) frames[ \t]*$", re.M)
_TIME = re.compile(r"       Time: +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+\.\d)[ \t]*$", re.M)
_SPEED = re.compile(
    r" +\(ns/day\) +\(hour/ns\)[ \t]*\nPerformance: +(\d+\.\d{3}) +(\d+\.\d{3})[ \t]*$", re.M
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
    if (at := text.find(" signal, stopping ")) >= 0:
        refuse("mdrun was ended by a signal before its last step", line_of(text, at))
    if (at := text.find("\nFatal error:")) >= 0:
        why = line_at(text, text.find("\n", at + 1) + 1)
        refuse(f"GROMACS says: {why[:160]!r}", line_of(text, at + 1))
    title = _TITLE.match(text, once(text, ":-) GROMACS - gmx mdrun,", "the title of mdrun's log"))
    ranks = found(text, "On ", _RANKS)
    if title is None or len(ranks) != 1:
        refuse("title or 'On N MPI ranks' are missing, damaged or there twice")
    threads = count(ranks[0][2] or "1")
    tasks = count(ranks[0][1]) + sum(int(m[1]) for m in found(text, " doing PME", _PME))
    end = once(text, "Finished mdrun", "the last line, 'Finished mdrun on rank 0',")
    if _END.match(text, end) is None:
        refuse("the last line, 'Finished mdrun on rank 0', is damaged")
    speeds, times = found(text, "(ns/day)", _SPEED), found(text, "       Time:", _TIME)
    done = found(text, "Statistics over", _DONE)
    if not len(speeds) == len(times) == 1 or text.count("Performance:") != 1:
        refuse("the lines 'Time:' and 'Performance:' are missing, damaged or there twice")
    ns_per_day, hours = map(figure, speeds[0].groups())
    if not near(ns_per_day * hours, 24, 0.002 + 6e-4 / hours):
        refuse(f"{speeds[0][1]} ns/day are not {speeds[0][2]} hour/ns")
    core, wall, share = map(figure, times[0].groups())
    if not near(core, wall * share / 100, 0.01):
        refuse(f"{times[0][1]} s of cores are not {times[0][3]} % of {times[0][2]} s")
    parameters: dict[str, Scalar] = {"threads": threads}
    for key, mark, pattern in _WORK:
        if len(said := found(text, mark, pattern)) != 1:
            refuse(f"what it says of {key} is there {len(said)} times, not once")
        parameters[key] = count(said[0][1])
    if override := found(text, "Overriding nsteps", _OVERRIDE):
        parameters["steps"] = count(override[-1][1])
    if len(done) == 1 and int(done[0][1]) not in (
        parameters["steps"],
        int(parameters["steps"]) + 1,
    ):
        refuse(f"{parameters['steps']} steps were to be made, {done[0][1]} were")
    samples = (
        Sample("ns_per_day", Case(), (ns_per_day,)),
        Sample("wall", Case(), (wall,)),
    )
    return Reading("gromacs", title[1], parameters, tasks, samples)


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
