"""Study files that Paribus writes, never over a file that is there, and study directories."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from paribus.errors import StudyError, UserError
from paribus.inputs import exists


def write_study(text: str, stem: Path, *, with_directory: bool = False) -> Path:
    """Return the file that `text` was written to: STEM.toml, or STEM-2.toml and so on if taken.

    With `with_directory`, STEM.study beside it is free too. Raises StudyError where it cannot be
    written.
    """
    for number in count(1):
        name = stem.name if number == 1 else f"{stem.name}-{number}"
        path = stem.with_name(f"{name}.toml")
        if exists(path) or (with_directory and exists(path.with_suffix(".study"))):
            continue
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            fix = "choose another name, or another directory"
            raise StudyError(f"cannot be written: {said}", place=str(path), fix=fix) from error
        return path
    raise AssertionError("count() has no end")


def made_directory(directory: Path) -> None:
    """Make the study directory where there is none; raises UserError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot be created: {error.strerror}",
            place=str(directory),
            fix="choose another directory with --out",
        ) from error
