"""`paribus run --resume` of a study that its user did not begin: shown, and asked for."""

from __future__ import annotations

import argparse
import sys
from itertools import count
from pathlib import Path

from paribus.border import exists, under
from paribus.launch.foreign import ForeignError, check_trusted, executed
from paribus.plan import Plan, read_plan


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Declare --trust."""
    parser.add_argument(
        "--trust",
        metavar="PLAN",
        default="",
        help="with --resume: run the commands of a study that somebody else began; PLAN is"
        " how the hash of its plan begins, which the refusal says",
    )


def plan_to_resume(study: Path, out: Path | None, trusted: str) -> Plan:
    """Return the plan frozen in `out`, or in the last directory of `study`, before it is loaded.

    Raises ForeignError for one that this user did not begin and that is not `trusted`; a terminal
    shows what it would execute.
    """
    directory = out or _last(study.stem)
    plan = read_plan(directory)
    try:
        check_trusted(plan, study, directory, trusted)
    except ForeignError:
        if under(sys.stderr).isatty():
            print(f"paribus: to resume {directory} executes:", file=sys.stderr)
            for at, text in executed(plan.study):
                print(f"  {at}: {text}", file=sys.stderr)
        raise
    return plan


def _last(name: str) -> Path:
    last = Path(f"{name}.study")
    for number in count(2):
        following = Path(f"{name}-{number}.study")
        if not exists(following):
            break
        last = following
    return last
