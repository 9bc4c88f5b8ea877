"""`paribus compare TABLE`: numbers from elsewhere, analysed as far as their design allows."""

from __future__ import annotations

import argparse
from pathlib import Path

from paribus.errors import StoreError, UserError

EXAMPLE = """\
example:
  paribus compare measured.csv
  paribus compare host.csv bridged.csv --out network-report      # two files as two arms
  paribus compare times.jsonl --unit s --better lower --reference old

A table is CSV, Parquet or JSON Lines with the columns arm, benchmark, metric, value; block or
time (without one of them no verdict is possible); and, where needed, case, unit, better, launch,
sample. Exit code 3: a verdict is withheld, because the numbers cannot support one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = "Compare numbers from elsewhere, as far as their design allows."
    parser.epilog = EXAMPLE
    parser.add_argument(
        "tables",
        metavar="TABLE",
        type=Path,
        nargs="+",
        help="a table of all arms, or one for each arm, the reference first",
    )
    parser.add_argument("--reference", metavar="ARM", default="", help="(the first arm)")
    parser.add_argument(
        "--factor", metavar="TEXT", default="", help="what differs between the arms"
    )
    parser.add_argument("--unit", default="", help="unit of the values, if no column says it")
    parser.add_argument("--better", choices=("lower", "higher"), help="if no column says it")
    parser.add_argument(
        "--pair", choices=("name", "time", "order"), default="", help="what pairs logs (what tells)"
    )
    parser.add_argument("--margin", metavar="SHARE", help='practical equivalence, such as "2 %%"')
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the reports into DIR")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.set_defaults(carry_out=compare)


def compare(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus compare`."""
    from paribus.cli import outputs
    from paribus.study.imported import Answers, judge_table
    from paribus.study.logged import judge_logs
    from paribus.study.logs import are_logs, find_logs
    from paribus.study.pairing import pair_logs
    from paribus.tables.files import read_tables

    out: Path | None = arguments.out
    answers = Answers(
        arguments.reference,
        arguments.factor,
        arguments.unit,
        arguments.better,
        _margin(arguments.margin),
    )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise StoreError("exists already", place=str(out), mend="choose another with --out")
    if are_logs(arguments.tables):
        logs = pair_logs(*find_logs(arguments.tables), arguments.pair)
        judgement = judge_logs(logs, answers, directory=str(out or ""))
    else:
        table = read_tables(arguments.tables)
        judgement = judge_table(table, answers, directory=str(out or ""))
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            outputs.write_files(judgement, out)
        except OSError as error:
            raise UserError(
                f"cannot be written: {error.strerror}", place=str(out), mend="choose another --out"
            ) from error
    return outputs.tell(judgement, as_json=arguments.json)


def _margin(text: str | None) -> float | None:
    from paribus.units import parse_share

    if text is None:
        return None
    try:
        return parse_share(text)
    except ValueError as error:
        raise UserError(str(error), place="--margin", mend='for example --margin "2 %"') from error
