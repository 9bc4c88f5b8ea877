"""Many calls of the command line in little time: forks of a process that has all of it loaded.

Each call is a process of its own, as a user's is, and leaves nothing to the next one; it differs
in what a start costs. As a program it reads a job in JSON from each line, and answers with how it
ended, in JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY = 512 << 20
"""Bytes of addresses that a call has beside those of the process that it was forked from."""

KILLED = -signal.SIGALRM
"""The exit code of a call that was not in time."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended, what it printed, and the names of files that it opened."""

    code: int
    out: str
    err: str
    opened: frozenset[str]

    def complaints(self) -> list[str]:
        """Return the errors that it printed, each without what to do."""
        return re.findall(r"^paribus: (.*)", self.err, re.M)


class Nursery:
    """The process that is forked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def paribus(
        self,
        *words: str | Path,
        cwd: Path,
        within_s: float = 20.0,
        env: Mapping[str, str] | None = None,
        memory: int = MEMORY,
    ) -> Ended:
        """Return how `paribus WORDS` ended, killed after `within_s` seconds.

        `env` is its environment where it is not the one of the tests. Without `memory`, it has as
        much as it wants, and what it opens is not looked at.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"words": [*map(str, words)], "cwd": str(cwd), "within_s": within_s}
        job |= {"env": dict(os.environ if env is None else env), "memory": memory}
        self._process.stdin.write(f"{json.dumps(job)}\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        return Ended(said["code"], said["out"], said["err"], frozenset(said["opened"]))


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Yield a process to be forked, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, __file__],
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # else each thread takes 128 MB of addresses
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Nursery(process)
        finally:
            process.kill()


def _load() -> None:
    """Load what verbs load, so that no call does."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has none of the threads
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import paribus

    for found in pkgutil.walk_packages(paribus.__path__, "paribus."):
        with suppress(ImportError):  # some are for programs that are not here
            importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def _execute(job: dict[str, Any], into: Path) -> int:
    """Run a job in this process, a fork, and return its exit code."""
    from paribus.__main__ import main

    opened: set[str] = set()

    def hear(event: str, values: Sequence[Any]) -> None:
        if event in ("open", "sqlite3.connect") and isinstance(values[0], str | bytes | Path):
            opened.add(os.fsdecode(values[0]))

    os.environ.clear()
    os.environ.update(job["env"])
    time.tzset()
    tempfile.tempdir = None  # the one of this environment
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, job["within_s"])
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(into / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(job["cwd"])
    sys.argv = ["paribus", *job["words"]]
    sys.path[0] = job["cwd"]
    if job["memory"]:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = -(-(size + job["memory"]) >> 26) << 26  # rounded: it is a fact of a study
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        sys.addaudithook(hear)
    try:
        return main()
    except SystemExit as error:
        return int(error.code or 0)
    finally:
        (into / "opened").write_text(json.dumps(sorted(opened)))


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        child = os.fork()
        if not child:
            code = 70
            with suppress(BaseException):
                code = _execute(job, into)
                sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        said = {
            name: (into / name).read_text(errors="replace") if (into / name).exists() else ""
            for name in ("out", "err")
        }
        opened = into / "opened"
        return {
            "code": os.waitstatus_to_exitcode(status),
            "opened": json.loads(opened.read_text()) if opened.exists() else [],
            **said,
        }


if __name__ == "__main__":
    _load()
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)
