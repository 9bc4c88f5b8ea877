"""What LAMMPS prints of its runs (stdout or log.lammps): thermo output, then for each run

Loop time of 9.87654 on 2 procs for 2500 steps with 32000 atoms
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from paribus.core import Case, ParseError, Reading, Sample, Scalar
from paribus.readers.figures import count, figure, inverse, near
from paribus.readers.heads import Head
from paribus.readers.reader import Reader, Work, single, work_of
from paribus.readers.text import line_at, line_of, once, refuse
from paribus.readers.units import TEN

_CLOCKS = {"Step", "CPU", "CPULeft", "T/CPU", "S/CPU", "Elapsed", "Elaplong", "Part", "Time"}
"""Columns of thermo output that are no physical quantities."""

_NUMBER = re.compile(r"[-+]?(?:[\d.]+(?:e[-+]?\d+)?|nan|inf)", re.I)
_PAIR = re.compile(r"(\S{1,64}) += +(\S+)")


def last_thermo(text: str, start: int, end: int) -> dict[str, float]:
    """Return the physical quantities in the last row of a run's thermo output, {} if there is none.

    Two arms that did the same work agree in them. Raises ParseError if one is nan or inf.
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
    """Return the names of a table and the cells of its last row; [] for what is not there.

    It is searched from the end, because it may have a million rows. Its first line, after `start`,
    shows its form: `thermo_modify line` knows three.
    """
    head = line_at(text, start + 1)
    if head.startswith("---"):
        return (_last_yaml if head.strip() == "---" else _last_multi)(text, start, end)
    names: list[str] = []
    at = end
    while names[:1] != ["Step"]:
        if (at := text.rfind("Step", start, at)) < 0:
            names = head.split()
            break
        names = line_at(text, at).split()
    row: list[str] = []
    while (begin := text.rfind("\n", at if at >= 0 else start + 1, end)) >= 0:
        row, end = text[begin + 1 : end].split(), begin
        if len(row) == len(names) and (row[0].isdigit() or (at < 0 and _NUMBER.fullmatch(row[0]))):
            return names, row
    return names, []


def _last_multi(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return names and values below the last line of dashes, each written NAME = VALUE."""
    begin = text.find("\n", max(start, text.rfind("- Step ", start, end)) + 1)
    pairs = _PAIR.findall(text, begin, end)
    return [name for name, _ in pairs], [value for _, value in pairs]


def _last_yaml(text: str, start: int, end: int) -> tuple[list[str], list[str]]:
    """Return names and last row of a table in YAML: lists with a comma after each element."""
    names, row = text.find("\nkeywords: [", start, end), text.rfind("\n  - [", start, end)
    if min(names, row) < 0:
        return [], []
    lists = (
        line_at(text, at + 1).partition("[")[2].rstrip("] ,").split(",") for at in (names, row)
    )
    named, values = ([word.strip(" '") for word in words] for words in lists)
    return (named, values) if len(named) == len(values) else ([], [])


BUSY = 95.0
"""Percent of the CPU below which the report says that the ranks waited. Undisturbed launches on a
2-core AMD EPYC KVM guest had 99.1 to 99.9, one 1.7 times slower had 77.4 (2026-11-21)."""

_TITLE = re.compile(r"LAMMPS \(([^()\n]+)\)[ \t]*$", re.M)
_LOOPS = re.compile("Loop time of ")
_LOOP = re.compile(
    r"Loop time of (\S+) on (\d+) procs for (\d+) steps with (\d+) atoms[ \t]*$", re.M
)
_SPEED = re.compile(
    r"Performance: (?:(?:(\d+\.\d+) ([nf])s/day, (\d+\.\d+) hours/[nf]s|\S+ tau/day), )?"
    r"(\d+\.\d+) timesteps/s(?:, (\S+) ([kMG]?)atom-step/s)?[ \t]*$",
    re.M,
)
_CPU = re.compile(
    r"(?<!\d)(\d+\.\d)% CPU use with (\d+) MPI tasks x (\d+|no) OpenMP threads[ \t]*$", re.M
)
_WALL = re.compile(r"Total wall time: (\d+):([0-5]\d):([0-5]\d)[ \t]*$", re.M)
_BEGIN = re.compile(r"\n(?:Per MPI rank memory allocation|Memory usage per processor|(ERROR))")
_CUT = ("WARNING: Lost atoms:", "Wall time limit reached", "Fix halt condition ")
"""Messages of a run that did less than it was asked for."""

SAME_TRAJECTORY = 0.01
"""Relative difference up to which figures of the work count as the same, at least: atoms that
differ in the last bit move apart within some hundred steps. Temperatures of N atoms then scatter by
sqrt(2 / 3N) of themselves (Allen and Tildesley, Computer Simulation of Liquids), so that two of the
same work differ by less than 10 / sqrt(3N), five times their standard deviation: 3.2 % for 32,000
atoms. Two process grids of two ranks differed there by 0.5 % in temperature and 0.1 % in energy
after 2,500 steps, and with 2,048 atoms by 1.7 and 0.3 % after 10,000 (in.lj, 2026-11-21)."""

_SCATTERING = re.compile(r"P(ress|[xyz]{2})|[cfv]_.*")
"""Thermo output that does not show the work: pressures, which scatter around a value that may be
zero (4 and 22 % in the same launches), and what an input computes by itself."""


def read(text: str) -> Reading:
    """Return time and speed of every run that the input asked for, minimisations left out."""
    title = _TITLE.match(text, once(text, "LAMMPS (", "the line LAMMPS (VERSION)"))
    if title is None:
        refuse("expected LAMMPS (VERSION), got something else")
    runs = _runs(text)
    if not runs and "\nLoop time of " in text:
        refuse("nothing in it is timed: it has minimisations and runs of 0 steps only")
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
        every = (run.samples(Case.of(run=n)) for n, run in enumerate(runs, 1))
        samples = tuple(chain.from_iterable(every))
    guards = [
        f"its ranks had {run.busy} % of the CPU during a run of {run.loop:g} s: they waited for a"
        " core, a GPU, or input and output"
        for run in runs
        if run.busy < BUSY * run.threads
    ]
    for less in _CUT:
        if (at := text.find(less)) >= 0:
            guards.append(f"it says {line_at(text, at)[:160]!r}: it did less than was asked for")
    facts = {f"work.lammps.{name}": value for name, value in runs[-1].thermo.items()}
    ranks = first.tasks
    return Reading("lammps", title[1], parameters, ranks, samples, facts, tuple(guards))


class _Run(NamedTuple):
    """One `run` command: `loop` in s, `rate` in timesteps/s, `busy` in percent of the CPU."""

    loop: float
    rate: float
    ns_per_day: float | None
    steps: int
    atoms: int
    tasks: int
    threads: int
    busy: float
    thermo: Mapping[str, float]

    def samples(self, case: Case) -> tuple[Sample, ...]:
        """Return the run's figures as samples at `case`."""
        atom_rate = self.steps * self.atoms / self.loop / 1e6
        # Of a slow run the printed figure, with three decimals, has too few digits.
        rate = self.rate if self.rate >= 1 else self.steps / self.loop
        found = single(case, loop=self.loop, rate=rate, atom_rate=atom_rate)
        return found + (single(case, ns_per_day=self.ns_per_day) if self.ns_per_day else ())


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
        hidden = "'pre no' and 'timer off' hide some"
        refuse(f"runs begun: {len(starts)}, ended: {len(ends)} ({hidden})")
    if not ends and (at := text.find("\nRunning on ")) >= 0:
        cause = f"{line_at(text, at + 1)[:80]!r}: the log of each partition is what is read"
        refuse(cause, line_of(text, at + 1))
    runs: list[_Run] = []
    for start, at, until in zip(starts, ends, [*starts, len(text)][1:], strict=True):
        try:
            loop = _LOOP.match(text, at)
            if loop is None or not start < at < until:
                refuse("expected 'Loop time of T on P procs for N steps with A atoms'")
            below = text[loop.end() : until]
            if loop[3] == "0":
                _check_empty(text, loop, until)
            elif at != ends[-1] and not ("Performance:" in below or "% CPU use" in below):
                continue  # `post no`: a warm-up
            elif text.find("\nMinimization stats:", at, until) < 0:
                runs.append(_run(text, start, loop, until))
        except ParseError as error:
            refuse(error.cause, line_of(text, at))
    return runs


def _run(text: str, start: int, loop: re.Match[str], end: int) -> _Run:
    """Return the run of a match of _LOOP; it begins at `start`, and its text ends at `end`."""
    speed = _SPEED.search(text, loop.end(), end)
    if speed is None:
        refuse("the loop's line 'Performance:' is missing or damaged (a rerun has none)")
    tasks, threads, busy = _ranks(text, loop, end)
    seconds, (steps, atoms) = figure(loop[1]), map(count, loop.group(3, 4))
    rate = float(speed[4])
    # timesteps/s has three decimals: in slow runs those are what limits it.
    if not abs(rate * seconds - steps) <= 1e-4 * steps + 6e-4 * seconds:
        refuse(f"{steps} steps in {loop[1]} s are not {speed[4]} timesteps/s")
    if speed[5]:
        printed = figure(speed[5]) * TEN[speed[6]]
        if not near(printed, steps * atoms / seconds, 1e-3):
            refuse(f"{speed[5]} {speed[6]}atom-step/s do not fit steps, atoms and time")
    ns_per_day = _ns_per_day(speed) if speed[1] else None
    thermo = last_thermo(text, start, loop.start())
    return _Run(seconds, rate, ns_per_day, steps, atoms, tasks, threads, busy, thermo)


def _ns_per_day(speed: re.Match[str]) -> float:
    """Return ns/day, from that of the two printed figures which has more digits."""
    per_day, hours = float(speed[1]), float(speed[3])
    if not inverse(per_day, hours):
        refuse(f"{speed[1]} {speed[2]}s/day are not {speed[3]} hours/{speed[2]}s")
    return (per_day if per_day >= 0.1 else 24 / hours) * (1e-6 if speed[2] == "f" else 1)


def _ranks(text: str, loop: re.Match[str], end: int) -> tuple[int, int, float]:
    """Return MPI tasks, threads of each, and percent of the CPU, of a match of _LOOP."""
    busy = text.find("% CPU use with ", loop.end(), end)
    cpu = _CPU.search(text, text.rfind("\n", 0, busy), end) if busy >= 0 else None
    if cpu is None:
        refuse("the loop's line '% CPU use' is missing or damaged")
    tasks, threads = count(cpu[2]), 1 if cpu[3] == "no" else count(cpu[3])
    if not tasks or tasks * threads != count(loop[2]):
        refuse(f"{loop[2]} procs are not {cpu[2]} tasks x {cpu[3]} threads")
    return tasks, threads, float(cpu[1])


def _check_empty(text: str, loop: re.Match[str], end: int) -> None:
    """Refuse a run of 0 steps, which times nothing, if its end is not that of such a run."""
    if text.find("Performance:", loop.end(), end) >= 0:
        refuse("a run of 0 steps has a line 'Performance:'")
    # With `post no` there is nothing below the loop's line.
    if text.find("\nMPI task timing breakdown", loop.end(), end) >= 0:
        _ranks(text, loop, end)


def _work(reading: Reading) -> Work:
    """Return the facts on the work in which two launches of the same work agree, and how well."""
    facts = {
        key: value
        for key, value in work_of(reading).facts.items()
        if not _SCATTERING.fullmatch(key.rpartition(".")[2])
    }
    atoms = int(str(reading.parameters["atoms"]).rpartition("/")[2])  # of the last run
    return Work(facts, max(SAME_TRAJECTORY, 10 / math.sqrt(3 * atoms)))


READER = Reader(
    "lammps",
    read,
    marks=("LAMMPS (",),
    heads=(Head("LAMMPS (", r"LAMMPS \([^()\n]+\)[ \t]*(?=\n|\Z)"),),
    versions="6 Oct 2016 to 22 Jul 2025",
    proof=(
        "title once, as many runs ended as begun, time x timesteps/s = steps, tasks x threads ="
        " procs, steps and atoms as asked, 'Total wall time' at the end, no ERROR, no NaN in the"
        " last row of thermo output"
    ),
    means=(
        "the loop's time, without reading and setting up; minimisations and runs of 0 steps are"
        " left out; the slowest rank decides it; thermo output of the last step is kept as facts,"
        " to see that both arms did the same work; below 10 s the figures are those of noise"
    ),
    work=_work,
)
