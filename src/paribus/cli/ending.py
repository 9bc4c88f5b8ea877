"""How a verb ends: an error becomes one line on stderr and a documented exit code."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import termios
import traceback
from types import FrameType

from paribus.border import printable
from paribus.border.inputs import NO_PATH
from paribus.core import MachineError, ParibusError, UserError, exit_code
from paribus.launch.space import FAULTS, memory_limits, said_of

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that interrupt a verb: Ctrl-C, a scheduler's warning, a closed terminal."""

NO_MEMORY = (
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "error return without exception set",
)
"""Texts in errors of other types, of the loader, threads and C code, that mean a lack of memory."""


def after(error: BaseException) -> int:
    """Return the exit code of a verb that ended by `error`; stderr has the cause and a fix.

    No error has the code 1: docs/commands.md.
    """
    text = _text_of(error)
    if text:
        print(printable(text, keep="\n\t"), file=sys.stderr, flush=True)
    return exit_code(error)


CPU_S = 5
"""Seconds of CPU time before its limit at which a verb is interrupted, so that it can end well."""


def interruptible() -> None:
    """Let SIGNALS raise KeyboardInterrupt, except those that are ignored (nohup).

    The limit of CPU time raises it too, CPU_S seconds before the system kills the process.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft != resource.RLIM_INFINITY:
        signal.signal(signal.SIGXCPU, _out_of_time)
        resource.setrlimit(resource.RLIMIT_CPU, (max(1, soft - CPU_S), hard))


def _out_of_time(number: int, frame: FrameType | None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
    os.write(2, b"\nparibus: the limit of CPU time is reached (`ulimit -t`)\n")
    _interrupt(number, frame)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if number != signal.SIGINT:
        _leave_dead_terminal()
    raise KeyboardInterrupt


def _leave_dead_terminal() -> None:
    """Redirect output from a terminal that has been closed to /dev/null.

    Every call on such a terminal fails with EIO (tty_ioctl(4), hung up).
    """
    for number in (1, 2):
        try:
            termios.tcgetattr(number)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _text_of(error: BaseException) -> str:
    """Return the text for stderr: cause, place and next step; "" after an interrupt."""
    if isinstance(error, KeyboardInterrupt | BrokenPipeError):
        return ""
    found = error if isinstance(error, ParibusError) else _of_the_machine(error)
    if found is not None:
        return f"paribus: {found}"
    return (
        f"{''.join(traceback.format_exception(error))}"
        "paribus: this is a defect of Paribus: please report it with the lines above"
    )


def _of_the_machine(error: BaseException) -> ParibusError | None:
    """Return the error for what the system refused, such as memory; None for a defect."""
    fix = "fix this, then try again; a study continues with --resume"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or any(one in str(cause).lower() for one in NO_MEMORY):
            return MachineError("no memory is left", place=memory_limits(), fix=fix)
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, RecursionError):
        fix = "flatten the file or table that it read, then try again"
        return UserError("nested more deeply than can be read", fix=fix)
    if not isinstance(error, OSError):
        return None
    if isinstance(error, FileNotFoundError) and not error.filename:  # as os.getcwd() raises it
        fix = "`cd` to a directory that is there, then try again"
        return UserError("the working directory has been removed", fix=fix)
    kind = MachineError if error.errno in FAULTS else UserError
    fix = "give another path" if error.errno in NO_PATH else fix
    reason = said_of(error.errno or 0, error.strerror or str(error))
    return kind(reason, place=str(error.filename or ""), fix=fix)
