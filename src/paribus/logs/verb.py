"""`paribus compare A B`: the verb that compares logs and numbers from elsewhere, or studies.

Logs go to pairing.py and logged.py, tables to imported.py, one file of published figures to
lenses/published, and several study directories to changes_verb.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import exists
from paribus.cli.exports import add_exports, finish
from paribus.cli.shipped import add_beside, shipped_publication, with_published
from paribus.core import Direction, Judgement, StoreError, UserError, typed

if TYPE_CHECKING:
    from paribus.logs.imported import Answers
    from paribus.logs.pairing import Asked
    from paribus.logs.repeats import Repeats

EXAMPLE = """\
example:
  paribus compare logs/host logs/bridged --out network-report    # outputs of OSU, IMB, NPB, ...
  paribus compare host.log bridged.log
  paribus compare measured.csv
  paribus compare host.csv bridged.csv                           # two files as two arms
  paribus compare times.jsonl --unit s --better lower --reference old
  paribus compare infiniband roce --beside roce-2024             # beside published figures
  paribus compare before.study after.study                       # two studies of one question
  paribus compare both-commands.json                             # hyperfine: each command an arm
  paribus compare a.json b.json --facts a.tar.gz b.tar.gz        # with what differs between them

Paribus recognises logs by their content (`paribus list` shows the tools). From 8 launches of each
arm on, it compares them without pairing; pairs of neighbours in time (by dates in the logs, file
times, or a column time) can only add a verdict. `--pair` selects another way. A table is CSV,
Parquet or JSON Lines with the columns arm, benchmark, metric, value; block or time, if there are
fewer launches; and, where needed, case, unit, better, launch, sample. Exit code 3: a verdict is
withheld, because the numbers cannot support one.
"""


FIXED = (
    *("reference", "factor", "unit", "better", "pair", "repeated", "by", "margin"),
    *("part_of_arm", "key"),
)
"""The options that answer what logs and tables leave open; a study has fixed it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the verb."""
    parser.description = "Compare existing logs or tables, as far as their design allows."
    parser.add_argument(
        "paths",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="logs: a file or folder for each arm, the reference first; a table of all arms, or one"
        " for each; study directories, the earliest first; or one TOML file of published figures",
    )
    parser.add_argument(
        "--reference", metavar="ARM", default="", help="reference arm (default: the first)"
    )
    parser.add_argument(
        "--factor", metavar="TEXT", default="", help="the factor: what differs between the arms"
    )
    parser.add_argument("--unit", default="", help="unit of the values, if no column gives it")
    parser.add_argument(
        "--better",
        metavar="WORD",
        type=_direction,
        action="append",
        default=[],
        help="which values are better, if no column or file says so: lower or higher; of one figure"
        " of several: NAME=lower",
    )
    parser.add_argument(
        "--pair",
        choices=("name", "time", "order"),
        default="",
        help="how to pair logs (default: by time, where it is known)",
    )
    _add_settings(parser)
    _add_repeats(parser)
    parser.add_argument("--margin", metavar="SHARE", help='practical equivalence, such as "2 %%"')
    parser.add_argument(
        "--facts",
        metavar="FILE",
        nargs="+",
        default=[],
        help="what `paribus record` wrote on the machine of each arm, in the order of the arms"
        " or as ARM=FILE: the report lists what differs",
    )
    add_beside(parser)
    parser.add_argument("--out", metavar="DIR", type=Path, help="write the reports to DIR")
    add_exports(parser)
    parser.set_defaults(execute=compare)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--part-of-arm",
        metavar="NAME",
        type=_names,
        default=(),
        help="settings in which the arms may differ, because they are part of what is compared,"
        ' such as "threads,ranks" of two whole machines',
    )
    parser.add_argument(
        "--key",
        metavar="NAME",
        type=_names,
        default=(),
        help="settings that distinguish benchmarks, such as a device that the logs show",
    )


def _add_repeats(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say whether several outputs in one log are of one case."""
    parser.add_argument(
        "--repeated",
        action="store_true",
        help="several outputs in one log are repeats, whatever the log prints between them",
    )
    parser.add_argument(
        "--by",
        choices=("place", "name"),
        default="",
        help="place: the n-th output of a kind in a log is case n; name: files whose names differ"
        " in more than a count are cases",
    )


def compare(arguments: argparse.Namespace) -> int:
    """Return the exit code of `paribus compare`."""
    from paribus.cli import outputs, shipped
    from paribus.judge.conclude import judged
    from paribus.logs.changes_verb import changes
    from paribus.logs.imported import Answers
    from paribus.logs.settings import Moves
    from paribus.logs.studies import are_studies, study_of
    from paribus.studyfile.written import made_directory

    out: Path | None = arguments.out
    answers = Answers(
        arguments.reference,
        arguments.factor,
        arguments.unit,
        next((word for name, word in arguments.better if not name), None),
        _margin(arguments.margin),
        {name: word for name, word in arguments.better if name},
        Moves(arguments.part_of_arm, arguments.key),
    )
    if out is not None and exists(out) and (not out.is_dir() or any(out.iterdir())):
        raise StoreError("already exists", place=str(out), fix="choose another with --out")
    if arguments.to and out is None:
        raise UserError("writes files", place="--to", fix="say where: add --out DIR")
    publications = shipped.read_published(arguments.beside)
    fixed = {name: getattr(arguments, name) for name in FIXED}
    if len(arguments.paths) == 1 and not (arguments.facts or any(fixed.values())):
        arguments.paths = [study_of(arguments.paths[0])]
    if are_studies(arguments.paths):
        _refuse_options(arguments, fixed)
        if len(arguments.paths) > 1:
            return changes(arguments.paths, out, arguments.fail_on, as_json=arguments.json)
        judgement = judged(arguments.paths[0])
    else:
        by: Repeats = "repeated" if arguments.repeated else arguments.by
        judgement = _judged(arguments.paths, answers, (arguments.pair, by), str(out or ""))
    if arguments.facts:
        from paribus.logs.recordings import with_facts

        judgement = with_facts(judgement, arguments.facts, answers.reference)
    judgement = with_published(judgement, publications)

    def write() -> None:
        if out is not None:
            made_directory(out)
            outputs.write_files(judgement, out)

    code = outputs.print_and_write(judgement, write, **outputs.form(arguments))
    return finish(arguments, judgement, out, code)


def _direction(text: str) -> tuple[str, Direction]:
    """Return the metric and direction of an argument of --better; the metric is "" for all."""
    name, _, word = text.rpartition("=")
    if word not in ("lower", "higher"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither lower nor higher; for one figure of several write NAME=lower"
        )
    return name, "lower" if word == "lower" else "higher"


def _refuse_options(arguments: argparse.Namespace, given: dict[str, Any]) -> None:
    """Raise UserError for options that a study fixes itself (`given`), or that need one study."""
    if arguments.facts:
        fix = "leave it out: a study recorded the facts of its arms"
        raise UserError("is not possible with study directories", place="--facts", fix=fix)
    if len(arguments.paths) > 1:
        given |= {"beside": arguments.beside, "to": arguments.to}
    if wrong := next((name for name, value in given.items() if value), None):
        raise UserError(
            "is not possible with study directories",
            place=f"--{wrong.replace('_', '-')}",
            fix="leave it out: the plan of a study fixes it"
            if wrong in FIXED
            else "use it with `paribus report DIR`, of one study",
        )


def _judged(
    paths: list[Path], answers: Answers, asked: tuple[Asked, Repeats], directory: str
) -> Judgement:
    """Return the judgement of logs, of tables, or of one file of published figures.

    `asked` is how to pair logs, and what several outputs in one file are.
    """
    from paribus.lenses.published.beside import alone
    from paribus.lenses.published.reading import load_publication
    from paribus.logs import imported, logged, logs, pairing, reading
    from paribus.logs.tables.files import read_tables

    if len(paths) == 1 and (ships := shipped_publication(paths[0])):
        paths = [ships]
    printed = [path for path in paths if path.suffix == ".toml"]
    if printed and len(paths) > 1:
        fix = f"to see published figures beside yours: {typed(('--beside', printed[0]))}"
        raise UserError("is neither a log nor a table", place=str(printed[0]), fix=fix)
    if printed:
        if any(asked) or answers != imported.Answers():
            fix = f"leave out --{', --'.join(FIXED).replace('_', '-')}"
            raise UserError(
                "are published figures, shown as they are", place=str(paths[0]), fix=fix
            )
        return alone(load_publication(printed[0]), directory)
    if logs.are_logs(paths):
        paired = pairing.pair_logs(*logs.find_logs(paths), *asked, answers.moves)
        return logged.judge_logs(paired, answers, directory=directory)
    reading.refuse_strange(paths)
    if any(asked):
        place = "--pair, --repeated, --by"
        raise UserError("matters to logs, and this is a table", place=place, fix="leave it out")
    return imported.judge_table(read_tables(paths), answers, directory=directory)


def _names(text: str) -> tuple[str, ...]:
    """Return the names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _margin(text: str | None) -> float | None:
    from paribus.core import parse_share

    if text is None:
        return None
    try:
        return parse_share(text)
    except ValueError as error:
        raise UserError(str(error), place="--margin", fix='for example --margin "2 %"') from error
