"""How far forecasts are off: programs and their replays, measured in turns on pairs of platforms.

    python tools/forecast.py measure FOLDER      # three platforms for each program; two hours
    python tools/forecast.py show                # a table of what is stored, for docs/profile.md

Each pair of platforms is a study: the reference is one node with shared memory and Open MPI, where
the profile is taken just before. It measures programs and replays of their calls alike, so the
truth of each case is a ratio of interleaved pairs with its interval. What is measured goes to
tests/data/forecasts.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import fmean, median
from typing import Any

from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.lenses.profiles.prediction import off_by

STORED = Path(__file__).parents[1] / "tests/data/forecasts.json"
MINI = Path(__file__).with_name("forecast.c")
BLOCKS = 8

LIQUID = """\
units lj
atom_style atomic
lattice fcc 0.8442
region whole block 0 {edge} 0 {edge} 0 {edge}
create_box 1 whole
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut {reach}
pair_coeff 1 1 1.0 1.0 {reach}
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
run {steps}
"""
"""LAMMPS' Lennard-Jones liquid of 4 x edge^3 atoms, which act on each other as far as `reach`."""

ALUMINIUM = """\
&control
  calculation = 'scf', prefix = 'aluminium', pseudo_dir = '/usr/share/espresso/pseudo',
  outdir = './out', disk_io = 'none'
/
&system
  ibrav = 2, celldm(1) = 7.65, nat = 1, ntyp = 1, ecutwfc = 30,
  occupations = 'smearing', smearing = 'mv', degauss = 0.05
/
&electrons
  conv_thr = 1.0d-8
/
ATOMIC_SPECIES
Al 26.98 Al.pz-vbc.UPF
ATOMIC_POSITIONS
Al 0.0 0.0 0.0
K_POINTS automatic
6 6 6 0 0 0
"""
"""Quantum ESPRESSO's aluminium, one atom and 28 points."""

OPEN_MPI = ("tcp", "gigabit", "slow", "near")
POCKET = 'hosts = "pocket:2"\nranks_per_host = 1\n'
ARMS: Mapping[str, tuple[str, str]] = {
    "tcp": ("transport", 'transport = "tcp"'),
    "mpich": ("mpi", 'mpi = "MPICH"\ntransport = "shm"'),
    "gigabit": ("network", f'{POCKET}link = {{ rate = "1 Gbit" }}'),
    "intelmpi": ("mpi", 'mpi = "INTELMPI"\ntransport = "shm"'),
    "slow": ("network", f'{POCKET}link = {{ rate = "10 Gbit", delay = "200 us" }}'),
    "near": ("network", f'{POCKET}link = {{ rate = "10 Gbit", delay = "20 us" }}'),
}
"""Platforms: the factor in which each differs from one node with shared memory, and its keys."""


SUMS = {"cg": (3, 1), "ft": (9, 7), "is": (14, 11), "lu": (6, 3), "mg": (4, 2)}
"""Calls of MPI_Allreduce from one sample to the next, and until the time of one is known."""


def npb(kernel: str, size: str, samples: int) -> dict[str, Any]:
    """Return a program of NPB, of which the sixth sample is the loop.

    What is between two samples, setting up and checking, is no part of their times: of IS, class S,
    it takes longer than they do. Three sums over all ranks come before the first one.
    """
    argv = [kernel, "--class", size, "--ranks", "2", "--samples", str(samples)]
    table = f'name = "{kernel}"\nclass = "{size}"\nsamples = {samples}'
    each, timed = SUMS[kernel]
    first = 3 + 5 * each
    loop = f"MPI_Allreduce:{first}-{first + timed}"
    return {"kernel": "npb", "argv": argv, "table": table, "loop": loop}


def programs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return programs: how to profile each, its loop, its benchmark, and where it runs."""
    aluminium = folder / "al.in"
    aluminium.write_text(ALUMINIUM)
    found = {
        **{f"{k}.S": npb(k, "S", n) for k, n in (("cg", 20), ("is", 120), ("mg", 120), ("ft", 24))},
        **{f"{k}.W": npb(k, "W", n) for k, n in (("cg", 8), ("is", 20), ("mg", 10), ("ft", 8))},
        "lu.S": npb("lu", "S", 8),
    }
    cg = ["--nx", "24", "--ny", "24", "--nz", "24", "--sets", "2", "--ranks", "2"]
    found["hpcg"] = {
        "kernel": "conjugate_gradient",
        "argv": cg,
        "table": 'name = "conjugate_gradient"\nnx = 24\nny = 24\nnz = 24\nsets = 2',
        "loop": "MPI_Allreduce:30-713",
    }
    lmp = ["-log", "none", "-in"]
    lj = str(Path(__file__).parents[1] / "src/paribus/benchmarks/inputs/in.lj")
    found["lammps.32000"] = {
        "argv": ["lmp", *lmp, lj, "-var", "steps", "80"],
        "table": 'name = "lammps"\nsteps = 80',
        "loop": "MPI_Barrier:3-4",
        "on": OPEN_MPI,
    }
    for atoms, edge, reach, steps in ((4000, 10, 2.5, 600), (2048, 8, 5.0, 200)):
        deck = folder / f"in.{atoms}"
        deck.write_text(LIQUID.format(edge=edge, reach=reach, steps=steps))
        found[f"lammps.{atoms}"] = {
            "argv": ["lmp", *lmp, str(deck)],
            "table": f'name = "lammps"\ninput = "{deck}"',
            "loop": "MPI_Barrier:3-4",
            "on": OPEN_MPI,
        }
    found["qe"] = {
        "argv": ["pw.x", "-in", str(aluminium)],
        "table": f'name = "qe"\ninput = "{aluminium}"',
        "loop": "",
        "on": OPEN_MPI,
    }
    for name, steps in (("jacobi", 4000), ("train", 200), ("nbody", 600), ("sort", 150)):
        found[name] = {
            "argv": [str(folder / "mini"), name, str(steps)],
            "table": (
                f'name = "command"\nargv = ["{{build}}/mini", "{name}", "{steps}"]\n'
                'regex = \'loop (.*) s\'\nunit = "s"\nbetter = "lower"'
            ),
            "loop": "MPI_Barrier",
            "built": True,
        }
    return found


def profile(path: Path, name: str, program: Mapping[str, Any]) -> None:
    """Write the profile of a program, taken with shared memory."""
    mpi = find_mpi(None, HERE)
    argv = list(program["argv"])
    if "kernel" in program:
        argv.insert(0, str(kernel_path(program["kernel"], mpi, HERE)))
    words = [sys.executable, "-m", "paribus", "profile", "--name", name, "--output", str(path)]
    loop = ["--loop", program["loop"]] if program["loop"] else []
    shared = ["--mca", "btl", "vader,self"] if mpi.family == "openmpi" else []
    launcher = [mpi.mpirun, "--bind-to", "core", "-n", "2", *shared]
    command = [*words, "--runs", "3", *loop, "--", *launcher, *argv]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def met(known: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    """Yield programs and platforms, each program once before any is met again.

    So all programs and platforms are met about equally often, whenever a night ends.
    """
    for step in range(len(ARMS)):
        for at, (name, program) in enumerate(known.items()):
            every = list(program.get("on", ARMS))
            if step < len(every):
                yield name, every[(at + step) % len(every)]


def stored() -> list[dict[str, Any]]:
    """Return the cases that were measured before."""
    cases: list[dict[str, Any]] = json.loads(STORED.read_text())["cases"]
    return cases


def build(prefix: object) -> str:
    """Return the keys of an arm that builds the small programs with the MPI at `prefix`."""
    paths = f"-I{prefix}/include -L{prefix}/lib -Wl,-rpath,{prefix}/lib"
    command = f"{prefix}/bin/mpicc -O2 {paths} -o mini forecast.c -lm"
    return f'\nsource = "{MINI}"\nbuild = "{command}"'


def measure(folder: Path, others: Mapping[str, str]) -> None:
    """Measure every pair of platforms that is not stored, and store it."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    own = Path(find_mpi(None, HERE).mpirun).parents[1]
    known = programs(folder)
    subprocess.run(["mpicc", "-O2", "-o", folder / "mini", MINI, "-lm"], check=True)
    there = {(one["program"], one["platform"]) for one in stored()}
    for name, arm in met(known):
        program = known[name]
        factor, keys = ARMS[arm]
        out = folder / f"{arm}-{name}"
        away = arm in ("mpich", "intelmpi") and arm not in others
        if away or (name, arm) in there or (out / "verdict.json").exists():
            continue
        study = folder / f"{arm}-{name}.toml"
        path = study.with_suffix(".profile.toml")
        profile(path, name, program)
        keys = keys.replace(arm.upper(), others.get(arm, ""))
        node = 'transport = "shm"'
        if program.get("built"):
            keys += build(others.get(arm) or own)
            node += build(own)
        study.write_text(
            f'question = "How long does {name} take?"\nfactor = "{factor}"\n'
            'explains = ["mpi", "transport", "env", "hosts", "rank", "node", "build"]\n'
            f'profile = "{path}"\n[arms.node]\n{node}\n[arms.{arm}]\n{keys}\n'
            f'[[benchmarks]]\n{program["table"]}\nlabel = "truth"\nranks = 2\n'
            f"[plan]\nblocks = {BLOCKS}\n"
        )
        words = [sys.executable, "-m", "paribus", "run", str(study), "--out", str(out)]
        done = subprocess.run([*words, "--brief", "--anyway"], check=False)
        print(f"{arm} {name}: exit {done.returncode}", flush=True)
    store(folder)


def store(folder: Path) -> None:
    """Add what the studies in `folder` say to STORED."""
    new = [one for path in sorted(folder.glob("*/verdict.json")) if (one := case(path))]
    known = stored()
    cases = known + [one for one in new if one not in known]
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}"
    table = {"machine": machine, "date": date.today().isoformat(), "cases": cases}
    STORED.write_text(json.dumps(table, indent=1) + "\n")


def case(path: Path) -> dict[str, Any] | None:
    """Return the case of a study: ratios of times with their intervals, and the forecast."""
    verdict = json.loads(path.read_text())
    heads = {one["benchmark"]: one for one in verdict["headlines"] if one.get("decides", True)}
    ratios = {}
    for label, one in heads.items():
        known = one["comparison"]
        if not known or not known["low"]:
            return None
        ends = [known[key] for key in ("ratio", "low", "high")]
        if one["metric"]["better"] == "higher":
            ends = [1 / ends[0], 1 / ends[2], 1 / ends[1]]
        ratios["truth" if label == "truth" else "replay"] = ends
    asked = next(
        one["parameters"] for one in verdict["study"]["benchmarks"] if one["benchmark"] == "replay"
    )
    arm = verdict["study"]["arms"][1]["name"]
    share = {key: asked[key] for key in ("computing", "spread")}
    return {"program": asked["application"], "platform": arm, **share, **ratios}


def error(one: Mapping[str, Any]) -> float:
    """Return ln forecast - ln truth."""
    return math.log(one["replay"][0] / one["truth"][0])


def unknown(one: Mapping[str, Any]) -> float:
    """Return by how much ln of the truth itself may be off: half of its interval."""
    return math.log(one["truth"][2] / one["truth"][1]) / 2


def holds(one: Mapping[str, Any], factor: float = 1.0) -> bool:
    """Return whether the range of the forecast and the interval of the truth meet.

    What is not known of the forecast counts so many times.
    """
    off = off_by(one["replay"][0], one["spread"]) ** factor
    low, high = one["replay"][1] / off, one["replay"][2] * off
    return bool(low <= one["truth"][2] and one["truth"][1] <= high)


def others(one: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> float:
    """Return the trivial forecast of a case, as ln: the mean of those of all other programs."""
    return fmean(math.log(c["truth"][0]) for c in cases if c["program"] != one["program"])


def held_out(cases: Sequence[Mapping[str, Any]]) -> tuple[int, list[float]]:
    """Return how many ranges hold of programs that did not widen them, and the two widenings.

    Each half of the programs says by what factor the unknown part of a range is to be widened for
    nine of ten of its ranges to hold; it is counted on the other half.
    """
    programs = sorted({one["program"] for one in cases})
    halves = [[c for c in cases if c["program"] in programs[at::2]] for at in (0, 1)]
    factors = []
    for half in halves:
        steps = (step / 10 for step in range(101))
        factors.append(next(f for f in steps if sum(holds(c, f) for c in half) >= 0.9 * len(half)))
    return sum(holds(c, f) for f, h in zip(factors, halves[::-1], strict=True) for c in h), factors


def show() -> None:
    """Print the stored cases as tables for the page, and what they come to."""
    cases = stored()
    print("| platform | program | in MPI | time ratio measured | forecast | error |")
    print("|---|---|---|---|---|---|")
    for one in sorted(cases, key=lambda one: (one["platform"], one["program"])):
        truth, replay = ("{:.2f} [{:.2f}, {:.2f}]".format(*one[key]) for key in ("truth", "replay"))
        place = f"| {one['platform']} | {one['program']} | {1 - one['computing']:.0%} "
        print(f"{place}| {truth} | {replay} | {100 * error(one):+.0f} % |")
    print("| cases | number | error | of no change | of the others' mean | truth known to | hold |")
    print("|---|---|---|---|---|---|---|")
    for key in ("platform", "program"):
        for name in sorted({one[key] for one in cases}):
            summary(name, [one for one in cases if one[key] == name], cases)
    summary("all", cases, cases)
    changed = [one for one in cases if abs(math.log(one["truth"][0])) > 0.05]
    summary("changed by 5 %", changed, cases)
    summary("and known to 3 %", [one for one in changed if unknown(one) <= 0.03], cases)
    summary("and known to 10 %", [one for one in changed if unknown(one) <= 0.10], cases)
    print("on programs that did not widen them {} hold, by {}".format(*held_out(cases)))


def summary(
    name: str, some: Sequence[Mapping[str, Any]], cases: Sequence[Mapping[str, Any]]
) -> None:
    """Print what some cases come to: medians of errors, of trivial ones, and ranges that hold."""
    if not some:
        return
    off = [abs(error(one)) for one in some]
    nothing = [abs(math.log(one["truth"][0])) for one in some]
    mean = [abs(others(one, cases) - math.log(one["truth"][0])) for one in some]
    medians = (f"{median(each):.1%}" for each in (off, nothing, mean, [*map(unknown, some)]))
    within = sum(one <= 0.15 for one in off)
    held = sum(map(holds, some))
    print(f"| {name} | {len(some)}, {within} within 15 % | {' | '.join(medians)} | {held} |")


def main() -> None:
    """Measure or show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "store", "show"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path("forecasts"))
    for family in ("mpich", "intelmpi"):
        parser.add_argument(f"--{family}", metavar="PREFIX", required=False, help="where it is")
    asked = parser.parse_args()
    others = {"mpich": asked.mpich, "intelmpi": asked.intelmpi}
    if asked.what == "measure":
        measure(asked.folder, {name: path for name, path in others.items() if path})
    elif asked.what == "store":
        store(asked.folder)
    else:
        show()


if __name__ == "__main__":
    main()
