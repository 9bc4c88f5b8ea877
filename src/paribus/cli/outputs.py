"""What verbs share when they show a study: files written, terminal, exit code."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from paribus.model import Judgement, Progress, Word
from paribus.store import Store
from paribus.study.conclude import conclude
from paribus.study.plan import Plan
from paribus.units import format_seconds

if TYPE_CHECKING:
    from rich.console import Console


class _Display(Protocol):
    def update(self, progress: Progress) -> None: ...


class _Silent:
    def update(self, progress: Progress) -> None:
        """Show nothing."""


def display(*, quiet: bool) -> AbstractContextManager[_Display]:
    """Return what shows the progress of a study, on stderr; `quiet` shows nothing."""
    if quiet:
        return nullcontext(_Silent())
    from paribus.report.progress import Display

    return Display(_console(sys.stderr))


def conclude_and_write(plan: Plan, store: Store) -> Judgement:
    """Return the judgement of a study directory after writing its reports there."""
    judgement = conclude(plan, store)
    write_files(judgement, store.directory)
    return judgement


def write_files(judgement: Judgement, directory: Path) -> None:
    """Write verdict.json, report.html, cases.csv and launches.csv into `directory`."""
    from paribus.report import export, html

    text = json.dumps(export.to_json(judgement), indent=2, allow_nan=False)
    (directory / "verdict.json").write_text(text + "\n")
    with (directory / "cases.csv").open("w", newline="") as file:
        export.cases_csv(judgement, file)
    with (directory / "launches.csv").open("w", newline="") as file:
        export.launches_csv(judgement, file)
    html.write_html(judgement, directory / "report.html")


def tell(judgement: Judgement, *, as_json: bool) -> int:
    """Print the judgement for people, or as JSON, and return the exit code that it deserves."""
    if as_json:
        from paribus.report import export

        json.dump(export.to_json(judgement), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        from paribus.report.terminal import print_report

        print_report(judgement, _console(sys.stdout))
    return exit_code(judgement)


def exit_code(judgement: Judgement) -> int:
    """Return 3 if a verdict is withheld, 4 if a benchmark has no data, else 0."""
    words = {finding.verdict.word for finding in judgement.headlines}
    if Word.WITHHELD in words:
        return 3
    return 4 if Word.NO_DATA in words else 0


def print_plan(plan: Plan) -> int:
    """Print what a study would do, without a launch; returns exit code 0."""
    study = plan.study
    arms = ", ".join(arm.name for arm in study.arms)
    most = len(plan.launches)
    least = (plan.looks.at[0] + 1) * len(study.arms) * len(study.benchmarks)
    print(study.question)
    print(
        f"factor {study.factor}; arms {arms} (the first is the reference); seed"
        f" {study.settings.seed}"
    )
    for selection in study.benchmarks:
        shown = ", ".join(f"{key} {value}" for key, value in selection.parameters.items())
        print(
            f"  {selection.label}: {selection.ranks} ranks, limit"
            f" {format_seconds(selection.timeout_s)}; {shown}"
        )
    looks = ", ".join(map(str, plan.looks.at))
    print(f"looks after {looks} blocks, each at {plan.looks.confidence:.2%} confidence")
    print(f"{least} to {most} launches; the first ones:")
    for launch in plan.launches[: 3 * len(study.arms)]:
        print(f"  {launch.number:4d}  block {launch.block}  {launch.benchmark}  {launch.arm}")
    return 0


def _console(stream: Any) -> Console:
    from rich.console import Console

    return Console(file=stream, highlight=False)
