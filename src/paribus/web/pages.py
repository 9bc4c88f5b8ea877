"""The pages around the reports: the frame, a study, its launches, one launch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paribus.core import count, format_bytes, format_seconds
from paribus.report import wording
from paribus.report.markup import Html, attribute, element, escape, join, pairs, table
from paribus.store import Stored
from paribus.web.found import Found
from paribus.web.sign_in import Session
from paribus.web.summaries import when

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


@dataclass(frozen=True, slots=True)
class Listed:
    """Some launches, newest first. `older` come before them; of all `total`, `others` do not count.

    They are of the warm-up, or void.
    """

    some: Sequence[Stored]
    total: int
    others: int
    older: int


def launches(found: Found, listed: Listed, flags: Mapping[int, str] | None) -> Html:
    """Return the page of some launches; `flags` None: which are unusual is not known yet."""
    unknown = "The report is being made. Which launches are unusual is known after that."
    rows = [_launch_row(one, (flags or {}).get(one.launch.number, "")) for one in listed.some]
    head = ["Launch", "Block", "Benchmark", "Arm", "Outcome", "Started", "Took"]
    left_out = f" ({listed.others} of the warm-up or void)" if listed.others else ""
    caption = f"{count(listed.total, 'launch')} stored{left_out}, newest first"
    older = element("a", "Older launches", href=f"?before={listed.older}", id="older")
    return join(
        study_links(found, "../", "Launches"),
        element("h1", "Launches"),
        element("p", unknown, kind="small") if flags is None else Html(""),
        table(head, rows, caption, left=(0, 2, 3, 4, 5)),
        older if listed.older > 0 else Html(""),
    )


def _launch_row(one: Stored, flag: str) -> list[Html]:
    launch, outcome = one.launch, one.outcome
    name = f"{launch.number}-{one.attempt}"
    said = outcome.state.value if one.void is None else f"{outcome.state.value}, not counted"
    notes = [text for text in (one.void or "", outcome.error, flag) if text]
    return [
        element("a", escape(name), href=f"{name}/"),
        escape("warm-up" if launch.block == 0 else str(launch.block)),
        escape(launch.benchmark),
        escape(launch.arm),
        join(escape(said), *(element("small", escape(text[:300])) for text in notes)),
        element("span", escape(when(outcome.started)), kind="when"),
        escape(format_seconds(outcome.wall_s)),
    ]


def launch(found: Found, one: Stored, flag: str, outputs: Sequence[tuple[str, bytes, int]]) -> Html:
    """Return one launch: what was started, what came of it, the end of what it printed."""
    outcome = one.outcome
    facts = [
        ("Arm", one.launch.arm),
        ("Benchmark", one.launch.benchmark),
        ("Block", "warm-up" if one.launch.block == 0 else str(one.launch.block)),
        ("Outcome", outcome.state.value),
        ("Exit code", "none" if outcome.exit_code is None else str(outcome.exit_code)),
        ("Started", when(outcome.started)),
        ("Took", format_seconds(outcome.wall_s)),
    ]
    notes = [text for text in (one.void or "", outcome.error, flag) if text]
    return join(
        study_links(found, "../../"),
        element("h1", escape(f"Launch {one.launch.number}, attempt {one.attempt}")),
        *(element("p", escape(text), kind="box") for text in notes),
        pairs(facts),
        element("h2", "Command"),
        element("pre", escape(shlex.join(outcome.argv)), tabindex="0"),
        *(_output(name, data, size) for name, data, size in outputs),
    )


def _output(name: str, data: bytes, size: int) -> Html:
    text = data.decode("utf-8", "replace")
    cut = f"the last {format_bytes(len(data))} of {format_bytes(size)}" if size > len(data) else ""
    parts = [element("h2", escape(name)), element("p", escape(cut), kind="small") if cut else ""]
    lines = "\n".join(wording.clean(line) for line in text.splitlines())
    return join(*parts, Html(f'<pre tabindex="0">{escape_lines(lines)}</pre>'))


def escape_lines(text: str) -> Html:
    """Return text of several lines as HTML, its lines kept."""
    return Html("\n".join(escape(line) for line in text.split("\n")))
