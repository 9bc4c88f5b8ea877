"""A `paribus run` that outlives who started it, and how it is asked to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from paribus.errors import UserError
from paribus.records.standing import alive, read_holder


def start(argv: Sequence[str], directory: Path, log: Path) -> subprocess.Popen[bytes]:
    """Return `argv`, started in `directory` as a session of its own; it prints into `log`.

    Raises UserError where the log cannot be written.
    """
    try:
        with log.open("ab") as out:
            return subprocess.Popen(
                argv,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
    except OSError as error:
        raise UserError(
            f"cannot be started: {error.strerror}",
            place=str(log),
            fix="free space there, or make it writable",
        ) from error


def interrupt(directory: Path) -> None:
    """Ask the `paribus run` of `directory` to stop, as Ctrl-C does.

    Raises UserError where none runs, or where it runs on another machine.
    """
    holder = read_holder(directory) if alive(directory) else None
    if holder is None:
        raise UserError("no study runs there", place=str(directory), fix="reload the page")
    if holder.host != socket.gethostname():
        raise UserError(
            f"the study runs on {holder.host}, as process {holder.pid}",
            place=str(directory),
            fix=f"stop it there: `kill -INT {holder.pid}`",
        )
    try:
        process = os.pidfd_open(holder.pid)
    except OSError:
        return
    try:
        # The lock is still held: the number is that of the holder, and of nobody after it.
        if alive(directory) and read_holder(directory) == holder:
            signal.pidfd_send_signal(process, signal.SIGINT)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(
            "the study belongs to another user", place=str(directory), fix="ask its owner"
        ) from error
    finally:
        os.close(process)


def finished(argv: Sequence[str], directory: Path, limit_s: float) -> str:
    """Return what `argv` prints until it ends, or until it is stopped after `limit_s` seconds."""
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
