"""`paribus ab --a CMD --b CMD`: two commands become a study file, which is run to a verdict."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import suppress
from pathlib import Path

from paribus.benchmarks.command import better
from paribus.cli.directory import discard
from paribus.cli.exports import add_exports
from paribus.core import StoreError, UserError
from paribus.plan import read_plan
from paribus.studyfile.written import (
    HEAD,
    Side,
    environment,
    last_study,
    split,
    study_file,
    write_study,
)

EXAMPLE = """\
example:
  paribus ab --a './solver old.cfg' --b './solver new.cfg' --success DONE
  paribus ab --a ./solver --b ./solver --b-env OMP_WAIT_POLICY=active
  paribus ab --a ./v1 --b ./v2 --ranks 4 --regex 'rate: (.*) Mcells/s' --unit Mcells/s --higher
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compare two commands: launch them in random order until there is a verdict. No\n"
        "shell is started. The study is written to NAME.toml, and run as\n"
        "`paribus run` does."
    )
    add_sides(parser, required=True)
    parser.add_argument("--out", metavar="DIR", type=Path, help="study directory (NAME.study)")
    add_exports(parser)
    parser.set_defaults(execute=compare)


def add_sides(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the options that name two commands and say how they are launched.

    `required`: both commands must be given.
    """
    for side, what in (("a", "command of the reference"), ("b", "command compared with it")):
        parser.add_argument(f"--{side}", metavar="CMD", required=required, help=what)
        named = f"with --{side}: its name"
        parser.add_argument(f"--{side}-name", metavar="NAME", default=side, help=named)
        parser.add_argument(
            f"--{side}-env",
            metavar="X=1",
            action="append",
            default=[],
            help=f"set a variable for {side} (repeatable)",
        )
    parser.add_argument("--setup", metavar="CMD", help="command before each launch, not timed")
    parser.add_argument("--ranks", metavar="N", type=int, help="start N ranks with MPI")
    parser.add_argument("--regex", help="compare the figure in its one group, not the time")
    parser.add_argument("--unit", help="with --regex: the unit of the figure")
    parser.add_argument("--higher", action="store_true", help="with --regex: higher is better")
    parser.add_argument(
        "--success", metavar="TEXT", help="text in the output of a successful launch"
    )
    parser.add_argument("--name", default="ab", help="with --a: name of file and directory")
    parser.add_argument("--budget", metavar="TIME", help='stop after this time, such as "5 min"')
    parser.add_argument("--blocks", metavar="N", type=int, help="most pairs of launches (60)")
    parser.add_argument(
        "--margin", metavar="SHARE", help="smaller differences are equivalent (2 %%)"
    )


def compare(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus ab`."""
    return executed(arguments, ["run"])


def executed(arguments: argparse.Namespace, verb: list[str]) -> int:
    """Write the study file, run `verb` (with options) on it, and return the exit code.

    A file whose study launched nothing is removed, so that the command can be given again.
    """
    from paribus.cli import parser_of
    from paribus.cli.run import run
    from paribus.studyfile.load import load_study

    text = _study(arguments)
    if "/" in arguments.name or not arguments.name.strip(" ."):
        place = f"--name {arguments.name!r}"
        fix = "write --name NAME; --out says where the study directory is"
        raise UserError("is not a usable name", place=place, fix=fix)
    if arguments.out is None:
        _forget_failed(Path(arguments.name))
    path = write_study(text, Path(arguments.name), with_directory=arguments.out is None)
    directory = arguments.out or path.with_suffix(".study")
    words = [*verb, str(path), "--out", str(directory)]
    try:
        load_study(path)
        print(f"paribus: the study is {path}", file=sys.stderr)
        of_run = parser_of(words).parse_args(words)
        for key in vars(of_run).keys() & vars(arguments).keys() - {"study", "out"}:
            setattr(of_run, key, getattr(arguments, key))
        return run(of_run, keep=False)
    except BaseException as error:
        if not _is_of(directory, path):
            path.unlink()
            if isinstance(error, UserError):
                wrong = re.match(r"(?:plan|benchmarks\[0\])\.(\w+) = (.*)", error.cause, re.S)
                if wrong:  # the file is gone: name the option, not its key
                    error.place, error.cause = "", f"--{wrong[1]} {wrong[2]}"
            fix = "give the command again, corrected"
            print(f"paribus: nothing was launched, so {path} is not kept: {fix}", file=sys.stderr)
        raise


def _forget_failed(stem: Path) -> None:
    """Remove the last study of this name if no launch gave a figure and its file was not edited."""
    path = last_study(stem)
    if path is None:
        return
    directory = path.with_suffix(".study")
    with suppress(StoreError, OSError, ValueError):
        written, planned = path.stat().st_mtime, (directory / "plan.json").stat().st_mtime
        if written <= planned and path.read_text(encoding="utf-8").startswith(HEAD):
            discard(directory)
            path.unlink()


def _is_of(directory: Path, study: Path) -> bool:
    """Return whether `directory` is that of this study file, not of one begun in the meantime."""
    try:
        return read_plan(directory).study.path == str(study)
    except StoreError:
        return False


def _study(arguments: argparse.Namespace) -> str:
    """Return the text of the study file; raises UserError for options that do not go together."""
    if arguments.regex and not arguments.unit:
        raise UserError("a figure has a unit", place="--regex", fix="add --unit s")
    if arguments.a_name == arguments.b_name:
        fix = "give them two names"
        raise UserError("both sides have one name", place="--a-name, --b-name", fix=fix)
    a, b = (
        Side(
            getattr(arguments, f"{side}_name"),
            split(getattr(arguments, side), f"--{side}"),
            environment(getattr(arguments, f"{side}_env"), f"--{side}-env"),
        )
        for side in ("a", "b")
    )
    return study_file(
        (a, b),
        setup=split(arguments.setup, "--setup") if arguments.setup is not None else (),
        benchmark={
            "ranks": arguments.ranks,
            "regex": arguments.regex,
            "unit": arguments.unit,
            "better": better(arguments.unit, higher=arguments.higher) if arguments.regex else None,
            "success": arguments.success,
        },
        plan={key: getattr(arguments, key) for key in ("margin", "blocks", "budget")},
    )
