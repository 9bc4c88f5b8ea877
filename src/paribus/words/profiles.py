"""Advice by kind of application: what each kind is called, and what a finding means for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from paribus.core import Comparison, Finding, Kind, Word, format_changes, percent
from paribus.words.lists import listed

NAMES: Mapping[Kind, str] = {
    Kind.LATENCY: "latency-bound (small messages)",
    Kind.MESSAGES: "bound by the message rate (many small messages at once)",
    Kind.BANDWIDTH: "bandwidth-bound (large messages)",
    Kind.SMALL_COLLECTIVES: "small collectives (global sums, barriers)",
    Kind.LARGE_COLLECTIVES: "large collectives (transposes)",
    Kind.MEMORY: "memory-bound",
    Kind.COMPUTE: "compute-bound",
    Kind.STORAGE: "I/O-bound",
    Kind.START_UP: "bound by start-up (short launches)",
    Kind.GPU: "bound by traffic of GPUs",
}
TITLE = "What it means for kinds of application"
CAUTION = "An application that is of several kinds lies between them: measure it."


def said(finding: Finding) -> str:
    """Return what a finding says of a kind: a word, and the change of time with its interval."""
    word, known = finding.verdict.word, finding.comparison
    if word in (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA):
        return word.value
    even = f", within the margin of {percent(finding.margin)}" * (word is Word.EQUIVALENT)
    so_far = " so far" * (word is not Word.UNDECIDED and not finding.verdict.final)
    return (
        f"{word.value}{so_far}{even}{_time(known) if known and finding.verdict.size_known else ''}"
    )


def _time(known: Comparison) -> str:
    if not 0 < known.low <= known.high < math.inf:
        return ""
    middle, low, high = format_changes((known.ratio, known.low, known.high))
    return f", time {middle} ({low} to {high})"


def not_measured(kinds: Iterable[Kind]) -> str:
    """Return which kinds nothing was measured for, "" for none."""
    names = [NAMES[kind] for kind in kinds]
    return f"Not measured, so nothing is said: {listed(names)}." if names else ""
