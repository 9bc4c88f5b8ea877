"""`paribus help VERB`: what `paribus VERB --help` prints."""

from __future__ import annotations

import argparse

EXAMPLE = """\
example:
  paribus help
  paribus help run
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Explain Paribus, or a verb."
    parser.add_argument("verb", metavar="VERB", nargs="?", help="a verb, such as run")
    parser.set_defaults(execute=explain)


def explain(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus help`."""
    from paribus.cli import dispatch

    return dispatch([*([arguments.verb] if arguments.verb else []), "--help"])
