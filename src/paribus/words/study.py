"""What is said of a whole study: its verdict, and how its figures came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.judgement import Finding, Word
from paribus.model import Study
from paribus.units import count, format_change
from paribus.words.lists import listed

MOST_NAMED = 8
"""Benchmarks of one word that the sentence names; the table below it has them all."""


def sentence(found: Sequence[Finding]) -> str:
    """Return the verdict of the whole study in one sentence: every benchmark, and by how much."""
    groups: dict[tuple[str, Word], list[str]] = {}
    for finding in found:
        labels = groups.setdefault((finding.arm, finding.verdict.word), [])
        labels.append(f"{finding.benchmark}{_by_how_much(finding)}")
    parts = [
        _PHRASES[word].format(arm=arm, labels=listed(labels, MOST_NAMED, last=" and "))
        for (arm, word), labels in groups.items()
    ]
    return "; ".join(parts) + "." if parts else "Nothing was compared."


_PHRASES: Mapping[Word, str] = {
    Word.FASTER: "{arm} is faster in {labels}",
    Word.SLOWER: "{arm} is slower in {labels}",
    Word.EQUIVALENT: "{arm} is equivalent in {labels}",
    Word.UNDECIDED: "{arm} is undecided in {labels}",
    Word.RELIABILITY: "{arm} differs in reliability in {labels}",
    Word.WITHHELD: "no verdict for {arm} in {labels}",
    Word.NO_DATA: "no data for {arm} in {labels}",
}


def _by_how_much(finding: Finding) -> str:
    """Return the change of the arm's value against the reference's, where it is a finding."""
    if finding.comparison is None or finding.verdict.word not in (Word.FASTER, Word.SLOWER):
        return ""
    return f" ({format_change(finding.comparison.ratio)})"


def design(study: Study) -> str:
    """Return in one sentence how the figures of a study came about, and what that controls."""
    settings = study.settings
    several = len(study.arms) > 2
    order = "in the order of random Latin squares" if several else "in random order"
    if settings.unit == "session":
        return (
            f"Sessions of {count(settings.launches, 'launch')}, each arm once per block {order};"
            " the median of a session counts once."
        )
    if settings.layout == "duet":
        return (
            "Duets: the arms of a block were launched at the same time, each on its own share of"
            " the cores, assigned at random."
        )
    kind = "Blocks" if several else "Pairs"
    return f"{kind} of neighbouring launches, {order}; the launch is the experimental unit."
