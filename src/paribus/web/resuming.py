"""The page that asks before a study goes on that its user did not begin."""

from __future__ import annotations

from paribus.core import count
from paribus.launch.foreign import executed
from paribus.report.markup import Html, element, escape, join, table
from paribus.web.actions import to_resume
from paribus.web.found import Found
from paribus.web.pages import study_links


def page(found: Found) -> Html:
    """Return the page; raises ParibusError for a study without a plan or a study file."""
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
