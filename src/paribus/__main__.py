# PYTHON_ARGCOMPLETE_OK
"""The command line: finds the verb, hands over, and turns errors into exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_MEMORY = b"paribus: no memory is left\n  fix: raise the limit (`ulimit -v`), then try again\n"
_NOT_MAPPED = "failed to map segment"
"""What the loader says of a C module of Python for which no memory is left."""


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `paribus ARGV`; see docs/commands.md.

    Without `argv` it is the whole process: it answers signals from here on, and opens its streams.
    """
    if argv is not None:
        return _ended(list(argv))
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants hang-ups ignored
            signal.signal(number, _leave)
    try:
        try:
            _open_streams()
            return _ended(sys.argv[1:])
        finally:
            _ignore_signals()
    except KeyboardInterrupt:  # the second one, before signals were ignored
        _ignore_signals()
        return 130


def _ignore_signals() -> None:
    """Let signals change nothing any more: how it ends is known, and Python clears up."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # After a KeyboardInterrupt in code that was a text (as dataclasses write), Python keeps in mind
    # to end by SIGINT itself, until the next text.
    with suppress(MemoryError):
        exec("")


def _leave(_number: int, _frame: object) -> None:
    """End at once, while modules load: there is nothing to clear up yet."""
    os._exit(130)


class _Output(io.FileIO):
    """Standard output or error. What cannot be written is given up, and an error only of output."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]  # what a buffer hands on
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise
            if self.fileno() == 2:
                return len(data)  # type: ignore[arg-type]
            from paribus.core import UserError

            raise UserError(
                f"cannot be written: {error.strerror}",
                place="standard output",
                fix="let it go elsewhere; of a study, `paribus report DIR` prints it again",
            ) from error


def _open_streams() -> None:
    """Open the standard streams anew; where one is closed, the next file would be taken for it.

    A letter that their encoding lacks is shown by its number: it must not end a report.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Of standard output it is an error to write to it: nobody would get the report.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    out, err = (io.BufferedWriter(_Output(one, "w", closefd=False)) for one in (1, 2))
    encoding = getattr(sys.stdout, "encoding", None)
    live = out.isatty()
    sys.stdout = io.TextIOWrapper(out, encoding, "backslashreplace", line_buffering=live)
    sys.stderr = io.TextIOWrapper(err, encoding, "backslashreplace", line_buffering=True)


def _ended(words: list[str]) -> int:
    try:
        try:
            code = _executed(words)
        finally:
            sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            # Where it came in code that was a text (as dataclasses write), Python keeps in mind to
            # end by SIGINT itself, until the next text.
            exec("")
        try:
            from paribus.cli.ending import after

            return after(error)
        except (MemoryError, ImportError, OSError) as lacking:
            if not _of_memory(lacking):
                raise
            os.write(2, _NO_MEMORY)  # too little is left even to load what says so
            return 2
    return code


def _of_memory(error: BaseException) -> bool:
    """Return whether an error of an import is a lack of memory."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or _NOT_MAPPED in str(error)


def _executed(words: list[str]) -> int:
    if words == ["--version"]:
        from paribus import __version__

        print(f"paribus {__version__}")
        return 0
    from paribus.cli import dispatch

    return dispatch(words)


if __name__ == "__main__":
    sys.exit(main())
