"""Actions on a study from the browser, stop and resume: the commands that a user would type."""

from __future__ import annotations

import sys
from pathlib import Path

from paribus.border import is_file
from paribus.core import UserError, count
from paribus.launch import background
from paribus.launch.foreign import check_trusted, executed
from paribus.plan import Plan, read_plan
from paribus.report.markup import Html, element, escape, join, table
from paribus.store.watched import alive
from paribus.web.found import Found
from paribus.web.now import STOPPING
from paribus.web.pages import study_links


def stop(found: Found) -> str:
    """Interrupt a study and return a sentence to show; raises ParibusError where it cannot be."""
    background.interrupt(found.path)
    return STOPPING


def resume(found: Found, trusted: str) -> str:
    """Resume a study and return a sentence to show; raises ParibusError where it cannot be.

    One that this user did not begin is resumed only if its plan has the hash `trusted`.
    """
    if alive(found.path):
        raise UserError("the study runs already", place=found.name, fix="stop it first")
    plan, file = to_resume(found)
    check_trusted(plan, file, found.path, trusted)
    argv = [sys.executable, "-m", "paribus", "run", str(file), "--out", str(found.path), "--resume"]
    argv += ["--trust", trusted] if trusted else []
    background.start(argv, file.parent, log_of(found.path))
    return f"resumed; what it prints goes into {log_of(found.path).name}"


def to_resume(found: Found) -> tuple[Plan, Path]:
    """Return the plan of a study and its study file; raises ParibusError without either."""
    plan = read_plan(found.path)
    file = found.path.parent / plan.study.path  # which may be absolute
    if not is_file(file):
        raise UserError(
            "the study file is not there any more",
            place=str(file),
            fix="put it back, or resume it by hand: `paribus run STUDY --out DIR --resume`",
        )
    return plan, file


def log_of(directory: Path) -> Path:
    """Return the file, beside a study directory, that takes what its `paribus run` prints."""
    return directory.with_name(f"{directory.name}.log")


def resume_page(found: Found) -> Html:
    """Return the page that asks whether to resume a study that this user did not begin.

    Raises ParibusError for a study without a plan or a study file.
    """
    plan, file = to_resume(found)
    rows = [[escape(at), element("code", escape(text))] for at, text in executed(plan.study)]
    return join(
        study_links(found, "../"),
        element("h1", "Resume this study?"),
        element(
            "p",
            "It is not known as begun by you here. To resume it executes, as you, the commands that"
            " its author wrote into ",
            element("code", escape(str(file))),
            ":",
            kind="box warnings",
        ),
        table(["Place", "Text"], rows, f"What it executes: {count(len(rows), 'text')}", (0, 1)),
        element("p", "", id="progress", role="status"),
        element(
            "button",
            "Execute this and resume",
            type="button",
            data_act="resume",
            data_to=f"../act/resume?trust={plan.sha256}",
            data_then="../",
        ),
    )
