"""`paribus report DIR`: the report of a study directory, made again from what is stored."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from paribus.audit.accepted import add_accepted, parse_accepted
from paribus.cli.audit import add_accept
from paribus.cli.shipped import add_beside
from paribus.compare.beside import beside
from paribus.judge.conclude import conclude
from paribus.plan import read_plan
from paribus.store import Store

EXAMPLE = """\
example:
  paribus report container-network.study
  paribus report container-network.study --svg --png     # figures for a paper
  paribus report container-network.study --salvage       # what is intact in a damaged directory
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = "Repeat the report of a study directory from its stored data."
    parser.epilog = EXAMPLE
    parser.add_argument("directory", metavar="DIR", type=Path, help="study directory")
    add_beside(parser)
    parser.add_argument("--svg", action="store_true", help="write each figure as SVG")
    parser.add_argument("--png", action="store_true", help="write each figure as PNG")
    add_accept(parser)
    parser.add_argument(
        "--salvage",
        action="store_true",
        help="report what is intact in a damaged directory, and list what is lost",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the verdict as JSON")
    form.add_argument("--brief", action="store_true", help="print verdict, warnings and table only")
    parser.set_defaults(carry_out=report)


def report(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus report`."""
    from paribus.cli import outputs, shipped
    from paribus.report.figures import write_figures

    directory: Path = arguments.directory
    plan = read_plan(directory)
    add_accepted(directory, parse_accepted(arguments.accept))
    with Store(directory, salvage=arguments.salvage) as store:
        store.check_plan(plan.sha256)
        judgement = conclude(plan, store)
    judgement = beside(judgement, shipped.read_published(arguments.beside))
    if os.access(directory, os.W_OK):
        outputs.write_files(judgement, directory)
    formats = {name for name in ("svg", "png") if getattr(arguments, name)}
    if formats:
        write_figures(judgement, directory / "figures", formats)
    return outputs.tell(judgement, as_json=arguments.json, brief=arguments.brief)
