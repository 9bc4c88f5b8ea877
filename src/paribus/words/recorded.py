"""Sentences about launches that Paribus did not run: what shows their order in time."""

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
    """Return how the order of logs could be known; `dated_by` shows it if `--pair` is left out."""
    if dated_by is None:
        return "The times of the files would show it: keep them when copying."
    return f"Without `--pair` {DATED_BY[dated_by]} show it."


def unless(figures: Mapping[str, Any]) -> str:
    """Return the condition under which a verdict on arms that did not alternate in time holds.

    `figures` are `unless` of the verdict's: `first` and `last`, the times of the launches (None:
    unknown), and `arms`.
    """
    if figures["first"] is None:
        of = " and those of ".join(map(lists.arm, figures["arms"]))
        return f"unless the machine changed between the launches of {of} (dates unknown)"
    return f"unless the machine changed between {figures['first']} and {figures['last']}"
