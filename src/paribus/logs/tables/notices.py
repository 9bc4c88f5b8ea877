"""What the notices on a table say of how its numbers came about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.core import NoticeName, count
from paribus.words import lists
from paribus.words.lists import listed
from paribus.words.recorded import order_fix

Figures = Mapping[str, Any]
Labels = Sequence[str]

MOST_COLUMNS = 10
MOST_BLOCKS = 5
"""Columns, and blocks, that a sentence names."""

LONGEST = 60
"""Characters of a column's name that a sentence shows."""


def _order_fixed(labels: Labels, figures: Figures) -> str:
    return (
        f"{lists.arm(figures['arm'])} ran first in every block of"
        f" {listed(labels, last=' and ')}: the effect of the first launch on the second is part of"
        " the ratio."
    )


def _stopping(_: Labels, figures: Figures) -> str:
    source = "Logs do" if figures["source"] == "logs" else "The table does"
    return (
        f"{source} not show whether the number of launches was fixed in advance. If the measurement"
        " was stopped because the figures looked good, the error rate is not controlled."
    )


def _few(labels: Labels, figures: Figures) -> str:
    has = [f"{label} has {count(figures['blocks'][label], 'block')}" for label in labels]
    return (
        f"{listed(has, last=' and ')}; an interval at {figures['confidence'] * 100:.3g} %"
        f" confidence needs {figures['fewest']} or more."
    )


def _blocks(labels: Labels, figures: Figures) -> str:
    lacking = zip(figures["blocks"], figures["lacking"], strict=True)
    first = [f"block {name} lacks {what}" for name, what in lacking][:MOST_BLOCKS]
    number = figures["left_out"]
    more = f"; and {number - MOST_BLOCKS} more" if number > MOST_BLOCKS else ""
    return (
        f"{number} of {count(figures['of'], 'block')} of {labels[0]}"
        f" {'is' if number == 1 else 'are'} incomplete and left out: {'; '.join(first)}{more}."
    )


def _launches(_: Labels, figures: Figures) -> str:
    number = figures["launches"]
    have, are = ("has", "is") if number == 1 else ("have", "are")
    return (
        f"{count(number, 'launch')} {have} no neighbour of the other arm in time and {are} left"
        " out; only the times decide which."
    )


def _columns(_: Labels, figures: Figures) -> str:
    names = [
        repr(name if len(name) <= LONGEST else f"{name[:LONGEST]}...")
        for name in figures["columns"][:MOST_COLUMNS]
    ]
    others = figures["number"] - len(names)
    more = f" and {others} more" if others else ""
    return f"Columns that are not used: {', '.join(names)}{more}."


TEXTS: Mapping[NoticeName, Callable[[Labels, Figures], str]] = {
    NoticeName.ORDER_UNKNOWN: lambda *_: (
        "Whether the order within blocks was randomised is unknown. If one arm always ran first,"
        " the effect of the first launch on the second is part of the ratio."
    ),
    NoticeName.ORDER_FIXED: _order_fixed,
    NoticeName.STOPPING_NOT_PLANNED: _stopping,
    NoticeName.TOO_FEW_BLOCKS: _few,
    NoticeName.BLOCKS_LEFT_OUT: _blocks,
    NoticeName.LAUNCHES_LEFT_OUT: _launches,
    NoticeName.COLUMNS_IGNORED: _columns,
}

FIXES: Mapping[NoticeName, Callable[[Figures], str]] = {
    NoticeName.ORDER_UNKNOWN: lambda f: (
        order_fix(f["dated_by"]) if f["source"] == "logs" else "A column time would show the order."
    ),
    NoticeName.ORDER_FIXED: lambda _: "Randomise the order in each block.",
}
