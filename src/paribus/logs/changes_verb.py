"""Compare study directories: `paribus compare A B`, `run --against DIR` and `run --alone`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.audit.accepted import read_accepted
from paribus.cli.exports import gate
from paribus.cli.outputs import unwritten, write_folder
from paribus.core import UserError, Word
from paribus.logs.against import refuse
from paribus.logs.change import Changed
from paribus.logs.studies import compare_studies, read

if TYPE_CHECKING:
    from paribus.logs.change import Measured
    from paribus.logs.studies import Compared
    from paribus.report.gate import Rule


def changes(
    paths: Sequence[Path], out: Path | None, rules: Sequence[Rule], *, as_json: bool
) -> int:
    """Print what changed between studies, write it to `out`, and return the exit code.

    `rules` are those of --fail-on. Raises UserError as `check_rules`.
    """
    check_rules(rules)
    compared = compare_studies(paths)
    try:
        return _shown(compared, out, "report.html", rules, as_json=as_json)
    finally:
        if out is not None:
            _write_values(compared, out)


def check_rules(rules: Sequence[Rule]) -> None:
    """Raise UserError for a rule of --fail-on that is about one study: of a lens, or on sizes."""
    for rule in rules:
        if not isinstance(rule.word, Word) or rule.sizes:
            fix = "give it to `paribus report` for each study"
            raise UserError("is about one study, not about a change", place=str(rule), fix=fix)


def _shown(
    compared: Compared, out: Path | None, page: str, rules: Sequence[Rule], *, as_json: bool
) -> int:
    """Print studies side by side, write them to `out`, and return the exit code.

    `page` is the name of the HTML file. In the `rules` of --fail-on "slower" is an effect that
    worsened.
    """
    from paribus.logs import change_printed as change

    text = json.dumps(change.to_json(compared), indent=2, allow_nan=False)
    try:
        if as_json:
            print(text)
        else:
            from paribus.report.printing import console_on

            change.print_changes(compared, console_on(sys.stdout))
        sys.stdout.flush()
    finally:
        if out is not None:
            from paribus.logs import change_page

            write_folder(out, {"change.json": f"{text}\n", page: change_page.page(compared)})
    heads = [one for step in compared.steps for one in step.headlines]
    said = "{0.arm} in {0.benchmark}: {0.word}, {0.reason}"
    return gate(heads, rules, said.format, exit_code(compared))


def against(then: Measured, directory: Path, rules: Sequence[Rule], *, as_json: bool) -> int:
    """Print what changed from the study `then` to that in `directory`; return the exit code.

    Writes it to `directory` as well. Raises UnequalError if launches show that the reference is not
    what it was.
    """
    compared = compare_studies([Path(then.judgement.directory), directory], lone=True)
    refuse(compared.first, compared.steps[0].study, read_accepted(directory))
    return _shown(compared, directory, "against.html", rules, as_json=as_json)


def alone(days: Sequence[Measured], directory: Path, *, as_json: bool) -> None:
    """Print an arm measured in `directory` beside stored days of it, and write it there as well.

    Raises UnequalError if launches show that the arm is not what it was.
    """
    from paribus.logs import alone as shown
    from paribus.report.printing import console_on

    today = read(directory.resolve().name, directory)
    arm = today.plan.study.arms[0].name
    refuse(days[-1], today, read_accepted(directory), arm)
    heading, found = shown.title(today, days), shown.rows(days, today)
    text = json.dumps(shown.to_json(heading, days, found), indent=2, allow_nan=False)
    if as_json:
        print(text)
    else:
        shown.show(heading, found, console_on(sys.stdout))
    page = shown.page(days[-1].plan.study.question, heading, found)
    write_folder(directory, {"alone.json": f"{text}\n", "alone.html": page})


def exit_code(compared: Compared) -> int:
    """Return 3 if the verdict on a change is withheld, 4 if a benchmark has no data, else 0."""
    words = {change.word for step in compared.steps for change in step.headlines}
    if Changed.WITHHELD in words:
        return 3
    return 4 if Changed.NO_DATA in words else 0


def _write_values(compared: Compared, out: Path) -> None:
    from paribus.logs import change_printed as change
    from paribus.report.values import write_values

    figures = (
        one._replace(file=study.judgement.directory)
        for study in change.studies(compared)
        for one in study.judgement.figures
    )
    try:
        write_values(figures, out, files=True)
    except OSError as error:
        raise unwritten(error, out) from error
