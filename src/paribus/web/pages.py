"""The pages around the reports: the frame, a study, its launches, one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.report.markup import Html, attribute, element, escape, join
from paribus.web.found import Found
from paribus.web.sign_in import Session

NAVIGATION = (("", "Studies"), ("hosts/", "Hosts and jobs"), ("new/", "New study"))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a page stands: `root` is the way up to the first page, `here` its place below it."""

    root: str
    here: str
    session: Session


def page(frame: Frame, title: str, body: str, *, scripts: Sequence[str] = ()) -> str:
    """Return a whole page; `body` is HTML. Every address on it is relative."""
    links = [
        element("a", escape(text), href=f"{frame.root}{place}" or "./", **_current(frame, place))
        for place, text in NAVIGATION
        if place != "new/" or not frame.session.read_only
    ]
    source = "".join(
        f'<script src="{attribute(frame.root)}static/{name}" defer></script>\n'
        for name in ("workbench.js", *scripts)
    )
    read_only = "true" if frame.session.read_only else "false"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<meta name="csrf" content="{attribute(frame.session.csrf)}">\n'
        f"<title>{escape(title)} - Paribus</title>\n"
        f'<link rel="icon" href="data:,">\n'
        f'<link rel="stylesheet" href="{attribute(frame.root)}static/page.css">\n'
        f'<link rel="stylesheet" href="{attribute(frame.root)}static/workbench.css">\n{source}'
        f'</head>\n<body data-read-only="{read_only}">\n'
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<nav class="bar" aria-label="Workbench"><strong>Paribus</strong>{join(*links)}</nav>\n'
        f'<main id="content">\n{body}\n</main>\n</body>\n</html>\n'
    )


def _current(frame: Frame, place: str) -> dict[str, str]:
    return {"aria_current": "page"} if frame.here == place else {}


def study(found: Found, body: str, error: str, now: Mapping[str, Any], *, may_act: bool) -> Html:
    """Return the page of a study: what it does `now` (Watched.state), and its report."""
    shown = body or element("p", escape(error), kind="box warnings")
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
        element("div", shown, id="report"),
    )


def _asks_to_stop() -> Html:
    """Return what is asked before a study is stopped."""
    said = "Stop this study? The launch in flight is given up, what is stored stays."
    return element(
        "dialog",
        element("p", said),
        element(
            "form",
            element("button", "Stop the study", value="stop"),
            element("button", "Let it run", value="", autofocus=""),
            method="dialog",
            kind="buttons",
        ),
        aria_label="Stop this study?",
    )


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
    """Return the ways to the pages and files of a study, from `up` below its own page.

    `here` is the one that is shown.
    """
    places = [("./", "Report"), *([("launches/", "Launches")] if found.measured else [])]
    links = [
        element(
            "a", text, href=f"{up}{place}", **({"aria_current": "page"} if text == here else {})
        )
        for place, text in places
    ]
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


def select(name: str, chosen: str, known: Mapping[str, str]) -> Html:
    """Return a choice among what is `known`, by value and text."""
    options = [
        element("option", escape(text), value=value, **_if(value == chosen, "selected"))
        for value, text in known.items()
    ]
    return element("select", *options, name=name, aria_label=name.capitalize())


def _if(holds: bool, name: str) -> dict[str, str]:
    return {name: ""} if holds else {}
