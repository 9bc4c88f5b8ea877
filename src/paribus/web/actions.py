"""What can be done to a study from the browser: exactly what a user would type."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

from paribus.errors import UserError
from paribus.inputs import is_file
from paribus.plan import read_plan
from paribus.platform import background
from paribus.records.standing import alive
from paribus.web.found import Found


class Act(StrEnum):
    """What may be done."""

    STOP = "stop"
    RESUME = "resume"


def acted(act: Act, found: Found) -> str:
    """Carry out `act`, and return what was done. Raises ParibusError where it is not possible."""
    if act is Act.STOP:
        background.interrupt(found.path)
        return "stopping: the launch in flight is given up, what is stored stays"
    return _resume(found)


def _resume(found: Found) -> str:
    if alive(found.path):
        raise UserError("the study runs already", place=found.name, fix="stop it first")
    path = Path(read_plan(found.path).study.path)
    file = path if path.is_absolute() else found.path.parent / path
    if not is_file(file):
        raise UserError(
            "the study file is not there any more",
            place=str(file),
            fix="put it back, or resume it by hand: `paribus run STUDY --out DIR --resume`",
        )
    argv = [sys.executable, "-m", "paribus", "run", str(file), "--out", str(found.path), "--resume"]
    background.start(argv, file.parent, log_of(found.path))
    return f"resumed; what it prints goes into {log_of(found.path).name}"


def log_of(directory: Path) -> Path:
    """Return the file, beside a study directory, that takes what its `paribus run` prints."""
    return directory.with_name(f"{directory.name}.log")
