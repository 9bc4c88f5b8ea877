"""Sentences about launches that something else ran: by what they are ordered in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paribus.core import DatedBy
from paribus.words import lists

DATED_BY: Mapping[DatedBy, str] = {
    DatedBy.DATES: "the dates in them",
    DatedBy.DATES_WITHOUT_ZONE: "the dates in them (if of one time zone)",
    DatedBy.FILES: "the times of their files",
    DatedBy.COLUMN: "the column time",
}


def order_fix(dated_by: DatedBy | None) -> str:
    """Return what would show the order of logs; `dated_by` is what shows it without `--pair`."""
    if dated_by is None:
        return "The times of the files would show it: keep them when copying."
    return f"Without `--pair` {DATED_BY[dated_by]} show it."


def unless(figures: Mapping[str, Any]) -> str:
    """Return on what condition a word on arms that were not launched in turns is true.

    `figures` are the reservation in those of the verdict: the first and the last time of the
    launches, None if they are unknown, and the arms.
    """
    if figures["first"] is None:
        of = " and those of ".join(map(lists.arm, figures["arms"]))
        return f"unless the machine changed between the launches of {of} (dates unknown)"
    return f"unless the machine changed between {figures['first']} and {figures['last']}"
