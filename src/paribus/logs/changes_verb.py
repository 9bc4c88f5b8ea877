"""What `paribus compare` does with study directories: several side by side, or one by itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paribus.border import open_anew
from paribus.cli.exports import gate
from paribus.core import UserError, Word
from paribus.logs.change import Changed
from paribus.logs.studies import compare_studies

if TYPE_CHECKING:
    from paribus.logs.studies import Compared
    from paribus.report.gate import Rule


def changes(
    paths: Sequence[Path], out: Path | None, rules: Sequence[Rule], *, as_json: bool
) -> int:
    """Show what changed between studies, write it to `out`, and return the exit code.

    By the `rules` of --fail-on, slower is an effect that worsened. Raises UserError for a rule of
    a lens, such as one with sizes, which is about one study.
    """
    for rule in rules:
        if not isinstance(rule.word, Word) or rule.sizes:
            fix = "give it to `paribus report` for each study"
            raise UserError("is about one study, not about a change", place=str(rule), fix=fix)
    from paribus.logs import change_printed as change

    compared = compare_studies(paths)
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
            _write(compared, text, out)
    heads = [one for step in compared.steps for one in step.headlines]
    said = "{0.arm} in {0.benchmark}: {0.word}, {0.reason}"
    return gate(heads, rules, said.format, exit_code(compared))


def exit_code(compared: Compared) -> int:
    """Return 3 if the verdict on a change is withheld, 4 if a benchmark has no data, else 0."""
    words = {change.word for step in compared.steps for change in step.headlines}
    if Changed.WITHHELD in words:
        return 3
    return 4 if Changed.NO_DATA in words else 0


def _write(compared: Compared, text: str, out: Path) -> None:
    from paribus.logs import change_printed as change
    from paribus.logs.change_page import page
    from paribus.report.values import write_values

    figures = (
        one._replace(file=study.judgement.directory)
        for study in change.studies(compared)
        for one in study.judgement.figures
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, written in (("change.json", f"{text}\n"), ("report.html", page(compared))):
            with open_anew(out / name, encoding="utf-8") as file:
                file.write(written)
        write_values(figures, out, files=True)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", place=str(out), fix="choose another --out"
        ) from error
