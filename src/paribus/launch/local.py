"""Where commands execute: the only code that starts processes.

`capture` is for short commands whose output is wanted (probes, versions). `LocalStation` runs
launches, compilers and switches: output to files, a deadline, and nothing left behind (warden.py
says how).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paribus.border import search_path, why_not
from paribus.core import (
    Command,
    Completed,
    Facts,
    LaunchError,
    MachineError,
    ParibusError,
    Room,
    UserError,
)
from paribus.launch.space import FAULTS, check_room, said_of
from paribus.launch.station import Lease, Node
from paribus.probes import energy
from paribus.probes.archive import Archive, files_of
from paribus.probes.energy import joules
from paribus.probes.machine import Others, load_facts, siblings


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
    stdin: str = "",
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
            timeout=timeout_s,
            input=stdin,
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
    """Return the inherited environment with `added`, its PATH reduced to absolute entries.

    What "." in the PATH leads to depends on the working directory, and may be a stranger's.
    """
    full = {**os.environ, **added}
    return {**full, "PATH": search_path(full.get("PATH"))}


def mean_power(wall_s: float) -> Facts:
    """Return the facts of the BMC's mean power over a launch that has just ended (probes.energy).

    {} for a short launch, and without a BMC.
    """
    if wall_s < energy.LEAST_S or not os.path.exists(energy.BMC):  # noqa: PTH110
        return {}
    script = f'{energy.POWER}bmc=$1\npower "$2"'
    argv = ["/bin/sh", "-c", script, "sh", energy.BMC, str(int(wall_s))]
    return energy.energy_facts(Archive(files_of(capture(argv).stdout)))


_SCRATCH = re.compile(r"paribus-[0-9a-f]{8}")


def this_node() -> Node:
    """Return this machine, with the cores that Paribus is allowed to use."""
    return Node("", tuple(siblings(allowed=frozenset(os.sched_getaffinity(0)))))


class LocalStation:
    """The station of this machine: one launch at a time, started by a warden process (warden.py).

    Use as a context manager; leaving it ends a launch in flight, and the warden. `scratch` is the
    directory of this station alone, below which every launch has one of its own.
    """

    lease: Lease | None = None
    asleep: MachineError | None = None

    def __init__(self) -> None:
        self._warden: subprocess.Popen[str] | None = None
        self._others = Others()
        self.scratch = ""

    @property
    def here(self) -> str:
        """The directory of this sitting, as it is on this machine."""
        return self.scratch

    def __enter__(self) -> LocalStation:
        script = Path(__file__).with_name("warden.py")
        # Not tempfile's choice, which falls back to the working directory.
        temporary = Path(os.environ.get("TMPDIR") or "/tmp").absolute()
        if reason := why_not(temporary / "paribus-"):
            raise UserError(
                f"others could change what launches execute: {reason}",
                place=str(temporary),
                fix="set TMPDIR to a directory of your own, or `chmod +t` it",
            )
        self._warden = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(temporary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # So that Ctrl-C in the terminal goes to Paribus alone, which cancels the launch.
            start_new_session=True,
        )
        try:
            answer = self._answer()
            if "error" in answer:
                raise MachineError(
                    f"no scratch directory can be created: {answer['error']}",
                    place=str(temporary),
                    fix="free some space there, or set TMPDIR to a directory of your own",
                )
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.scratch = str(answer["scratch"])
        return self

    def __exit__(self, *_: object) -> None:
        warden, self._warden = self._warden, None
        if warden is not None:
            if warden.stdin is not None:
                with suppress(BrokenPipeError):
                    warden.stdin.close()
            if warden.wait() != 0 and self.scratch:
                clear_leftovers([self.scratch])
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
        cwd: str = "",
        stay: bool = False,
    ) -> Completed:
        """Run `command` and return how it ended; see station.Station.

        With `cwd` it needs no `scratch`. An interruption (KeyboardInterrupt) is raised after all
        that the command started has been ended. Raises LaunchError if the program could not be
        started, MachineError if this machine lacks what a launch needs, or the warden is gone.
        """
        parent, _, name = scratch.rpartition("/")
        if scratch and (parent != self.scratch or not name):
            raise ValueError(f"{scratch} does not lie directly below {self.scratch}")
        request = {
            "argv": list(command.argv),
            "env": _environment({**command.env, **({} if cwd else {"TMPDIR": scratch})}),
            "files": dict(command.files),
            "outputs": list(command.outputs),
            "stdout": str(Path(stdout).absolute()),
            "stderr": str(Path(stderr).absolute()),
            "timeout_s": timeout_s,
            "name": name,
            "cwd": cwd or command.cwd,
            "stay": stay,
        }
        self._others.begin()
        cores = {core for own in command.cores.values() for core in own}
        load, since_s = load_facts(cores=cores), time.time()
        sent = False
        try:
            with _undisturbed():
                self._send(request)
                sent = True
            answer = self._answer()
        except BaseException as error:
            if sent and not isinstance(error, ParibusError):
                with _undisturbed():
                    # An answer of the launch that came just before is lost.
                    self._send({"confirm": True})
                    while "cancelled" not in self._answer():
                        pass
            raise
        if "error" in answer:
            raise _not_started(answer, command.argv[0])
        done, after = _completed(answer), load_facts(cores=cores, since_s=since_s)
        after = {**after, **mean_power(done.wall_s)}
        used, others = joules(load, after, done.wall_s), self._others.end()
        return replace(done, load=(load, after), energy_j=used, beside=others)

    def check_room(self, *others: str) -> None:
        """Raise MachineError unless a launch has room to write, shared memory included."""
        # No pathlib: this is before each launch.
        shared = ["/dev/shm"] if os.path.isdir("/dev/shm") else []  # noqa: PTH112
        check_room([*others, self.scratch, *shared])

    def cancel(self) -> None:
        """End the launch in flight, if there is one, and all that it started."""
        self._send({})

    def _send(self, request: object) -> None:
        stdin = self._alive().stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise _warden_gone() from None

    def _answer(self) -> dict[str, Any]:
        stdout = self._alive().stdout
        assert stdout is not None
        line = stdout.readline()
        if not line:
            raise _warden_gone()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _alive(self) -> subprocess.Popen[str]:
        if self._warden is None:
            raise ParibusError("LocalStation is used as a context manager")
        return self._warden


def _warden_gone() -> MachineError:
    return MachineError(
        "the process that starts launches has ended; was it killed, or is memory exhausted?",
        place="warden.py",
        fix="try again; a study continues with --resume, and every stored launch is kept",
    )


def _completed(answer: Mapping[str, Any]) -> Completed:
    return Completed(
        answer["exit_code"],
        answer["wall_s"],
        answer["timed_out"],
        answer["cpu_s"],
        answer["involuntary"],
        tuple(Room(*one) for one in answer["room"]),
    )


def _not_started(answer: Mapping[str, Any], program: str) -> ParibusError:
    """Return the error for a launch that did not begin: MachineError, or the program's fault."""
    if answer.get("program") and answer["errno"] not in FAULTS:
        return LaunchError(
            f"the program could not be started: {answer['error']}",
            place=program,
            fix="check that the program exists and is executable",
        )
    return MachineError(
        f"the launch could not be started: {said_of(answer['errno'], answer['error'])}",
        place=program,
        fix="fix this, then continue with --resume: every stored launch is kept",
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay signals that interrupt while a launch is begun or ended: by a second at most.

    By handlers, as with a signal mask of this thread another thread would take the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in handlers:
        signal.signal(number, lambda got, _frame: came.append(got))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def clear_leftovers(directories: Iterable[str]) -> None:
    """End the processes and remove the files of sittings of this user whose warden was killed.

    `directories` are their scratch directories, as `LocalStation.scratch` gave them. What is not a
    directory of such a name, or not this user's, is left alone.
    """
    for path in map(Path, directories):
        if not _SCRATCH.fullmatch(path.name):
            continue
        for pid in _processes_in(str(path)):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for one in (path, Path("/dev/shm", path.name)):
            with suppress(OSError):
                if one.lstat().st_uid == os.geteuid():
                    shutil.rmtree(one, ignore_errors=True)  # refuses links


def _processes_in(scratch: str) -> list[int]:
    """Return the pids of processes whose TMPDIR, by their environment, is within `scratch`."""
    mark, found = f"\0TMPDIR={scratch}/".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in b"\0" + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found
