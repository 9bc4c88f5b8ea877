"""What a unit of work costs, in sentences."""

from __future__ import annotations

from paribus.judgement import Word
from paribus.units import count, format_changes

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
