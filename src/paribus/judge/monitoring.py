"""The verdict of a monitored study: so far, and of no more than one effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paribus.judgement import Comparison, Verdict, Word
from paribus.model import Direction
from paribus.reasons import Reason
from paribus.stats.betting import confidence_sequence, monitor
from paribus.stats.verdict import judge


def as_of_now(
    ratios: Sequence[float], level: float, *, better: Direction, margin: float
) -> tuple[Verdict, Comparison]:
    """Return verdict and interval of log ratios in order of time; never final.

    Where no one ratio agrees with all blocks any more the interval is the last one that did, and
    says too little for a word.
    """
    comparison = monitor(ratios, level)
    moved = confidence_sequence(ratios, level).moved
    if moved is not None:
        figures = {"block": moved}
        said = Verdict(Word.UNDECIDED, Reason.EFFECT_CHANGED, final=False, figures=figures)
        return said, comparison
    verdict = judge(comparison, better=better, margin=margin, last=False)
    return replace(verdict, final=False), comparison
