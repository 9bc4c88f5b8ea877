"""`paribus pool A.zip B.zip C.zip`: one question, measured at several sites."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """\
examples:
  paribus pool here.zip theirs.zip third.zip     # files of `paribus pack`, or study directories
  paribus pool site-*.zip --out pooled           # writes pool.json and report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say what studies of one question from three sites or more say together: a common ratio"
        " with its interval, how far the sites scatter, and from five sites on the range in which"
        " another site is to be expected."
    )
    parser.add_argument(
        "paths", metavar="STUDY", type=Path, nargs="+", help="study directory, or FILE.zip"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="write pool.json and report.html")
    parser.add_argument("--json", action="store_true", help="print JSON, paribus.pool/1")
    parser.set_defaults(execute=pooled)


def pooled(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus pool`; raises UserError for different questions."""
    import json
    import sys

    from paribus.cli.outputs import check_folder, write_folder
    from paribus.logs import pooled as shown
    from paribus.report.printing import console_on

    out: Path | None = arguments.out
    check_folder(out)
    pool = shown.pool_of(arguments.paths)
    text = json.dumps(shown.to_json(pool), indent=2, allow_nan=False)
    if arguments.json:
        print(text)
    else:
        shown.print_pool(pool, console_on(sys.stdout))
    if out is not None:
        write_folder(out, {"pool.json": f"{text}\n", "report.html": shown.page(pool)})
    return 0
