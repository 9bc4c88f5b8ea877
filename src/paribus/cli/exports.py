"""Options on output that verbs share: --to and its formats, --fail-on and the exit code."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from paribus.core import Judgement
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
"""Formats that are one file, with its name."""

DRAWN = ("svg", "png", "pdf")
PARQUET = "parquet"
PAPER = "paper"
FORMATS = (*TEXTS, *DRAWN, PARQUET, PAPER)
FAILED = 1
"""The exit code where a rule of --fail-on is met."""

UNITS = {"": 1.0, "px": 1.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "pt": 96 / 72}
"""Units of length in px, as CSS defines them."""

LEAST_WIDTH, MOST_WIDTH = 150.0, 5000.0


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
        from paribus.cli.exported import write

        paths = write(arguments, judgement, directory)
        out = sys.stderr if arguments.json else sys.stdout
        print("\nWritten:", *(f"  {path}" for path in paths), sep="\n", file=out)
    if not arguments.fail_on:
        return code
    rules = [str(rule) for rule in arguments.fail_on]
    for rule, takes in unjudged(judgement, rules):
        print(f"paribus: --fail-on {rule}: not judged: it takes {takes}", file=sys.stderr)
    of_lenses = list(failing(judgement, rules))
    for rule, text in of_lenses:
        print(f"paribus: --fail-on {rule}: {text}", file=sys.stderr)
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
    sentence: Callable[[T], str],
    code: int,
    *,
    monitored: bool = False,
) -> int:
    """Return FAILED where one of `several` fails by one of the `rules`, else `code`.

    stderr names each that fails, by its `sentence`.
    """
    from paribus.report.gate import failures

    found = failures(several, rules, monitored=monitored)
    for one, rule in found:
        print(f"paribus: --fail-on {rule}: {sentence(one)}", file=sys.stderr)
    return FAILED if found else code


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
