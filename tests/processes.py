"""Which processes are there, by their command line, as `pgrep -f` would find them; and programs."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest


def needs(*programs: str) -> None:
    """Skip the caller where one of these programs is not installed; servers' places count."""
    for program in programs:
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            pytest.skip(f"{program} is not installed")


def executable(path: Path, text: str) -> Path:
    """Return `path`, written as a program, in sh where the text names no interpreter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def ran(
    argv: Sequence[str | Path], code: int | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Return how a program ended, by the exit `code` where one is given, and what it printed.

    The `options` are those of subprocess.run.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    assert code in (None, done.returncode), (argv, done.returncode, done.stdout, done.stderr)
    return done


def processes_with(mark: str) -> list[int]:
    """Return the pids whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if mark in text:
                found.append(int(entry.name))
    return found


def children(pid: int) -> list[int]:
    """Return the pids of the children of `pid`."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """Return the pids of the children of `pid`, of theirs, and so on."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def running(pid: int) -> bool:
    """Return whether `pid` is there and has not ended; init may reap orphans seconds later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(pids: list[int], within_s: float = 10.0) -> bool:
    """Return whether all of `pids` end in time."""
    deadline = time.monotonic() + within_s
    while any(running(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def gone(mark: str, within_s: float = 10.0) -> bool:
    """Return whether all processes with `mark` end in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not processes_with(mark):
            return True
        time.sleep(0.02)
    return False


def on_a_terminal(
    words: Sequence[str], folder: Path, *, errors: IO[str] | None = None, **env: str
) -> tuple[int, str]:
    """Return how a command ended that was started on a terminal of 50 x 80, and what it drew.

    Its standard error is the terminal too, or `errors`.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    drawn = b""
    with subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "TERM": "xterm", **env},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=errors or follower,
    ) as process:
        os.close(follower)
        with suppress(OSError):  # nobody has the other end any more
            while block := os.read(leader, 65536):
                drawn += block
    os.close(leader)
    return process.returncode, drawn.decode().replace("\r\n", "\n")
