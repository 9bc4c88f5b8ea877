"""What can be done to a study from the browser: exactly what a user would type."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

from paribus.border import is_file
from paribus.core import UserError
from paribus.launch import background
from paribus.launch.foreign import check_trusted
from paribus.plan import Plan, read_plan
from paribus.store import alive
from paribus.web.found import Found
from paribus.web.now import STOPPING


class Act(StrEnum):
    """What may be done."""

    STOP = "stop"
    RESUME = "resume"


def acted(act: Act, found: Found, trusted: str = "") -> str:
    """Run `act`, and return what was done. Raises ParibusError where it is not possible.

    A study that this user did not begin is resumed if its plan has the hash `trusted`.
    """
    if act is Act.STOP:
        background.interrupt(found.path)
        return STOPPING
    return _resume(found, trusted)


def to_resume(found: Found) -> tuple[Plan, Path]:
    """Return the plan of a study and its study file; raises ParibusError without either."""
    plan = read_plan(found.path)
    file = found.path.parent / plan.study.path  # which may be absolute
    if not is_file(file):
        raise UserError(
            "the study file is not there any more",
            place=str(file),
            fix="put it back, or resume it by hand: `paribus run STUDY --out DIR --resume`",
        )
    return plan, file


def _resume(found: Found, trusted: str) -> str:
    if alive(found.path):
        raise UserError("the study runs already", place=found.name, fix="stop it first")
    plan, file = to_resume(found)
    check_trusted(plan, file, found.path, trusted)
    argv = [sys.executable, "-m", "paribus", "run", str(file), "--out", str(found.path), "--resume"]
    argv += ["--trust", trusted] if trusted else []
    background.start(argv, file.parent, log_of(found.path))
    return f"resumed; what it prints goes into {log_of(found.path).name}"


def log_of(directory: Path) -> Path:
    """Return the file, beside a study directory, that takes what its `paribus run` prints."""
    return directory.with_name(f"{directory.name}.log")
