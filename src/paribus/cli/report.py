"""`paribus report DIR|REPORT`: repeat a report from what is stored, and write files for a paper."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from paribus.audit.accepted import add_accepted, parse_accepted
from paribus.border import is_directory
from paribus.cli.exports import add_accept, add_exports, finish
from paribus.cli.shipped import add_beside, with_published
from paribus.core import Judgement, UserError
from paribus.judge.conclude import conclude
from paribus.plan import read_plan
from paribus.store import Store

EXAMPLE = """\
example:
  paribus report container-network.study
  paribus report container-network.study --to latex --to pdf   # table and figures for a paper
  paribus report network-report --to markdown            # of what `paribus compare` wrote
  paribus report container-network.study --to junit --fail-on slower:5%  # in a pipeline
  paribus report container-network.study --salvage       # what is intact in a damaged directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Repeat a report from its stored data, and write it for a paper."
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        help="study directory; or a directory that `paribus compare` wrote, or a verdict.json",
    )
    add_beside(parser)
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="give a range for the time of an application, from its profile or one that ships",
    )
    add_exports(parser)
    add_accept(parser)
    parser.add_argument(
        "--salvage",
        action="store_true",
        help="report what is intact in a damaged directory, and list what is lost",
    )
    parser.set_defaults(execute=report)


def report(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus report`."""
    from paribus.cli import outputs

    judgement, directory, fresh = judged(arguments)

    def write() -> None:
        if fresh:
            try:
                outputs.write_files(judgement, directory)
            except UserError as error:  # the verdict is there, as of a directory that is read-only
                print(f"paribus: {error}", file=sys.stderr)

    code = outputs.print_and_write(judgement, write, **outputs.form(arguments))
    return finish(arguments, judgement, directory, code)


def judged(arguments: argparse.Namespace) -> tuple[Judgement, Path, bool]:
    """Return the judgement, the directory of its reports, and whether they are to be written anew.

    They are for a study directory that can be written to, and not for a stored report.
    """
    from paribus.cli import shipped
    from paribus.report.stored import is_report, read_report

    directory: Path = arguments.directory
    stored = is_report(directory)
    if stored:
        for name in ("salvage", "accept"):
            if getattr(arguments, name):
                raise UserError(
                    "is not possible with a report",
                    place=f"--{name}",
                    fix="use it with the study directory",
                )
        judgement = read_report(directory)
        directory = directory if is_directory(directory) else directory.parent
        judgement = replace(judgement, directory=str(directory))
        judgement = with_published(judgement, shipped.read_published(arguments.beside))
    else:
        judgement = _of_study(arguments)
    if arguments.profile:
        from paribus.lenses.profiles.lens import predicted
        from paribus.lenses.profiles.study import find_profile, read_profile

        judgement = predicted(judgement, read_profile(find_profile(arguments.profile, Path())))
    return judgement, directory, not stored and os.access(directory, os.W_OK)


def _of_study(arguments: argparse.Namespace) -> Judgement:
    """Return the judgement of a study directory, in which the reasons of --accept are kept."""
    from paribus.cli import shipped

    directory: Path = arguments.directory
    plan = read_plan(directory)
    add_accepted(directory, parse_accepted(arguments.accept))
    with Store(directory, salvage=arguments.salvage) as store:
        store.check_plan(plan.sha256)
        judgement = conclude(plan, store)
    return with_published(judgement, shipped.read_published(arguments.beside))
