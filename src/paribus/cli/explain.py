"""`paribus explain STUDY`: which of the changes between two arms makes the difference."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from paribus.cli import ab
from paribus.cli import run as launching
from paribus.core import Study, UserError

EXAMPLE = """\
example:
  paribus explain upgrade.toml --dry-run                    # what it launches, and how long
  paribus explain upgrade.toml --reference old --arm new
  paribus explain upgrade.toml --within environment         # which change of a group
  paribus explain --a './solver' --b './solver' --b-env OMP_PROC_BIND=close --b-env X=1
"""


_OF_COMMANDS = (
    *("a_env", "b_env", "setup", "ranks", "regex", "unit", "higher", "success"),
    *("budget", "blocks", "margin"),
)
"""Options of two commands, of which a study file has keys."""

_OF_A_STUDY = ("resume", "replace", "detach")
"""Options of a study that was written before; two commands are a new one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb: those of `run`, the arms, and the commands of `ab`."""
    launching.add_arguments(parser)
    parser.description = (
        "Say which of the changes between two arms makes the difference: launch both arms\n"
        "and combinations of their changes until each has its part. Changes that belong\n"
        "together are grouped in the table [parts] of the study file."
    )
    study = next(one for one in parser._actions if one.dest == "study")
    study.nargs, study.required = "?", False
    parser.add_argument("--reference", metavar="ARM", default="", help="the arm to start from")
    parser.add_argument("--arm", metavar="ARM", default="", help="the arm to explain")
    parser.add_argument(
        "--within", metavar="GROUP", action="append", default=[], help="this group's changes alone"
    )
    ab.add_sides(parser, required=False)
    parser.set_defaults(execute=explain, designed=_explained, name="explain")


def explain(arguments: argparse.Namespace) -> int:
    """Return the exit code, which is that of `paribus run`."""
    if arguments.a is not None or arguments.b is not None:
        if arguments.study or arguments.a is None or arguments.b is None:
            fix = "give --a CMD and --b CMD, or a study file"
            raise UserError("two commands, or a study", place="--a, --b", fix=fix)
        fix = "give the study file that was written, in the place of --a and --b"
        _refuse(arguments, _OF_A_STUDY, "applies to an existing study", fix)
        verb = ["explain", *(["--dry-run"] if arguments.dry_run else [])]
        return ab.executed(arguments, [*verb, *(f"--within={one}" for one in arguments.within)])
    if not arguments.study:
        fix = "name a study file, or two commands with --a and --b"
        raise UserError("there is nothing to explain", place="STUDY", fix=fix)
    fix = "write it into the study file, as a key of the benchmark, an arm or [plan]"
    _refuse(arguments, _OF_COMMANDS, "applies to two commands, --a and --b", fix)
    if arguments.out is None:
        group = "".join(f"-{word}" for word in re.findall(r"\w+", " ".join(arguments.within)))
        arguments.out = Path(f"{Path(arguments.study).stem}-explain{group}.study")
    return launching.run(arguments)


def _refuse(arguments: argparse.Namespace, options: Sequence[str], cause: str, fix: str) -> None:
    """Raise UserError for the first of `options` that is given: it would change nothing."""
    given = next((one for one in options if getattr(arguments, one)), None)
    if given is not None:
        raise UserError(cause, place=f"--{given.replace('_', '-')}", fix=fix)


def _explained(arguments: argparse.Namespace, study: Study) -> Study:
    """Return `study` with the design "explain", of the arms and groups that the options name."""
    from paribus.designs.explain import explained

    if arguments.monitor or arguments.every is not None:
        fix = "drop --monitor and --every"
        raise UserError("what is explained has an end", place="--monitor", fix=fix)
    return explained(study, arguments.reference, arguments.arm, arguments.within)
