"""Small real studies for tests: programs of a few milliseconds, started like any other."""

from __future__ import annotations

import atexit
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

from forked import KILLED, Nursery, nursery
from paribus.cli import outputs
from paribus.core import Case, Facts, Judgement, Launch, Outcome, Sample, State
from paribus.plan import frozen as plans
from paribus.store import Store, Stored, read_count
from paribus.studyfile.load import load_study
from processes import ran

STEADY = """
from paribus.core.errors import ParseError
from paribus.core.model import Benchmark, Case, Metric, Parameter, Parsed, Program, Sample

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
"""A benchmark from outside; {mark} distinguishes its processes."""

RANDOM = "sleep 0.01; echo $((PARIBUS_SEED % 65536 + 1))"
"""A script whose figures are drawn by the seed of the launch: no look of a study with two arms and
the plan's seed 1 decides. Of figures that are drawn anew, one study in twenty would find a winner.
"""


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


def write_arms(
    folder: Path,
    a: str = "",
    b: str = "",
    *,
    benchmark: str = 'name = "latency"',
    factor: str = "nothing",
    plan: str = "",
) -> Path:
    """Write a study of the arms a and b, by the lines of each, and return its path."""
    path = folder / "study.toml"
    path.write_text(
        f'question = "?"\nfactor = "{factor}"\n[arms.a]\n{a}\n[arms.b]\n{b}\n'
        f"[[benchmarks]]\n{benchmark}\n[plan]\n{plan}\n"
    )
    return path


AT_START = ("PYTHON", "LC_", "LANG", "LD_")
"""How the variables begin that Python, or its loader, reads as it starts."""


def paribus(
    *words: str | Path,
    cwd: Path,
    timeout_s: float = 250.0,
    memory: int = 0,
    code: int | None = None,
    **env: Any,
) -> subprocess.CompletedProcess[str]:
    """Return how `paribus WORDS` ended, by the exit `code` where one is given, and what it printed.

    It is a process of its own, forked from one that has the modules loaded; or started as a user
    would, where `env` has what Python reads as it starts. With `memory`, it has no more bytes of
    addresses beside those of the modules.
    """
    if any(name.startswith(AT_START) for name in env):
        return started(*words, cwd=cwd, timeout_s=timeout_s, code=code, **env)
    done = _loaded().paribus(
        *words, cwd=cwd, within_s=timeout_s, env={**os.environ, **env}, memory=memory
    )
    if done.code == KILLED:
        raise subprocess.TimeoutExpired(command(*words), timeout_s, done.out, done.err)
    assert code in (None, done.code), (words, done.code, done.out, done.err)
    return subprocess.CompletedProcess(command(*words), done.code, done.out, done.err)


@cache
def _loaded() -> Nursery:
    """Return the process that calls are forked from, until the tests end."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(nursery())


def started(
    *words: str | Path,
    cwd: Path,
    timeout_s: float = 250.0,
    code: int | None = None,
    **env: Any,
) -> subprocess.CompletedProcess[str]:
    """Return how `paribus WORDS` ended, started as a user would, and what it printed."""
    return ran(command(*words), code, cwd=cwd, env={**os.environ, **env}, timeout=timeout_s)


def interrupted(*words: str | Path, cwd: Path, out: str = "out", **env: str) -> Path:
    """Return the directory of `paribus run WORDS`, which is stopped after its fourth launch."""
    directory = cwd / out
    with subprocess.Popen(
        command("run", *words, "--out", out),
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while read_count(directory).launches < 4 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode == 130, errors
    return directory


def stored(
    path: Path,
    directory: Path,
    facts: Callable[[Launch], Facts],
    hosts: Mapping[str, str] | None = None,
) -> Judgement:
    """Return the judgement of the study `path` as if each launch had given a time and `facts`.

    Nothing is started; the directory is as after a run. The second arm takes 1.5 times as long.
    """
    plan = plans.freeze(load_study(path, None, hosts), plans.software())
    directory.mkdir()
    plans.write_plan(plan, directory)
    reference = plan.study.arms[0].name
    with Store(directory, write=True) as store:
        store.bind_plan(plan.sha256)
        for launch in plan.launches:
            value = (1.0 + launch.block / 100) * (1 if launch.arm == reference else 1.5)
            samples = (Sample("time", Case(), (value,)),)
            begun, known = 1e9 + launch.number, facts(launch)
            store.append(launch, Outcome(State.OK, begun, 0.1, 0, ("x",), samples, known))
        return outputs.conclude_and_write(plan, store)


def launches_in(directory: Path, **which: Any) -> list[Stored]:
    """Return the launches of a study directory; `which` is for Store.launches."""
    with Store(directory) as store:
        return list(store.launches(**which))


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
