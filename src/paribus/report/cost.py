"""What a unit of work costs in each arm: on a terminal, in HTML, and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paribus.core import Judgement
from paribus.judge.cost import Cost, costs
from paribus.judge.node_hours import NodeHours, used
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


def print_node_hours(judgement: Judgement, console: Console) -> None:
    """Print how long launches held the nodes of each arm."""
    if found := used(judgement):
        heading(console, words.USED)
    for one in found:
        item(console, _held(one), name=clean(one.arm))


def html_section(judgement: Judgement) -> Html:
    """Return the sections of the HTML report, empty where no node is counted."""
    return Html(_html_costs(costs(judgement)) + _html_held(used(judgement)))


def _html_held(found: Sequence[NodeHours]) -> Html:
    if not found:
        return Html("")
    rows = [
        element("li", element("b", escape(f"{one.arm}: ")), escape(_held(one))) for one in found
    ]
    title = element("h2", escape(words.USED))
    return element("section", title, element("ul", *rows), aria_label="Node-hours")


def _html_costs(found: Sequence[Cost]) -> Html:
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


def node_hours_json(judgement: Judgement) -> list[dict[str, Any]]:
    """Return the node-hours of launches as JSON values; `text` is for people."""
    return [
        {
            **{key: getattr(one, key) for key in ("arm", "nodes", "hours")},
            "money": one.money if one.currency else None,
            "currency": one.currency or None,
            "text": _held(one),
        }
        for one in used(judgement)
    ]


def _held(one: NodeHours) -> str:
    return words.node_hours(one.nodes, (one.hours,), (one.money,), one.currency)


def _said(one: Cost) -> str:
    return f"{one.benchmark}: {words.said(one.word, one.ratio, one.low, one.high)}"


def _basis(one: Cost) -> str:
    return words.basis(one.nodes, one.prices, one.currency)
