"""`paribus calibrate STUDY`: the reference against itself, to see what the study could show."""

from __future__ import annotations

import argparse
from pathlib import Path

from paribus.cli import run as launching
from paribus.core import Study, UserError
from paribus.report.gate import rule_of

EXAMPLE = """\
example:
  paribus calibrate container-network --dry-run     # what it launches, and how long
  paribus calibrate container-network
  paribus run container-network --calibration container-network-calibration.study
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb: those of `run`."""
    launching.add_arguments(parser)
    parser.description = (
        "Compare the reference of a study with itself, under the study's own plan. Either this\n"
        "machine shows a difference where there is none, and a study on it is not to be believed,\n"
        "or a table has the least differences that more and more blocks can show, and their price."
    )
    parser.set_defaults(execute=calibrate, designed=_calibrated)


def calibrate(arguments: argparse.Namespace) -> int:
    """Return the exit code: 1 for a difference between equal arms, else that of `run`."""
    if arguments.out is None:
        arguments.out = Path(f"{Path(arguments.study).stem}-calibration.study")
    arguments.fail_on = [*arguments.fail_on, rule_of("difference")]
    return launching.run(arguments)


def _calibrated(arguments: argparse.Namespace, study: Study) -> Study:
    """Return the study that is run: the reference twice."""
    from paribus.designs.calibrate import calibrated

    if arguments.monitor or arguments.every is not None:
        fix = "drop --monitor and --every"
        raise UserError("a calibration has an end", place="--monitor", fix=fix)
    return calibrated(study)
