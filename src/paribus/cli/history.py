"""`paribus history DIR...`: one question over weeks, and when its answer changed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from paribus.border import open_anew
from paribus.core import StoreError, UserError

EXAMPLE = """\
example:
  paribus history nightly/*.study --out network-history

The order on the command line does not matter: studies are ordered by when they began.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = "Show one question over weeks: each study, and when an effect changed."
    parser.add_argument("paths", metavar="DIR", type=Path, nargs="+", help="study directories")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="write history.html and history.json to DIR"
    )
    parser.add_argument("--json", action="store_true", help="print the history as JSON")
    parser.set_defaults(carry_out=show)


def show(arguments: argparse.Namespace) -> int:
    """Return the exit code of the verb."""
    from paribus.logs import history_shown as shown
    from paribus.logs.history import history
    from paribus.report.markup import document
    from paribus.report.printing import console_on

    out: Path | None = arguments.out
    if out is not None and out.exists() and (not out.is_dir() or (out / "plan.json").exists()):
        fix = "choose another folder with --out"
        raise StoreError("is no folder for a history", place=str(out), fix=fix)
    found = history(arguments.paths)
    text = json.dumps(shown.to_json(found), indent=2, allow_nan=False)
    if arguments.json:
        print(text)
    else:
        shown.print_history(found, console_on(sys.stdout))
    if out is None:
        return 0
    page = document(found.question, shown.body(found))
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, written in (("history.json", f"{text}\n"), ("history.html", page)):
            with open_anew(out / name, encoding="utf-8") as file:
                file.write(written)
    except OSError as error:
        fix = "choose another --out"
        cause = f"cannot be written: {error.strerror}"
        raise UserError(cause, place=str(out), fix=fix) from error
    return 0
