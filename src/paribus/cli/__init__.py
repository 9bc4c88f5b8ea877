"""The verbs: one file each, imported when called."""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import io
import os
import signal
import sys
import termios
from collections.abc import Sequence
from types import FrameType

VERBS = {
    "run": "run a study: plan, launch, judge, report",
    "new": "write a commented study file to edit, or a copy of one that ships",
    "ab": "compare two commands: a verdict, and the study file that it ran",
    "compare": "compare existing results: logs of benchmarks, or tables (CSV, Parquet, JSON Lines)",
    "report": "repeat a report from stored data, or write it for a paper: tables, figures",
    "export": "write a study for other tools: Parquet, tables, figures, a notebook",
    "serve": "show a folder of studies in a browser: reports, launches, progress",
    "watch": "show what a study does that runs somewhere else, until it ends",
    "pack": "pack a study into one file with hashes, scrubbed on request, or open one",
    "profile": "count where the time of an MPI program goes, for a study to weigh",
    "record": "record the facts of this machine, scrubbed, or show a recording",
    "audit": "list what differs between the arms of a study beyond its factor",
    "cluster": "check hosts for MPI launches, set them up as a cluster, and undo it",
    "topology": "show the PCIe tree of a server, compare, predict and switch it",
    "doctor": "check whether this machine is fit for measurements, with fixes",
    "list": "list the benchmarks, and the studies and publications that ship",
    "help": "explain Paribus, or a verb",
}
EPILOG = """\
first steps:
  paribus run container-network      # what does bridged container networking cost MPI?
  paribus run mpi-transport          # shared memory against TCP; needs no privilege
  paribus run my-study.toml --out my-study
  paribus ab --a './solver old.cfg' --b './solver new.cfg'

exit codes: 0 verdict reached (equivalent and undecided included), 1 --fail-on, 2 user error,
3 verdict withheld by the audit, 4 invalid data, 130 interrupted (resumable)
"""


def dispatch(words: Sequence[str]) -> int:
    """Return the exit code of the verb that `words` name."""
    from paribus.outside import screened

    if "_ARGCOMPLETE" in os.environ:
        _complete()
    for stream in (sys.stdout, sys.stderr):
        # A letter that the encoding lacks is shown by its number: it must not end the report.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    with screened():
        return _dispatch(words)


def _dispatch(words: Sequence[str]) -> int:
    from paribus.errors import MachineError, ParibusError, UserError
    from paribus.platform.space import FAULTS, said_of

    if words and not words[0].startswith("-") and words[0] not in VERBS:
        close = difflib.get_close_matches(words[0], VERBS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        fix = f"{hint}`paribus help` shows all verbs"
        print(f"paribus: {words[0]!r}: no such verb\n  {fix}", file=sys.stderr)
        return UserError.exit_code
    arguments = parser_of(words).parse_args(words)
    if not hasattr(arguments, "carry_out"):
        parser_of([]).print_help()
        return 2
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is not signal.SIG_IGN:  # nohup wants hang-ups ignored
            signal.signal(name, _interrupt)
    try:
        return int(arguments.carry_out(arguments))
    except ParibusError as error:
        print(f"paribus: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        # A second signal, which may come while Python ends, changes nothing any more.
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        return 130
    except BrokenPipeError:
        # The reader of our output has left: nothing is left to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in FAULTS:
            raise
        fault = MachineError(
            said_of(error.errno, error.strerror or ""),
            place=str(error.filename or ""),
            fix="fix this, then try again; a study continues with --resume",
        )
        print(f"paribus: {fault}", file=sys.stderr)
        return fault.exit_code


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the verb that `words` name is imported."""
    parser = argparse.ArgumentParser(
        prog="paribus",
        description="Controlled comparisons of HPC and AI cluster platforms: one factor,"
        " interleaved launches, an interval and a verdict.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(metavar="VERB", title="verbs")
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(
            verb, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if verb in words[:1]:
            importlib.import_module(f"paribus.cli.{verb}").add_arguments(sub)
    return parser


def _complete() -> None:
    """Answer the shell that asks what may follow (docs/commands.md), and leave."""
    import argcomplete

    argcomplete.autocomplete(parser_of(os.environ.get("COMP_LINE", "").split()[1:]))


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    _leave_dead_terminal()
    raise KeyboardInterrupt


def _leave_dead_terminal() -> None:
    """Let output go nowhere where it went to a terminal that has been closed: writing would fail.

    Every call on such a terminal fails with EIO (tty_ioctl(4), hung up).
    """
    for number in (1, 2):
        try:
            termios.tcgetattr(number)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
