"""What a unit of work costs in each arm: on a terminal, in HTML, and as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paribus.judge.cost import Cost, costs
from paribus.judgement import Judgement
from paribus.report.markup import Html, element, escape
from paribus.report.printing import heading, item
from paribus.report.wording import clean
from paribus.words import cost as words

if TYPE_CHECKING:
    from rich.console import Console


def print_costs(judgement: Judgement, console: Console) -> None:
    """Print the cost of each benchmark in each arm that has a price."""
    found = costs(judgement)
    if found:
        heading(console, words.TITLE)
    for one in found:
        item(console, _said(one), name=clean(one.arm))
    for text in dict.fromkeys(f"{one.arm}: {_basis(one)}" for one in found):
        item(console, text, style="dim")


def html_section(judgement: Judgement) -> Html:
    """Return the section of the HTML report, empty where nothing has a price."""
    found = costs(judgement)
    if not found:
        return Html("")
    rows = [
        element(
            "li",
            element("b", escape(f"{one.arm}: ")),
            escape(_said(one)),
            element("small", escape(f" {_basis(one)}.")),
        )
        for one in found
    ]
    title = element("h2", escape(words.TITLE))
    return element("section", title, element("ul", *rows), aria_label="Cost")


def to_json(judgement: Judgement) -> list[dict[str, Any]]:
    """Return the costs as JSON values; `text` is for people."""
    return [
        {
            **{key: getattr(one, key) for key in ("benchmark", "arm", "ratio", "low", "high")},
            **{key: getattr(one, key) for key in ("level", "margin", "currency")},
            "word": words.WORDS.get(one.word, str(one.word)),
            "nodes": list(one.nodes),
            "prices": list(one.prices),
            "text": f"{_said(one)}; {_basis(one)}",
        }
        for one in costs(judgement)
    ]


def _said(one: Cost) -> str:
    return f"{one.benchmark}: {words.said(one.word, one.ratio, one.low, one.high)}"


def _basis(one: Cost) -> str:
    return words.basis(one.nodes, one.prices, one.currency)
