"""A judgement shown: the files of its report, the terminal or JSON, the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from paribus.border import as_error, open_anew
from paribus.core import Judgement, MachineError, Progress, UserError, Word
from paribus.judge.conclude import conclude
from paribus.judge.evidence import Evidence
from paribus.plan import Plan
from paribus.store import Store

if TYPE_CHECKING:
    import argparse


class _Display(Protocol):
    def update(self, progress: Progress) -> None: ...


class _Silent:
    def update(self, progress: Progress) -> None:
        """Show nothing."""


def display(*, quiet: bool) -> AbstractContextManager[_Display]:
    """Return the display of a study's progress on stderr; with `quiet` one that shows nothing."""
    if quiet:
        return nullcontext(_Silent())
    from paribus.report.printing import console_on
    from paribus.report.progress import Display

    return Display(console_on(sys.stderr))


def conclude_and_write(plan: Plan, store: Store, evidence: Evidence | None = None) -> Judgement:
    """Return the judgement of a study after writing its reports into the directory of `store`.

    `evidence` is that of all stored launches, where it need not be read from the store.
    """
    judgement = conclude(plan, store, evidence)
    write_files(judgement, store.directory)
    return judgement


def write_files(judgement: Judgement, directory: Path) -> None:
    """Write verdict.json, report.html, and the tables beside them into `directory`.

    Raises UserError where they cannot be written.
    """
    from paribus.report import export, html, lookup, values

    text = json.dumps(export.to_json(judgement), indent=2, allow_nan=False)
    fix = "free space there, or make it writable; `paribus report DIR` writes them"
    cause = "the files of the report cannot be written"
    with as_error(UserError, directory, fix, cause, named=True):
        with open_anew(directory / "verdict.json") as file:
            file.write(text + "\n")
        with open_anew(directory / "cases.csv", newline="") as file:
            export.cases_csv(judgement, file)
        with open_anew(directory / "launches.csv", newline="") as file:
            export.launches_csv(judgement, file)
        values.write_values(judgement.figures, directory, files=not lookup.measured(judgement))
    try:
        html.write_html(judgement, directory / "report.html")
    except MachineError as error:
        print(f"paribus: {directory / 'report.html'} is not written: {error}", file=sys.stderr)


def form(arguments: argparse.Namespace) -> dict[str, bool]:
    """Return the options --json, --brief and --full as arguments of `print_and_write`."""
    return {"as_json": arguments.json, "brief": arguments.brief, "full": arguments.full}


def print_and_write(
    judgement: Judgement,
    write: Callable[[], None],
    *,
    as_json: bool,
    brief: bool = False,
    full: bool = False,
) -> int:
    """Call `write`, print the judgement, which names the files, and return its exit code.

    An error of `write` is raised after the text is printed, which needs no file.
    """
    failed: Exception | None = None
    try:
        write()
    except Exception as error:
        failed = error
    code = print_judgement(judgement, as_json=as_json, brief=brief, full=full)
    sys.stdout.flush()
    if failed is not None:
        raise failed
    return code


def print_judgement(
    judgement: Judgement, *, as_json: bool, brief: bool = False, full: bool = False
) -> int:
    """Print the judgement for people, or as JSON, and return its exit code.

    A terminal gets a report of one screen, or with `full` the whole one, which a pipe gets anyway.
    `brief`: only the first sentence, the warnings and the table of verdicts.
    """
    if as_json:
        from paribus.report import export

        print(json.dumps(export.to_json(judgement), indent=2, allow_nan=False))
        return exit_code(judgement)
    from paribus.report.printing import console_on

    console = console_on(sys.stdout)
    if console.is_terminal and not (full or brief):
        from paribus.report.short import print_short

        print_short(judgement, console)
    else:
        from paribus.report.terminal import print_report

        print_report(judgement, console, brief=brief)
    return exit_code(judgement)


def exit_code(judgement: Judgement) -> int:
    """Return 3 if a verdict is withheld, 4 if a benchmark has no data, else 0."""
    words = {finding.verdict.word for finding in judgement.headlines}
    if Word.WITHHELD in words:
        return 3
    return 4 if Word.NO_DATA in words else 0


def check_folder(out: Path | None) -> None:
    """Raise UserError where `write_folder` would write over the reports of a study."""
    if out is not None and out.exists() and (not out.is_dir() or (out / "plan.json").exists()):
        what = "is a study directory" if out.is_dir() else "is a file"
        raise UserError(what, place=str(out), fix="choose another folder with --out")


def write_folder(out: Path, texts: Mapping[str, str]) -> None:
    """Write `texts`, by the names of their files, into the folder `out`; raises UserError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with open_anew(out / name, encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise unwritten(error, out) from error


def unwritten(error: OSError, out: Path) -> UserError:
    """Return the UserError for a file that cannot be written into the folder `out`."""
    cause = f"cannot be written: {error.strerror}"
    return UserError(cause, place=str(out), fix="choose another folder with --out")
