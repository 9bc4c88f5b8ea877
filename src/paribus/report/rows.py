"""What most lenses do with their rows: store them in a verdict, and list each with a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paribus.core import Judgement
from paribus.report.export import plain
from paribus.report.markup import Html, element, escape
from paribus.report.printing import heading, item
from paribus.report.stored import read_as

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.report.html import Figures

Lines = Iterable[Sequence[str]]
"""Each line has a name, often of an arm, a text, and on a page perhaps small texts below it."""


def kept(
    key: str, kind: type, text: Callable[[Judgement, Any], str], *, none: Any = None
) -> dict[str, Any]:
    """Return the fields `to_json` and `from_json` of a Lens with rows of the dataclass `kind`.

    They are under `key` of the verdict, each with a `text` for people beside its fields. Without
    rows, `from_json` returns `none`.
    """

    def to_json(judgement: Judgement, rows: Any) -> dict[str, Any]:
        found = [{**plain(one), "text": text(judgement, one)} for one in rows]
        return {key: found} if found else {}

    def from_json(table: Mapping[str, Any], judgement: Judgement) -> Any:
        return tuple(read_as(kind, one) for one in table.get(key, ())) or none

    return {"to_json": to_json, "from_json": from_json}


def listed_as(
    title: str,
    label: str,
    lines: Callable[[Judgement, Any], Lines],
    notes: Callable[[Any], Iterable[str]],
) -> dict[str, Any]:
    """Return the fields `text` and `html` of a Lens: rows as lines under a title, then notes."""

    def text(judgement: Judgement, rows: Any, console: Console) -> None:
        print_list(console, title, lines(judgement, rows), notes(rows))

    def html(judgement: Judgement, rows: Any, figures: Figures) -> Html:
        below = [element("p", element("small", escape(note))) for note in notes(rows)]
        return list_section(title, label, lines(judgement, rows), *below)

    return {"text": text, "html": html}


def print_list(console: Console, title: str, lines: Lines, notes: Iterable[str] = ()) -> None:
    """Print a section of lines and notes; nothing without lines."""
    known = list(lines)
    if not known:
        return
    heading(console, title)
    for name, text, *_ in known:
        item(console, text, name=name)
    for note in notes:
        item(console, note, style="dim")


def list_section(title: str, label: str, lines: Lines, *after: Html) -> Html:
    """Return a section with a list of names, texts and perhaps small texts; empty without any."""
    items = [
        element("li", element("b", escape(f"{name}: ")), escape(text), *below)
        for name, text, *small in lines
        for below in [[element("small", escape(one)) for one in small]]
    ]
    if not items:
        return Html("")
    return element(
        "section", element("h2", escape(title)), element("ul", *items), *after, aria_label=label
    )
