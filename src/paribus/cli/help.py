"""`paribus help VERB`: what `paribus VERB --help` prints."""

from __future__ import annotations

import argparse

EXAMPLE = """\
example:
  paribus help
  paribus help run
  paribus help topology show
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Explain Paribus, or a verb."
    parser.add_argument("verb", metavar="VERB", nargs="*", help="a verb, and an action of it")
    parser.set_defaults(execute=explain)


def explain(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus help`."""
    from paribus.cli import dispatch

    return dispatch([*arguments.verb, "--help"])
