"""How far forecasts are off: programs and their replays, measured in turns on pairs of platforms.

    python tools/forecast.py measure FOLDER      # one pair of platforms after the other; an hour
    python tools/forecast.py show                # a table of what is stored, for docs/profile.md

Each pair of platforms is a study: the reference is one node with shared memory and Open MPI, where
the profiles are taken. It measures programs and replays of their calls alike, so the truth of each
case is a ratio of interleaved pairs with its interval. What is measured is added to
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
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.lenses.profiles.prediction import off_by

STORED = Path(__file__).parents[1] / "tests/data/forecasts.json"
BLOCKS = 8

SMALL = """\
units lj
atom_style atomic
lattice fcc 0.8442
region whole block 0 10 0 10 0 10
create_box 1 whole
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
run 300
"""
"""LAMMPS' Lennard-Jones liquid with 4,000 atoms."""

OPEN_MPI = ("tcp", "bridged", "gigabit")
ARMS: Mapping[str, tuple[str, str]] = {
    "tcp": ("transport", 'transport = "tcp"'),
    "gigabit": ("network", 'hosts = "pocket:2"\nranks_per_host = 1\nlink = { rate = "1 Gbit" }'),
    "mpich": ("mpi", 'mpi = "mpich"\ntransport = "shm"'),
    "bridged": (
        "network",
        (
            'transport = "tcp"\nranks_per_host = 1\ncontainer ='
            ' { engine = "namespace", network = "bridge" }'
        ),
    ),
}
"""Platforms: the factor in which each differs from one node with shared memory, and its keys."""


def npb(kernel: str, size: str, samples: int) -> dict[str, Any]:
    """Return a program of NPB, whose samples begin after the third sum over all ranks."""
    argv = [kernel, "--class", size, "--ranks", "2", "--samples", str(samples)]
    table = f'name = "{kernel}"\nclass = "{size}"\nsamples = {samples}'
    return {"kernel": "npb", "argv": argv, "table": table, "loop": "MPI_Allreduce:3-"}


def programs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return programs: how to profile each, its loop, its benchmark, and where it runs."""
    small = folder / "in.small"
    small.write_text(SMALL)
    found = {
        **{f"{k}.S": npb(k, "S", n) for k, n in (("cg", 10), ("is", 60), ("mg", 60), ("ft", 12))},
        **{f"{k}.W": npb(k, "W", n) for k, n in (("cg", 5), ("is", 10), ("mg", 4), ("ft", 4))},
        "lu.S": npb("lu", "S", 8),
        "lu.W": npb("lu", "W", 3),
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
        "argv": ["lmp", *lmp, lj, "-var", "steps", "40"],
        "table": 'name = "lammps"\nsteps = 40',
        "loop": "MPI_Barrier:3-4",
        "on": OPEN_MPI,
    }
    found["lammps.4000"] = {
        "argv": ["lmp", *lmp, str(small)],
        "table": f'name = "lammps"\ninput = "{small}"',
        "loop": "MPI_Barrier:3-4",
        "on": OPEN_MPI,
    }
    return found


def profile(folder: Path, name: str, program: Mapping[str, Any]) -> Path:
    """Return the file of the profile of a program, taken with shared memory if it is not there."""
    path = folder / f"{name}.profile.toml"
    if not path.exists():
        mpi = find_mpi(None, HERE)
        argv = list(program["argv"])
        if "kernel" in program:
            argv.insert(0, str(kernel_path(program["kernel"], mpi, HERE)))
        words = [sys.executable, "-m", "paribus", "profile", "--name", name, "--output", str(path)]
        loop = ["--loop", program["loop"]] if program["loop"] else []
        shared = ["--mca", "btl", "vader,self"] if mpi.family == "openmpi" else []
        launcher = [mpi.mpirun, "--bind-to", "core", "-n", "2", *shared]
        subprocess.run([*words, "--runs", "3", *loop, "--", *launcher, *argv], check=True)
    return path


def measure(folder: Path) -> None:
    """Measure every pair of platforms that is not stored, and store it."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    known = programs(folder)
    for arm, (factor, keys) in ARMS.items():
        for name, program in known.items():
            out = folder / f"{arm}-{name}"
            if arm not in program.get("on", ARMS) or (out / "verdict.json").exists():
                continue
            study = folder / f"{arm}-{name}.toml"
            path = profile(folder, name, program)
            study.write_text(
                f'question = "How long does {name} take?"\nfactor = "{factor}"\n'
                'explains = ["mpi", "transport", "env", "hosts", "container", "rank", "node"]\n'
                f'profile = "{path}"\n[arms.node]\ntransport = "shm"\n[arms.{arm}]\n{keys}\n'
                f'[[benchmarks]]\n{program["table"]}\nlabel = "truth"\nranks = 2\n'
                f"[plan]\nblocks = {BLOCKS}\n"
            )
            words = [sys.executable, "-m", "paribus", "run", str(study), "--out", str(out)]
            done = subprocess.run([*words, "--brief", "--anyway"], check=False)
            print(f"{arm} {name}: exit {done.returncode}", flush=True)
    store(folder)


def store(folder: Path) -> None:
    """Write what the studies in `folder` say to STORED."""
    cases = [one for path in sorted(folder.glob("*/verdict.json")) if (one := case(path))]
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


def holds(one: Mapping[str, Any]) -> bool:
    """Return whether the range of the forecast and the interval of the truth meet."""
    off = off_by(one["replay"][0], one["spread"])
    low, high = one["replay"][1] / off, one["replay"][2] * off
    return bool(low <= one["truth"][2] and one["truth"][1] <= high)


def show() -> None:
    """Print the stored cases as the table of the page, and what they come to."""
    cases = json.loads(STORED.read_text())["cases"]
    print("| platform | program | in MPI | time ratio measured | forecast | error |")
    print("|---|---|---|---|---|---|")
    for one in sorted(cases, key=lambda one: (one["platform"], one["program"])):
        truth, replay = ("{:.2f} [{:.2f}, {:.2f}]".format(*one[key]) for key in ("truth", "replay"))
        place = f"| {one['platform']} | {one['program']} | {1 - one['computing']:.0%} "
        print(f"{place}| {truth} | {replay} | {100 * error(one):+.0f} % |")
    for name, some in (
        ("all", cases),
        ("changed by 5 %", [one for one in cases if abs(math.log(one["truth"][0])) > 0.05]),
    ):
        off = sorted(abs(error(one)) for one in some)
        nothing = median(abs(math.log(one["truth"][0])) for one in some)
        print(
            f"{name}: {len(some)} cases; median error {median(off):.1%}, of no change"
            f" {nothing:.1%}; at most 15 %: {sum(one <= 0.15 for one in off)}; median of what the"
            f" truth is not known by {median(map(unknown, some)):.1%}; ranges that hold"
            f" {sum(map(holds, some))}"
        )


def main() -> None:
    """Measure or show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "store", "show"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path("forecasts"))
    asked = parser.parse_args()
    {"measure": measure, "store": store, "show": lambda _: show()}[asked.what](asked.folder)


if __name__ == "__main__":
    main()
