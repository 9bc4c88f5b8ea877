"""The frame of all pages, the page of a study, and parts that pages share: links, filters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from paribus.report.markup import Html, attribute, element, escape, framed, join
from paribus.studyfile.shipping import site
from paribus.web.found import Found
from paribus.web.gate import Session
from paribus.web.rendering import Rendered

NAVIGATION = (("", "Studies"), ("hosts/", "Hosts and jobs"), ("new/", "New study"))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a page stands: `root` leads up to the first page ("../../"), `here` is its entry in
    NAVIGATION ("-" for none)."""

    root: str
    here: str
    session: Session


def page(frame: Frame, title: str, body: str, *, scripts: Sequence[str] = ()) -> str:
    """Return a whole page; `body` is HTML. Every address on it is relative."""
    links = [
        _link(text, f"{frame.root}{place}" or "./", current=frame.here == place)
        for place, text in NAVIGATION
        if place != "new/" or not frame.session.read_only
    ]
    if site() is not None:
        links.append(_link("Documentation", f"{frame.root}docs/index.html", current=False))
    source = "".join(
        f'<script src="{attribute(frame.root)}static/{name}" defer></script>\n'
        for name in ("workbench.js", *scripts)
    )
    read_only = "true" if frame.session.read_only else "false"
    head = (
        f'<meta name="csrf" content="{attribute(frame.session.csrf)}">\n'
        f'<link rel="icon" href="data:,">\n'
        f'<link rel="stylesheet" href="{attribute(frame.root)}static/page.css">\n'
        f'<link rel="stylesheet" href="{attribute(frame.root)}static/workbench.css">\n{source}'
    )
    return framed(
        title,
        head,
        f'<body data-read-only="{read_only}">\n'
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<nav class="bar" aria-label="Workbench"><strong>Paribus</strong>{join(*links)}</nav>\n'
        f'<main id="content">\n{body}\n</main>\n</body>',
    )


def study(found: Found, report: Rendered, now: Mapping[str, Any], *, may_act: bool) -> Html:
    """Return the page of a study: what it does `now` (from Watched.state), and its report."""
    buttons = [
        element("button", text, type="button", data_act=act, hidden="")
        for act, text in (("stop", "Stop"), ("resume", "Resume"))
        if may_act and found.measured
    ]
    return join(
        study_links(found, here="Report"),
        element(
            "section",
            element("p", escape(str(now["text"])), id="progress", role="status"),
            *buttons,
            element("div", now["html"], id="now"),
            _asks_to_stop() if buttons else Html(""),
            kind="live",
            data_running=str(now["running"]).lower(),
            aria_label="What the study does now",
            data_events="events",
        ),
        element("div", shown(report), id="report"),
    )


def shown(report: Rendered) -> str:
    """Return the body of a report, or the reason why there is none."""
    return report.body or refusal(report.error, report.heading)


def refusal(text: str, heading: str = "Not possible") -> Html:
    """Return the body of a page, or in place of a report, that says why it cannot be made."""
    return join(element("h1", heading), element("p", escape(text), kind="box warnings"))


def _asks_to_stop() -> Html:
    """Return the dialogue that asks before a study is stopped."""
    question = "Stop this study? The launch in flight is given up, what is stored stays."
    stop = element("button", "Stop the study", value="stop")
    go_on = element("button", "Let it run", value="", autofocus="")
    form = element("form", stop, go_on, method="dialog", kind="buttons")
    return element("dialog", element("p", question), form, aria_label="Stop this study?")


FILES = (
    "verdict.json",
    "plan.json",
    "cases.csv",
    "launches.csv",
    "values.csv",
    "values.parquet",
    "report.html",
)
"""Files of a study that can be fetched as they are."""


def study_links(found: Found, up: str = "", here: str = "") -> Html:
    """Return links to the pages and files of a study; `up` leads from this page to the study's.

    `here`: the name of the link to this page.
    """
    places = [("./", "Report"), *([("launches/", "Launches")] if found.measured else [])]
    places.append((f"../../trend/?of={found.ident}", "Trend"))
    links = [_link(text, f"{up}{place}", current=text == here) for place, text in places]
    files = [
        element("a", escape(name), href=f"{up}files/{name}", download=name)
        for name in FILES
        if (found.path / name).is_file()
    ]
    return element(
        "nav",
        element("span", escape(found.name), kind="where"),
        join(*links),
        element("details", element("summary", "Files"), join(*files)) if files else Html(""),
        kind="bar study",
        aria_label="This study",
    )


def filters(
    asked: Mapping[str, str], choices: Mapping[str, Mapping[str, str]], *around: Html
) -> Html:
    """Return the form that filters a list: `choices` by name, each as texts by value.

    `asked`: the values chosen now. A choice of one value is left out. The first of `around` stands
    before the choices, others after.
    """
    shown = [
        select(name, asked.get(name, ""), {"": f"any {name}", **dict(sorted(known.items()))})
        for name, known in choices.items()
        if len(known) > 1
    ]
    show = element("button", "Show", type="submit")
    parts = (*around[:1], *shown, *around[1:], show)
    return element("form", *parts, kind="filters", method="get", role="search")


def select(name: str, chosen: str, known: Mapping[str, str]) -> Html:
    """Return a choice among `known`, texts by value."""
    options = []
    for value, text in known.items():
        mark = {"selected": ""} if value == chosen else {}
        options.append(element("option", escape(text), value=value, **mark))
    return element("select", *options, name=name, aria_label=name.capitalize())


def _link(text: str, place: str, *, current: bool) -> Html:
    here = {"aria_current": "page"} if current else {}
    return element("a", escape(text), href=place, **here)


def again(kind: str, seconds: int, *parts: Html) -> Html:
    """Return a part of a page that is asked for again while somebody looks at it."""
    return element("div", *parts, kind=kind, data_again="", data_every=str(seconds))


ROWS = 100
"""Rows of a list at first; each time more are asked for, four times as many."""


def rows_of(asked: Mapping[str, str]) -> int:
    """Return how many rows of a list are `asked` for."""
    rows = asked.get("rows", "")
    return int(rows) if re.fullmatch("[1-9][0-9]{1,6}", rows) else ROWS


def more(asked: Mapping[str, str], left: int) -> Html:
    """Return the way to more rows of a list of which so many are `left`."""
    query = urlencode({**asked, "rows": 4 * rows_of(asked)})
    return element("a", f"{left} more", href=f"?{query}", id="more") if left > 0 else Html("")
