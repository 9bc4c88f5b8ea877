"""What a report says of a damaged store of which it shows what is whole."""

from __future__ import annotations

from paribus.core import Finding, Notice, NoticeName, Reason, Word
from paribus.store.salvage import Lost


def why_withheld(lost: Lost, finding: Finding) -> Reason | None:
    """Return why a verdict cannot rest on what is whole, None if it can.

    Damage takes neighbouring rows, whatever they measured: ratios within blocks lose blocks, and
    gain no bias. What depends on all launches or facts being there is another matter.
    """
    if lost.gathered:
        return Reason.FACTS_LOST
    failing = lost.launches and finding.verdict.word is Word.RELIABILITY
    return Reason.FAILURES_LOST if failing else None


def notices(lost: Lost) -> list[Notice]:
    """Return what to say of what is lost: nothing if nothing is."""
    if not lost:
        return []
    figures = {
        "lost": len(lost.launches),
        "whole": lost.whole,
        "launches": sorted({number for number in lost.launches.values() if number is not None}),
        "rows": list(lost.launches),
        "rows_of_unknown": [row for row, number in lost.launches.items() if number is None],
        "facts": list(lost.gathered),
        "unvoided": lost.unvoided,
        "counted": lost.counted,
    }
    return [Notice(NoticeName.LAUNCHES_LOST, "warning", figures=figures)]
