"""Starting a `paribus run` that outlives the process that starts it, and asking one to stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paribus.border import as_error
from paribus.core import UserError
from paribus.store import LOCK
from paribus.store.watched import alive, read_holder


def start(argv: Sequence[str], directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start `argv` in `directory`, in a session of its own, its output appended to `log`.

    Raises UserError if the log cannot be written.
    """
    fix = "free space there, or make it writable"
    with as_error(UserError, log, fix, "cannot be started"), log.open("ab") as out:
        return subprocess.Popen(
            argv,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def interrupt(directory: Path) -> None:
    """Ask the `paribus run` of `directory` to stop, as Ctrl-C does.

    It gets the first of `ASKS` that it does not ignore: what a script starts in the background
    ignores SIGINT.

    Others who can write there could name any process in progress.lock, so only one that holds that
    lock is believed. Raises UserError, and sends no signal, if none runs, if that cannot be known,
    or if it ignores all signals.
    """
    holder = read_holder(directory) if alive(directory) else None
    if holder is None:
        raise UserError("no study runs there", place=str(directory), fix="reload the page")
    if holder.host != socket.gethostname():
        raise UserError(
            f"progress.lock says that the study runs on {holder.host}, as process {holder.pid}",
            place=str(directory),
            fix="stop it there: Ctrl-C in its terminal, or `kill -INT` of the process that `ps"
            f" {holder.pid}` shows to be this `paribus run`",
        )
    process = -1
    try:
        with suppress(OSError, OverflowError):
            process = os.pidfd_open(holder.pid)
        # The descriptor came first: it is of the process that holds the lock, and of none after it.
        if process >= 0 and _holds(holder.pid, directory / LOCK):
            signal.pidfd_send_signal(process, _not_ignored(holder.pid, directory))
        elif alive(directory):
            raise UserError(
                f"progress.lock names process {holder.pid}, which is not seen to hold it as this"
                " user: no signal was sent",
                place=str(directory),
                fix="stop the study where it was started: Ctrl-C in its terminal",
            )
    except ProcessLookupError:
        return
    finally:
        if process >= 0:
            os.close(process)


ASKS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a study in good order, unless they were ignored from its start."""


def _not_ignored(pid: int, directory: Path) -> signal.Signals:
    """Return the first signal of `ASKS` that a process does not ignore; raises UserError.

    Bit n - 1 of SigIgn stands for signal n (proc_pid_status(5)).
    """
    try:
        status = Path("/proc", str(pid), "status").read_text()
    except OSError as error:
        raise ProcessLookupError(pid) from error
    found = re.search(r"^SigIgn:\s*([0-9a-f]+)$", status, re.M)
    ignored = int(found[1], 16) if found else 0
    for one in ASKS:
        if not ignored >> (one - 1) & 1:
            return one
    raise UserError(
        f"process {pid} ignores SIGINT, SIGTERM and SIGHUP: it was started so",
        place=str(directory),
        fix=f"`kill -KILL {pid}`: what is stored stays, the launch in flight is lost",
    )


def _holds(pid: int, lock: Path) -> bool:
    """Return whether a process of this user holds the flock(2) of the file `lock`.

    The kernel shows it for each file that a process has open (proc_pid_fdinfo(5)); /proc/locks is
    no help, as its device is not that of stat(2) on Btrfs. A file with a second name (a hard link)
    is not believed: it may be that of another study.
    """
    held = re.compile(rf"^lock:.*\bFLOCK +ADVISORY +WRITE +{pid} ", re.M)
    at = Path("/proc", str(pid))
    try:
        wanted = lock.lstat()
        if at.stat().st_uid != os.geteuid() or wanted.st_nlink != 1:
            return False
        for file in (at / "fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                same = os.path.samestat(file.stat(), wanted)
                if same and held.search((at / "fdinfo" / file.name).read_text()):
                    return True
    except OSError:
        return False
    return False


def finished(argv: Sequence[str], directory: Path, limit_s: float) -> str:
    """Return what `argv`, run in `directory`, prints; it is interrupted after `limit_s` seconds."""
    with subprocess.Popen(
        argv,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            return process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            return f"{process.communicate()[0]}\nstopped after {limit_s:.0f} s\n"
