"""How a judgement leaves Paribus: options that verbs share, files for papers, a pipeline's gate."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from paribus.core import Judgement, MachineError, UserError
from paribus.designs import design_of

if TYPE_CHECKING:
    from paribus.report.gate import Judged, Rule

    T = TypeVar("T", bound=Judged)
    W = TypeVar("W")

TEXTS = {
    "markdown": "table.md",
    "latex": "table.tex",
    "csv": "table.csv",
    "junit": "junit.xml",
    "ipynb": "figures.ipynb",
    "openbenchmarking": "composite.xml",
}
"""Formats of one file, and what it is called."""

FIGURES = "figures"
DRAWN = ("svg", "png", "pdf")
PARQUET = "parquet"
PAPER = "paper"
FORMATS = (*TEXTS, *DRAWN, PARQUET, PAPER)
FAILED = 1
"""The exit code where a rule of --fail-on is met."""

UNITS = {"": 1.0, "px": 1.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72}
"""Units of length in px, as CSS defines them."""

LEAST_WIDTH, MOST_WIDTH = 150.0, 5000.0
COLUMN = 88 * UNITS["mm"]
"""The width of a journal's column, which figures of a paper have where --width is not given."""


def add_accept(parser: argparse.ArgumentParser) -> None:
    """Declare --accept, which several verbs share."""
    parser.add_argument(
        "--accept",
        metavar='KEY="reason"',
        action="append",
        default=[],
        help="accept this difference; the report shows the reason (repeatable)",
    )


def add_exports(parser: argparse.ArgumentParser) -> None:
    """Declare --to, --title, --width, --fail-on, --json, --brief and --full."""
    add_formats(parser)
    parser.add_argument(
        "--fail-on",
        metavar="WORD",
        type=parse_rules,
        action="extend",
        default=[],
        help=f"exit with code {FAILED} if a verdict is slower, undecided, or reliability differs,"
        " or an arm is less steady: slower, slower:5%% (the whole interval beyond),"
        " slower:5%%@64KiB- (at any size from there on), undecided, reliability, less-steady,"
        " difference (of a calibration); with commas",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the verdict as JSON")
    form.add_argument("--brief", action="store_true", help="print verdict, warnings and table only")
    form.add_argument(
        "--full", action="store_true", help="print all on a terminal too, as in a pipe"
    )


def add_formats(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Declare --to, --title and --width."""
    parser.add_argument(
        "--to",
        metavar="FORMAT",
        choices=FORMATS,
        action="append",
        default=[],
        required=required,
        help=f"write files for a paper or a pipeline; may be repeated: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--title", metavar="TEXT", default="", help="with --to: title of tables and figures"
    )
    parser.add_argument(
        "--width", metavar="LENGTH", type=_length, help="with --to: width of figures, such as 88mm"
    )


def finish(
    arguments: argparse.Namespace, judgement: Judgement, directory: Path | None, code: int
) -> int:
    """Write what --to asks for into `directory`, print the names, and return the exit code.

    It is `code`, or FAILED where a rule of --fail-on is met. Raises UserError where nothing can be
    written.
    """
    from paribus.core import failing, unjudged
    from paribus.report.sentences import headline_sentence

    if directory is not None and arguments.to:
        paths = write(arguments, judgement, directory)
        out = sys.stderr if arguments.json else sys.stdout
        print("\nWritten:", *(f"  {path}" for path in paths), sep="\n", file=out)
    if not arguments.fail_on:
        return code
    rules = [str(rule) for rule in arguments.fail_on]
    for rule, takes in unjudged(judgement, rules):
        print(f"paribus: --fail-on {rule}: not judged: it takes {takes}", file=sys.stderr)
    of_lenses = list(failing(judgement, rules))
    for rule, said in of_lenses:
        print(f"paribus: --fail-on {rule}: {said}", file=sys.stderr)
    return gate(
        (*judgement.headlines, *judgement.others),
        arguments.fail_on,
        lambda head: headline_sentence(judgement, head),
        FAILED if of_lenses else code,
        monitored=not design_of(judgement.study).has_end,
    )


def gate(
    several: Iterable[T],
    rules: Sequence[Rule],
    said: Callable[[T], str],
    code: int,
    *,
    monitored: bool = False,
) -> int:
    """Return the exit code by the `rules`; stderr says which comparison fails by which."""
    from paribus.report.gate import failures

    found = failures(several, rules, monitored=monitored)
    for one, rule in found:
        print(f"paribus: --fail-on {rule}: {said(one)}", file=sys.stderr)
    return FAILED if found else code


def write(arguments: argparse.Namespace, judgement: Judgement, directory: Path) -> list[Path]:
    """Write `judgement` in the formats of --to into `directory` and return the paths.

    Every report comes with values.parquet; where that is missing, UserError is raised.
    """
    from paribus.border import is_file, open_anew
    from paribus.core import lenses
    from paribus.report import export, values
    from paribus.report.figures import write_figures

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
        try:
            with open_anew(path, encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise UserError(
                f"cannot be written: {error.strerror}",
                place=str(path),
                fix="make the directory writable, or report on a copy of it",
            ) from error
        written.append(path)
    return written


def _captioned(judgement: Judgement, paths: Iterable[Path], folder: Path) -> dict[str, str]:
    """Return the figures that texts in `folder` include, with what stands below each."""
    from paribus.report.figures import captions

    known = captions(judgement)
    return {
        path.relative_to(folder).as_posix(): known[path.stem]
        for path in paths
        if path.parent == folder / FIGURES and path.stem in known
    }


def _article(
    arguments: argparse.Namespace, judgement: Judgement, folder: Path, written: list[Path]
) -> list[tuple[str, str]]:
    """Write the figures of a paper, note them in `written`, and return its texts by their names."""
    from paribus.paper import article
    from paribus.report.figures import write_figures

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
"""The texts that include figures, in which format."""


def _text(
    name: str, arguments: argparse.Namespace, judgement: Judgement, pictures: Mapping[str, str]
) -> str:
    from paribus.paper import latex, markdown, notebook, openbenchmarking
    from paribus.report import export, junit

    if name == "ipynb":
        return notebook.document(judgement)
    if name == "openbenchmarking":
        return openbenchmarking.document(judgement)
    if name == "junit":
        return junit.document(judgement, arguments.fail_on)
    if name == "csv":
        return _csv(export.table_csv, judgement)
    mine = {p: said for p, said in pictures.items() if p.endswith(INCLUDES[name])}
    if name == "markdown":
        return markdown.document(judgement, arguments.title, mine)
    return latex.document(judgement, arguments.title, mine)


def _csv(write: Callable[[W, TextIO], None], what: W) -> str:
    import io

    file = io.StringIO(newline="")
    write(what, file)
    return file.getvalue()


def parse_rules(text: str) -> Sequence[Rule]:
    """Return the rules in "slower:5%,reliability": words, of which slower may have share and sizes.

    Raises ArgumentTypeError.
    """
    from paribus.report.gate import WORDS, rule_of

    found = []
    for one in text.split(","):
        try:
            found.append(rule_of(one.strip()))
        except ValueError:
            fix = (
                "write for example slower, or slower:5%, slower:5%@64KiB-, or slower:5%,reliability"
            )
            raise argparse.ArgumentTypeError(
                f"{one!r} is none of {', '.join(WORDS)}; {fix}"
            ) from None
    return found


def _length(text: str) -> float:
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no length; write for example 88mm or 3.5in")
    pixels = float(match[1]) * UNITS[match[2]]
    if not LEAST_WIDTH <= pixels <= MOST_WIDTH:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 40mm and 1320mm")
    return pixels
