"""`paribus history DIR...`: one question over weeks, and when its answer changed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

EXAMPLE = """\
example:
  paribus history nightly/*.study --out network-history

The order on the command line does not matter: studies are ordered by when they began.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Show one question over weeks: each study, and when an effect changed."
    parser.add_argument("paths", metavar="DIR", type=Path, nargs="+", help="study directories")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="write history.html and history.json to DIR"
    )
    parser.add_argument("--json", action="store_true", help="print the history as JSON")
    parser.set_defaults(execute=show)


def show(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb."""
    from paribus.cli.outputs import check_folder, write_folder
    from paribus.logs import history
    from paribus.report.markup import document
    from paribus.report.printing import console_on

    out: Path | None = arguments.out
    check_folder(out)
    found = history.history(arguments.paths)
    text = json.dumps(history.to_json(found), indent=2, allow_nan=False)
    if arguments.json:
        print(text)
    else:
        history.print_history(found, console_on(sys.stdout))
    if out is not None:
        page = document(found.question, history.body(found))
        write_folder(out, {"history.json": f"{text}\n", "history.html": page})
    return 0
