"""What is said of a study that scales: how far each arm does, and of its speed per host."""

from __future__ import annotations

import math
from collections.abc import Mapping

from paribus.core import Comparison, Finding, Scaling, Word, count, format_changes, percent
from paribus.words.values import reason_of

WORDS: Mapping[Word, str] = {Word.FASTER: "better", Word.SLOWER: "worse"}
"""What a verdict on the ratio of two efficiencies is called; the others keep their word."""

AGAINST = "efficiency / reference's"


def title(scaling: Scaling) -> str:
    """Return the title of everything on efficiencies."""
    return f"{scaling.kind.capitalize()} scaling over {scaling.over}"


def meaning(scaling: Scaling) -> str:
    """Return what an efficiency is."""
    each = scaling.over[:-1]
    same = "at each size" if scaling.kind == "strong" else f"for each {each}"
    return (
        f"Efficiency: the speed per {each} over that at the smallest size, in %; 100 is ideal."
        f" {scaling.kind.capitalize()}: the same problem {same}."
    )


def share(comparison: Comparison | None) -> str:
    """Return an efficiency with its interval, in per cent: "88.1 [86.2, 90.3]".

    >>> share(Comparison(8, 0.5, 0.45, 0.561, 0.95)), share(None)
    ('50.0 [45.0, 56.1]', 'none')
    """
    if comparison is None:
        return "none"
    ratio, low, high = (f"{100 * x:.1f}" for x in _ends(comparison))
    if comparison.low <= 0 and comparison.high == math.inf:
        return f"{ratio} [no interval yet]"
    return f"{ratio} [{low}, {high}]"


def _ends(comparison: Comparison) -> tuple[float, float, float]:
    return comparison.ratio, comparison.low, comparison.high


def reaches(
    arm: str, scaling: Scaling, *, up_to: int, below: int, undecided: int, flat: int
) -> str:
    """Return how far an arm scales; the sizes are those of stats.scaling.Reach."""
    if not up_to:
        return f"{arm}: no data at the smallest size, so no efficiency"
    bound, noun = percent(scaling.bound), scaling.over[:-1]
    said = f"{arm}: efficiency above {bound} up to {count(up_to, noun)}"
    said += f", below it at {below}" * bool(below)
    said += f", undecided at {undecided}" * bool(undecided)
    return said + f"; no faster at {flat} than at the size before" * bool(flat)


def per_host(scaling: Scaling, first: int, last: int, efficiency: Comparison | None) -> str:
    """Return how much faster a host, or rank, is at the smallest size than at the largest."""
    if efficiency is None or not 0 < efficiency.low <= efficiency.high < math.inf:
        return ""
    middle, high, low = format_changes([1 / one for one in _ends(efficiency)])
    noun = scaling.over[:-1]
    return f"; speed per {noun} at {first} against {last}: {middle} [{low}, {high}]"


def why(against: Finding) -> str:
    """Return why nothing is said of an arm against the reference, "" where something is."""
    if against.verdict.word in (*WORDS, Word.EQUIVALENT):
        return ""
    if against.verdict.word is Word.UNDECIDED and against.comparison:
        return f"The interval does not decide against the margin of {percent(against.margin)}."
    return f"{reason_of(against.verdict)}."
