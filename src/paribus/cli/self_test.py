"""`paribus self-test`: check that kernels, launches, verdicts and reports work as installed.

A study of a program that sleeps, in one arm 1.5 times as long, must find just that.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from paribus.border import is_file
from paribus.core import MachineError, ParibusError

EXAMPLE = """\
example:
  paribus self-test        # after an installation: within a minute, also on a busy machine
"""

DELAY = 1.5
"""The time of the arm `delayed` over that of `plain`."""

NEAR = 0.1
"""How far the interval may be from DELAY, as a share: starting the program takes time too."""

ARMS = """
question = "Is a known delay of 50 % found?"
factor   = "env"

[arms.plain]
env = { PARIBUS_SLEEP = "0.2" }

[arms.delayed]
env = { PARIBUS_SLEEP = "0.3" }

"""
KERNEL = """[[benchmarks]]
name    = "latency"
bytes   = ["8 B"]
samples = 20

[plan]
blocks = 8
budget = "2 s"
"""
SLEEP = """[[benchmarks]]
name    = "command"
argv    = ["sh", "-c", "sleep $PARIBUS_SLEEP"]

[plan]
blocks = 8
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compile a kernel, run a small study whose answer is known, and read its report: whether"
        " Paribus works here. How fast this machine is, and how quiet: `paribus doctor`."
    )
    parser.set_defaults(execute=self_test)


def self_test(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus self-test`: 2 where anything does not work."""
    with tempfile.TemporaryDirectory(prefix="paribus-self-test-") as folder:
        mpi, sleeping = Path(folder, "mpi"), Path(folder, "sleep")
        works = _works("a kernel compiles", _compiled)
        works = works and _works("MPI launches run", lambda: _launched(KERNEL, mpi))
        works &= _works("launches run", lambda: _launched(SLEEP, sleeping))
        if is_file(sleeping / "verdict.json"):
            works &= _works("a delay of 50 % is found", lambda: _found(sleeping))
            works &= _works("reports, and what is packed", lambda: _packed(sleeping))
    print("all of it works" if works else "NOT all of it works")
    return 0 if works else 2


def _works(what: str, step: Callable[[], str]) -> bool:
    """Return whether `step` works, and print a line with the text it returns, or its error."""
    begun = time.monotonic()
    try:
        text, works = step(), True
    except ParibusError as error:
        text, works = str(error), False
    print(f"{'ok' if works else 'FAILED':7}{what}: {text} ({time.monotonic() - begun:.0f} s)")
    return works


def _compiled() -> str:
    from paribus.launch.machine import HERE
    from paribus.launch.toolchain import find_mpi, kernel_path

    mpi = find_mpi(None, HERE)
    kernel_path("latency", mpi, HERE)
    return str(mpi)


def _launched(benchmark: str, directory: Path) -> str:
    """Run the study of a benchmark; return how many launches it made, all of them good."""
    from paribus.core import State, count
    from paribus.store import Store

    file = directory.with_suffix(".toml")
    file.write_text(ARMS + benchmark, encoding="utf-8")
    _executed("run", str(file), "--out", str(directory))
    with Store(directory) as store:
        outcomes = [one.outcome for one in store.launches(samples=False, void=True)]
    failed = [one for one in outcomes if one.state is not State.OK]
    if failed:
        raise MachineError(
            f"{len(failed)} of {count(len(outcomes), 'launch')} failed: {failed[0].error}",
            place=failed[0].argv[0],
            fix="`paribus run same` shows how launches fail here",
        )
    return count(len(outcomes), "launch")


def _found(directory: Path) -> str:
    """Return the verdict of the test's study in short; raises MachineError where it is wrong."""
    (row,) = _verdict(directory)["headlines"]
    word, known = row["verdict"]["word"], row["comparison"] or {}
    low, high = known.get("low") or 0.0, known.get("high") or 0.0
    shown = f"{word}, {known.get('ratio') or 0:.2f}x [{low:.2f}x, {high:.2f}x]"
    if word != "slower" or low > DELAY * (1 + NEAR) or high < DELAY * (1 - NEAR):
        raise MachineError(
            f"it was judged {shown}",
            place="the study of this test",
            fix="repeat it on a quiet machine; `paribus doctor` says what disturbs",
        )
    return shown


def _packed(directory: Path) -> str:
    """Repeat the report, pack the study and verify the file; return what was found."""
    before, file = _verdict(directory), directory.with_suffix(".zip")
    _executed("report", str(directory))
    if _verdict(directory)["headlines"] != before["headlines"]:
        raise MachineError(
            "a repeated report has another verdict",
            place="the study of this test",
            fix="this is a defect of Paribus: report it, with what `paribus record` shows",
        )
    _executed("pack", str(directory), "--out", str(file))
    _executed("verify", str(file))
    size = (directory / "report.html").stat().st_size // 1000
    return f"{size} kB of HTML; hashes and figures agree"


def _verdict(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / "verdict.json").read_text(encoding="utf-8")))


def _executed(*words: str) -> None:
    """Run a verb, whose output is only shown where it fails; raises ParibusError."""
    from paribus.cli import dispatch

    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = dispatch(words)
    if code not in (0, 3, 4):  # of a withheld verdict and of failed launches, verdict.json says why
        output = "".join(f"\n    {line}" for line in out.getvalue().splitlines())
        raise MachineError(
            f"ended with the exit code {code}, after:{output}",
            place=f"paribus {words[0]}",
            fix="this is a defect of Paribus: report it, with what `paribus record` shows",
        )
