"""What a unit of work costs, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Word, count, format_changes, format_value

USED = "Node-hours of launches"

TITLE = "Cost of a unit of work"

WORDS = {Word.FASTER: "cheaper", Word.SLOWER: "more expensive", Word.EQUIVALENT: "costs the same"}
"""What a verdict on the ratio of two costs is called; the others keep their word."""


def said(word: Word, ratio: float, low: float, high: float) -> str:
    """Return the verdict and the change of the cost with its interval."""
    middle, least, most = format_changes((ratio, low, high))
    return f"{WORDS.get(word, str(word))}, {middle} ({least} to {most})"


def basis(nodes: tuple[int, int], prices: tuple[float, float], currency: str) -> str:
    """Return the nodes and prices of both arms that a cost rests on."""
    ours, theirs = (
        f"{count(number, 'node')} at {price:g} {currency} an hour"
        for number, price in zip(nodes, prices, strict=True)
    )
    return f"{theirs}, against {ours}"


def node_hours(nodes: int, hours: Sequence[float], money: Sequence[float], currency: str) -> str:
    """Return node-hours, and money where there is a currency: one value, or the least and most."""
    said = f"{_span(hours)} node-hours ({count(nodes, 'node')})"
    return f"{said}, {_span(money)} {currency}" if currency else said


def _span(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(map(format_value, values)))
