"""Small real studies for tests: programs of a few milliseconds, started like any other."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

STEADY = """
from paribus.errors import ParseError
from paribus.model import (Benchmark, Case, Metric, Parameter, Parsed, Program, Sample)

def command(request):
    return Program(("/bin/sh", "-c", request.parameters["script"], "{mark}"), mpi=False)

def parse(text, request):
    lines = text.split()
    if len(lines) != 1:
        raise ParseError(f"expected one number, got {{text[:40]!r}}", line=1)
    return Parsed((Sample("time", Case(), (float(lines[0]),)),))

BENCHMARK = Benchmark(
    "steady", "shell", "prints what its script prints", (Metric("time", "us", "lower"),),
    command, parse,
    {{"script": Parameter("echo 2.50013", str, "what sh executes")}}, ranks=1,
)
"""
"""A benchmark from outside; {mark} tells its processes from all others."""

RANDOM = "sleep 0.01; echo $(($(od -An -N2 -tu2 /dev/urandom) + 1))"
"""A script whose figures are so noisy that no look ever decides."""


def write_study(
    folder: Path,
    *,
    script: str = "echo 2.50013",
    arms: str = "[arms.a]\n[arms.b]\n",
    plan: str = "",
    mark: str = "steady",
    factor: str = "",
    more: str = "",
) -> Path:
    """Write a study of one `steady` benchmark into `folder` and return its path.

    Its factor is the environment where the `arms` set one, else nothing.
    """
    factor = factor or ("env" if "env" in arms else "nothing")
    (folder / "steady.py").write_text(STEADY.format(mark=mark))
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n{arms}\n'
        f'[[benchmarks]]\nfile = "steady.py"\nscript = """{script}"""\n{more}\n'
        f"[plan]\nseed = 1\n{plan}\n"
    )
    return path


def paribus(
    *words: str | Path, cwd: Path, timeout_s: float = 250.0, **env: Any
) -> subprocess.CompletedProcess[str]:
    """Return how `paribus WORDS` ended, started as a user would, and what it printed."""
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def scratch_of(directory: Path) -> list[Path]:
    """Return the scratch directories that the sittings of a study had, in memory too, if there."""
    with closing(sqlite3.connect(directory / "launches.db")) as db:
        scratches = [Path(row[0]) for row in db.execute("SELECT scratch FROM sittings")]
    assert scratches
    every = [*scratches, *(Path("/dev/shm", path.name) for path in scratches)]
    return [path for path in every if path.exists()]


def command(*words: str | Path) -> list[str]:
    """Return the argv of `paribus WORDS` with this interpreter."""
    return [sys.executable, "-m", "paribus", *map(str, words)]
