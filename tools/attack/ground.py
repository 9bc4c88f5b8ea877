"""What all attacks share: the victim's program, a warm cache, how long a calm study takes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PARIBUS = Path(sys.executable).with_name("paribus")

BENCHMARK = """
from paribus.core.errors import ParseError
from paribus.core.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Sample

def command(request):
    return Program(("sh", "work.sh"), mpi=False, files={"work.sh": request.parameters["script"]})

def parse(text, request):
    lines = text.split()
    if not lines or lines[-1] != "end" or len(lines) < 2:
        raise ParseError(f"expected a number and 'end', got {text[:40]!r}", line=1)
    return Parsed((Sample("time", Case(), (float(lines[-2]),)),))

BENCHMARK = Benchmark(
    "shell", "shell", "prints what its script prints", (Metric("time", "us", "lower"),),
    command, parse, {"script": Parameter("echo 2 end", str, "what sh executes")}, ranks=1,
)
"""
NOISE = "sleep 0.01; echo $((PARIBUS_SEED % 1000 + 1)) end"
"""Prints figures that follow from the launch's seed, too noisy for any verdict but undecided."""

MPI_STUDY = """\
question = "Which?"
factor = "transport"
[arms.shm]
transport = "shm"
[arms.tcp]
transport = "tcp"
[[benchmarks]]
name = "latency"
bytes = ["8 B"]
[plan]
seed = 1
blocks = 8
"""


@dataclass(frozen=True, slots=True)
class Ground:
    """The common ground: `root` holds everything; `calm_s` is how long an attacked study takes.

    `sample` is the directory of a study that nobody attacked. `mpi_s` is about how long an MPI
    study takes, 0 where there is no MPI.
    """

    root: Path
    cache: Path
    sample: Path
    calm_s: float
    mpi_s: float


def write_study(
    folder: Path,
    *,
    script: str = NOISE,
    arms: str = "[arms.a]\n[arms.b]\n",
    plan: str = "blocks = 8",
    more: str = "",
) -> Path:
    """Write a study of one benchmark that is a shell script; returns the study file."""
    (folder / "shell.py").write_text(BENCHMARK)
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "nothing"\n{arms}\n[[benchmarks]]\nfile = "shell.py"\n'
        f"script = '''{script}'''\n{more}\n[plan]\nseed = 1\n{plan}\n"
    )
    return path


def environment(folder: Path, cache: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a victim that lives in `folder`."""
    return {
        **{k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XDG_STATE_HOME")},
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "t"),
        "PARIBUS_CACHE": str(cache),
        **more,
    }


def prepare(root: Path, *, mpi: bool) -> Ground:
    """Return the ground, made by calm studies: one of a shell script, with `mpi` one of MPI.

    Raises SystemExit when Paribus does not work even in peace.
    """
    folder, cache = root / "calm", root / "cache"
    for one in (folder, folder / "t", folder / "home", cache):
        one.mkdir()
    study = write_study(folder)
    out = folder / "sample"
    code, calm_s, said = _timed(folder, cache, study, out)
    if code != 0:
        raise SystemExit(f"a study that nobody attacks ends with {code}: {said}")
    if not mpi:
        return Ground(root, cache, out, calm_s, 0.0)
    study = folder / "mpi.toml"
    study.write_text(MPI_STUDY)
    code, warm_s, said = _timed(folder, cache, study, folder / "warm")
    if code not in (0, 3):
        print(f"no attacks on MPI launches: {said.splitlines()[-1:]}", file=sys.stderr)
        return Ground(root, cache, out, calm_s, 0.0)
    # About half of that was spent in the compiler.
    return Ground(root, cache, out, calm_s, warm_s / 2)


def _timed(folder: Path, cache: Path, study: Path, out: Path) -> tuple[int, float, str]:
    begin = time.monotonic()
    done = subprocess.run(
        [PARIBUS, "run", study, "--out", out],
        cwd=folder,
        env=environment(folder, cache, {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return done.returncode, time.monotonic() - begin, done.stderr
