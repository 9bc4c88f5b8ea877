"""What a report says of a damaged store of which it shows what is whole."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.judgement import Finding, Notice, Word
from paribus.reasons import Reason
from paribus.records.salvage import Lost
from paribus.units import count


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
    numbers = sorted({number for number in lost.launches.values() if number is not None})
    unknown = [row for row, number in lost.launches.items() if number is None]
    told = [f"{count(len(lost.launches), 'launch')} of {len(lost.launches) + lost.whole}"]
    named = [f"of the plan {_ranges(numbers)}"] * bool(numbers)
    named += [f"row {_ranges(unknown)} of the store, launch unknown"] * bool(unknown)
    told[0] += f" ({'; '.join(named)})" if named else ""
    if lost.gathered:
        told.append(f"facts of nodes (row {_ranges(lost.gathered)})")
    text = (
        f"launches.db is damaged, and what is lost is left out: {' and '.join(told)}. Damage does"
        " not choose by what a launch measured: the ratios rest on fewer blocks and are not biased,"
        " but launches that failed may be missing."
    )
    if lost.unvoided:
        text += f" Up to {lost.unvoided} of those shown may have been marked as not counting."
    if not lost.counted:
        text += " How many were stored is not known: more may be missing."
    return [
        Notice(
            "launches lost",
            "warning",
            text,
            fix="Report on a whole copy of the directory if there is one. What each launch printed"
            " is in logs/.",
            figures={
                "lost": len(lost.launches),
                "whole": lost.whole,
                "launches": numbers,
                "rows": list(lost.launches),
                "facts": list(lost.gathered),
            },
        )
    ]


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending `numbers` as text: 3, 5 to 9."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)
