"""`--to FORMAT`: the files for papers and pipelines that a judgement is written to."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TextIO, TypeVar

from paribus.border import as_error, is_file, open_anew
from paribus.cli.exports import DRAWN, PAPER, PARQUET, TEXTS, UNITS
from paribus.core import Judgement, MachineError, UserError, lenses
from paribus.report import export, values
from paribus.report.figures import captions, write_figures

W = TypeVar("W")

FIGURES = "figures"

COLUMN = 88 * UNITS["mm"]
"""The width of a journal's column, which figures of a paper have where --width is not given."""


def write(arguments: argparse.Namespace, judgement: Judgement, directory: Path) -> list[Path]:
    """Write `judgement` in the formats of --to into `directory` and return the paths.

    Raises UserError where a file cannot be written, and where values.parquet, which each report
    writes anyway, is missing.
    """
    written = []
    if PARQUET in arguments.to:
        written.append(directory / values.NAME)
        if not is_file(written[0]):
            raise UserError(
                "is not there", place=str(written[0]), fix="`paribus report` of the study writes it"
            )
    asked = set(arguments.to) & set(DRAWN)
    shape = {"title": arguments.title, "width": arguments.width}
    if drawn := asked | {kind for text, kind in INCLUDES.items() if text in arguments.to}:
        try:
            written += write_figures(judgement, directory / FIGURES, drawn, **shape)
        except MachineError as error:
            if asked:
                raise
            print(f"paribus: texts without figures: {error}", file=sys.stderr)
    pictures = _captioned(judgement, written, directory)
    texts = [
        (TEXTS[one], _text(one, arguments, judgement, pictures))
        for one in TEXTS
        if one in arguments.to
    ]
    for lens, rows in lenses(judgement) if "csv" in arguments.to else ():
        name, of_rows = lens.csv
        if name:
            texts.append((name, _csv(export.write_csv, of_rows(judgement, rows))))
    if PAPER in arguments.to:
        texts += _article(arguments, judgement, directory / PAPER, written)
    for name, text in texts:
        path = directory / name
        fix = "make the directory writable, or report on a copy of it"
        with as_error(UserError, path, fix), open_anew(path, encoding="utf-8", newline="") as file:
            file.write(text)
        written.append(path)
    return written


def _captioned(judgement: Judgement, paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return the captions of the figures among `paths`, by their paths from `folder`."""
    known = captions(judgement)
    return {
        path.relative_to(folder).as_posix(): known[path.stem]
        for path in paths
        if path.parent == folder / FIGURES and path.stem in known
    }


def _article(
    arguments: argparse.Namespace, judgement: Judgement, folder: Path, written: list[Path]
) -> list[tuple[str, str]]:
    """Write the figures of a paper, add them to `written`, and return the names and texts of it."""
    from paribus.paper import article

    width = arguments.width or COLUMN
    drawn: list[Path] = []
    try:
        drawn = write_figures(judgement, folder / FIGURES, {"pdf"}, width=width)
    except MachineError as error:
        print(f"paribus: a paper without figures: {error}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
    written += drawn
    pictures = _captioned(judgement, drawn, folder)
    texts = article.files(judgement, arguments.title, pictures, width / UNITS["mm"])
    return [(f"{PAPER}/{name}", text) for name, text in texts.items()]


INCLUDES = {"markdown": "svg", "latex": "pdf"}
"""The format of the figures in each kind of text that includes some."""


def _text(
    name: str, arguments: argparse.Namespace, judgement: Judgement, pictures: Mapping[str, str]
) -> str:
    """Return the text of the format `name`; `pictures`: captions by path, as from `_captioned`."""
    from paribus.paper import latex, markdown, notebook, openbenchmarking
    from paribus.report import junit

    if name == "ipynb":
        return notebook.document(judgement)
    if name == "openbenchmarking":
        return openbenchmarking.document(judgement)
    if name == "junit":
        return junit.document(judgement, arguments.fail_on)
    if name == "csv":
        return _csv(export.table_csv, judgement)
    mine = {path: text for path, text in pictures.items() if path.endswith(INCLUDES[name])}
    if name == "markdown":
        return markdown.document(judgement, arguments.title, mine)
    return latex.document(judgement, arguments.title, mine)


def _csv(write: Callable[[W, TextIO], None], what: W) -> str:
    file = io.StringIO(newline="")
    write(what, file)
    return file.getvalue()
