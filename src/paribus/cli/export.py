"""`paribus export DIR --to latex`: the files of `paribus report` with `--to` alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from paribus.cli.exported import write
from paribus.cli.exports import add_formats
from paribus.cli.report import judged

EXAMPLE = """\
examples:
  paribus export network-study --to parquet              # every figure of every launch
  paribus export network-study --to latex --to ipynb     # a table for a paper, and a notebook
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a study or a report for other tools, as `paribus report` with `--to` does."
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="as for `paribus report`")
    add_formats(parser, required=True)
    parser.set_defaults(
        execute=export, beside=[], profile=None, accept=[], salvage=False, fail_on=[]
    )


def export(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb: 0 whatever the verdict is."""
    from paribus.cli import outputs

    judgement, directory, fresh = judged(arguments)
    if fresh:
        outputs.write_files(judgement, directory)
    for path in write(arguments, judgement, directory):
        print(path)
    return 0
