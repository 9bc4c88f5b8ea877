"""Where commands execute: the only code that starts processes.

`capture` is for short commands whose output is wanted (probes, compilers). `LocalHost` carries out
launches: raw output to files, a deadline, and nothing left behind (warden.py says how).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from paribus.errors import LaunchError, ParibusError
from paribus.model import Command, Completed
from paribus.trust import search_path


@dataclass(frozen=True, slots=True)
class Captured:
    """How a short command ended, and what it printed. Exit code 127: it could not be started."""

    exit_code: int
    stdout: str
    stderr: str


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
) -> Captured:
    """Return what `argv` printed and how it ended; `env` adds to the inherited environment.

    Never raises for a command that fails: a missing program is exit code 127, one that outlasts
    `timeout_s` is killed and has exit code 124, as in the shell and timeout(1).
    """
    full = _environment(env or {})
    try:
        done = subprocess.run(
            list(argv),
            env=full,
            cwd=cwd,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Captured(124, "", f"{argv[0]}: no answer within {timeout_s:g} s")
    except OSError as error:
        return Captured(127, "", f"{argv[0]}: {error.strerror}")
    return Captured(done.returncode, done.stdout, done.stderr)


def _environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the inherited environment with `added`; programs are found in absolute places only.

    What "." in the PATH leads to depends on where Paribus is started: it may be a stranger's.
    """
    full = {**os.environ, **added}
    return {**full, "PATH": search_path(full.get("PATH"))}


def shared_memory_scratch(scratch: str) -> str:
    """Return the directory for shared-memory segments that belongs to `scratch`.

    Open MPI keeps its segments in /dev/shm whatever TMPDIR says; launchers point it here, and the
    host removes it with the scratch directory.
    """
    return f"/dev/shm/{Path(scratch).name}"


class LocalHost:
    """Launches on this machine, one at a time, through a warden that lives as long as this does.

    Use as a context manager; leaving it ends whatever is in flight.
    """

    def __init__(self) -> None:
        self._warden: subprocess.Popen[str] | None = None

    def __enter__(self) -> LocalHost:
        script = Path(__file__).with_name("warden.py")
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C in the terminal is Paribus' to answer; the warden hears of it as a cancel.
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        warden, self._warden = self._warden, None
        if warden is not None:
            if warden.stdin is not None:
                warden.stdin.close()
            warden.wait()
            if warden.stdout is not None:
                warden.stdout.close()

    def run(
        self,
        command: Command,
        *,
        stdout: str,
        stderr: str,
        timeout_s: float,
        scratch: str,
    ) -> Completed:
        """Return how `command` ended; see model.Host.

        Raises LaunchError when it could not be started, ParibusError when the warden is gone.
        After an interruption (KeyboardInterrupt) leave the context: that ends the launch.
        """
        request = {
            "argv": list(command.argv),
            "env": _environment({**command.env, "TMPDIR": scratch}),
            "files": dict(command.files),
            "outputs": list(command.outputs),
            "stdout": str(Path(stdout).absolute()),
            "stderr": str(Path(stderr).absolute()),
            "timeout_s": timeout_s,
            "scratch": scratch,
            "extra_scratch": [shared_memory_scratch(scratch)],
        }
        answer = self._ask(request)
        if "error" in answer:
            raise LaunchError(
                f"the launch could not be started: {answer['error']}",
                place=command.argv[0],
                mend="see that the program exists and that there is space for its output",
            )
        return Completed(
            answer["exit_code"],
            answer["wall_s"],
            answer["timed_out"],
            answer["cpu_s"],
            answer["involuntary"],
        )

    def _ask(self, request: object) -> dict[str, Any]:
        warden = self._alive()
        assert warden.stdin is not None
        assert warden.stdout is not None
        warden.stdin.write(json.dumps(request) + "\n")
        warden.stdin.flush()
        line = warden.stdout.readline()
        if not line:
            raise ParibusError("the process that starts launches has ended unexpectedly")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _alive(self) -> subprocess.Popen[str]:
        if self._warden is None:
            raise ParibusError("LocalHost is used as a context manager")
        return self._warden


def remove_scratch(prefix: str) -> None:
    """Remove scratch directories that a killed session left behind, by their common prefix."""
    for root in (Path(prefix).parent, Path("/dev/shm")):
        for stale in root.glob(Path(prefix).name + "*"):
            shutil.rmtree(stale, ignore_errors=True)
