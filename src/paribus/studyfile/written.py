"""Study files that Paribus writes, never over a file that is there, and study directories."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path

from paribus.border import exists
from paribus.core import StudyError, UserError


def write_study(text: str, stem: Path, *, with_directory: bool = False) -> Path:
    """Return the file that `text` was written to: STEM.toml, or STEM-2.toml and so on if taken.

    With `with_directory`, STEM.study beside it is free too. Raises StudyError where it cannot be
    written.
    """
    for path in _names(stem):
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


def last_study(stem: Path) -> Path | None:
    """Return the file that `write_study` wrote last for `stem`, None where the first is free."""
    taken = list(takewhile(exists, _names(stem)))
    return taken[-1] if taken else None


def _names(stem: Path) -> Iterator[Path]:
    yield stem.with_name(f"{stem.name}.toml")
    yield from (stem.with_name(f"{stem.name}-{number}.toml") for number in count(2))


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
