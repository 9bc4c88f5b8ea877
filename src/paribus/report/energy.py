"""The energy of launches in each arm: on a terminal, in HTML, and as JSON values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from paribus.core import Judgement
from paribus.probes.energy import ENERGY
from paribus.report.markup import Html, element, escape
from paribus.report.printing import heading, item
from paribus.report.wording import clean
from paribus.words import energy as words

if TYPE_CHECKING:
    from rich.console import Console


def print_energy(judgement: Judgement, console: Console) -> None:
    """Print the energy of a launch of each benchmark in each arm."""
    rows = _rows(judgement)
    if rows:
        heading(console, words.TITLE)
    for arm, text in rows:
        item(console, text, name=clean(arm))
    for text in _bases(judgement):
        item(console, text, style="dim")


def html_section(judgement: Judgement) -> Html:
    """Return the section of the HTML report, empty where no node counts its energy."""
    rows = [
        element("li", element("b", escape(f"{arm}: ")), escape(text))
        for arm, text in _rows(judgement)
    ]
    if not rows:
        return Html("")
    basis = [element("p", element("small", escape(text))) for text in _bases(judgement)]
    title = element("h2", escape(words.TITLE))
    return element("section", title, element("ul", *rows), *basis, aria_label="Energy")


def to_json(judgement: Judgement) -> list[dict[str, Any]]:
    """Return the energies as JSON values; `text` is for people."""
    return [
        {**asdict(one), "joules": list(one.joules), "text": words.said(one)}
        for one in judgement.energy
    ]


def _bases(judgement: Judgement) -> list[str]:
    sources = dict.fromkeys(one.source for one in judgement.energy)
    return [words.BASIS[source] for source in sources]


def _rows(judgement: Judgement) -> list[tuple[str, str]]:
    if judgement.energy:
        return [(one.arm, words.said(one)) for one in judgement.energy]
    return [
        (arm, words.DENIED)
        for arm, facts in judgement.facts.items()
        if any(key.startswith(ENERGY) and isinstance(facts[key], dict) for key in facts)
    ]
