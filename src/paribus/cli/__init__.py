"""The command line: `paribus VERB ...` to the exit code of the verb.

Each verb has a file with `EXAMPLE`, for its help, and `add_arguments`, which sets the function that
is called. A file is imported only when its verb is called; optional rooms hold their own.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

VERBS = {
    "run": "run a study: plan, launch, judge, report",
    "new": "write a commented study file to edit, or a copy of one that ships",
    "ab": "compare two commands: a verdict, and the study file that it ran",
    "explain": "find which of the changes between two arms makes the difference",
    "calibrate": "compare the reference of a study with itself: what can be seen on this machine",
    "compare": "compare existing results: logs of benchmarks, or tables (CSV, Parquet, JSON Lines)",
    "history": "show one question over weeks: each study, and when an effect changed",
    "report": "repeat a report from stored data, or write it for a paper: tables, figures",
    "export": "write a study for other tools: Parquet, tables, figures, a notebook",
    "serve": "show a folder of studies in a browser: reports, launches, progress",
    "watch": "show what a study does that runs somewhere else, until it ends",
    "pack": "pack a study into one file with hashes, scrubbed on request, or open one",
    "verify": "check a packed study: hashes, outputs against figures, figures against verdicts",
    "pool": "say what studies of one question from three sites or more say together",
    "profile": "count where the time of an MPI program goes, and keep its calls for a forecast",
    "forecast": "say how long an application takes in arms that it was not run in",
    "record": "record the facts of this machine, scrubbed, or show a recording",
    "audit": "list what differs between the arms of a study beyond its factor",
    "cluster": "check hosts for MPI launches, set them up as a cluster, and undo it",
    "screen": "find the slow nodes of a fleet, with one error rate for all",
    "topology": "show the PCIe tree of a server, compare, predict and switch it",
    "doctor": "check whether this machine is fit for measurements, with fixes",
    "self-test": "check that kernels, launches, verdicts and reports work as installed",
    "list": "list the benchmarks, and the studies and publications that ship",
    "docs": "open the documentation in a browser, or say where its pages are",
    "help": "explain Paribus, or a verb",
}

_ROOMS = {
    "serve": "web",
    "compare": "logs",
    "profile": "profile",
    "cluster": "cluster",
    "screen": "screen",
    "topology": "topology",
    "doctor": "doctor",
}
"""The verbs that are in an optional room, in its file verb.py."""

EPILOG = """\
first steps:
  paribus run container-network      # what does bridged container networking cost MPI?
  paribus run mpi-transport          # shared memory against TCP; needs no privilege
  paribus run my-study.toml --out my-study
  paribus ab --a './solver old.cfg' --b './solver new.cfg'

exit codes: 0 verdict reached (equivalent and undecided included), 1 --fail-on, 2 user error,
3 verdict withheld, 4 invalid data, 130 interrupted (resumable); `paribus help VERB` has them all
"""

_THREADS = "OPENBLAS_NUM_THREADS"

COMPUTING = (
    *("run", "ab", "explain", "calibrate", "compare", "report", "export", "screen", "verify"),
    *("forecast", "history", "pool", "self-test"),
)
"""Verbs that judge and draw, with numpy."""


def dispatch(words: Sequence[str]) -> int:
    """Return the exit code of the verb that `words`, the command line, begin with.

    Raises UserError for a verb that there is not, and whatever the verb raises.
    """
    from paribus.border import screened

    if "_ARGCOMPLETE" in os.environ:
        _complete()
    with screened():
        return _dispatch(words)


def _dispatch(words: Sequence[str]) -> int:
    """Parse the words of a command line, run its verb and return the exit code."""
    from paribus.cli.ending import interruptible
    from paribus.core import UserError
    from paribus.launch.space import check_own

    if words and not words[0].startswith("-") and words[0] not in VERBS:
        close = difflib.get_close_matches(words[0], VERBS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        fix = f"{hint}`paribus help` shows all verbs"
        raise UserError("no such verb", place=repr(words[0]), fix=fix)
    arguments = parser_of(words).parse_args(words)
    if not hasattr(arguments, "execute"):
        parser_of([]).print_help()
        return 2
    computes = words[0] in COMPUTING
    check_own(computes=computes)
    if computes:
        _load_numpy()
    interruptible()
    return int(arguments.execute(arguments))


def _load_numpy() -> None:
    """Load numpy with its OpenBLAS limited to one thread.

    By default OpenBLAS starts one a core, and ends the process where a limit forbids that. Nothing
    that Paribus starts inherits the setting.
    """
    os.putenv(_THREADS, "1")
    import numpy

    os.unsetenv(_THREADS)
    if _THREADS in os.environ:
        os.putenv(_THREADS, os.environ[_THREADS])


class _Parser(argparse.ArgumentParser):
    """A parser, and those of its verbs, whose errors read as all others: cause, place, next step.

    As every parser of argparse it ends by SystemExit.
    """

    def error(self, message: str) -> NoReturn:
        """Exit with code 2: an argument lacks, or has a value that cannot be."""
        word, _, cause = message.removeprefix("argument ").partition(": ")
        of_one = message.startswith("argument ")
        self._refuse(word if of_one else "", cause if of_one else message, "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Return the arguments and an empty list.

        Exits with code 2 if words are left over, or an option lacks the one that it belongs to.
        """
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            name = unknown[0].partition("=")[0]
            if name.startswith("-"):
                close = difflib.get_close_matches(
                    name, self._option_string_actions, n=1, cutoff=0.75
                )
                hint = f"did you mean {close[0]}? " if close else ""
                self._refuse(name, "no such option", hint)
            self._refuse(repr(unknown[0]), "one argument too many", "")
        for one in self._actions:  # an option "with --to: ..." changes nothing without --to
            needed = re.match(r"with (--[a-z-]+)[:,]", one.help or "")
            lacking = needed and not getattr(found, self._option_string_actions[needed[1]].dest)
            if needed and lacking and getattr(found, one.dest) != one.default:
                hint = f"add {needed[1]}, or leave it out; "
                self._refuse(one.option_strings[0], f"applies to {needed[1]}", hint)
        return found, unknown

    def _refuse(self, word: str, cause: str, hint: str) -> NoReturn:
        from paribus.border import printable
        from paribus.core import UserError

        place = f"{self.prog} {word}".removeprefix("paribus").strip() or "command line"
        fix = f"{hint}`{self.prog} --help` shows what it takes"
        error = UserError(printable(cause), place=printable(place), fix=fix)
        self.exit(2, f"paribus: {error}\n")


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the file of the verb that `words` begin with is imported.

    It exits with code 2 for a command line that it does not take.
    """
    parser = _Parser(
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
            from paribus.cli import exits

            file = f"{_ROOMS[verb]}.verb" if verb in _ROOMS else f"cli.{verb.replace('-', '_')}"
            module = importlib.import_module(f"paribus.{file}")
            sub.epilog = module.EXAMPLE + exits.section(verb)
            module.add_arguments(sub)
    return parser


def add_action(
    actions: Any, name: str, summary: str, execute: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Return the parser of an action of a verb, such as `topology show`, that calls `execute`.

    `actions` is what `add_subparsers` of the verb's parser returned.
    """
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.set_defaults(execute=execute)
    return parser


def _complete() -> None:
    """Print what may follow on the command line, for argcomplete, and exit (docs/commands.md)."""
    import argcomplete

    argcomplete.autocomplete(parser_of(os.environ.get("COMP_LINE", "").split()[1:]))
