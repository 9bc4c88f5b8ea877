"""A monitored study: without an end, with a verdict at any time on the effect that holds now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from paribus.core import Comparison, Direction, Study, StudyError, Verdict
from paribus.designs.standard import Design, Said, Series
from paribus.stats.betting import as_ratios, fewest_blocks
from paribus.stats.forecast import Cost
from paribus.stats.looks import Looks
from paribus.stats.stretches import Stretch, stretches
from paribus.stats.verdict import judge
from paribus.words.designs.monitored import MonitoredWords

MOST_ROUNDS = 10_000
MOST_STEPS = 40
"""The most steps in which the history of a monitored study is shown."""


class Monitored(MonitoredWords, Design):
    """Rounds until the study is stopped; a confidence sequence is valid at any moment."""

    has_end = False

    def settled(self, study: Study) -> Study:
        """Return `study` as a monitored one; a command-line option may ask for that."""
        return monitored(study, self.settings.every_s)

    def looks(self) -> Looks:
        return Looks((), self.error)

    def duration(self, each: Cost, looks: Looks) -> list[str]:
        return [self.takes(each.block_s, math.inf)]

    def rounds(self, looks: Looks) -> tuple[int, ...]:
        return (1,)

    def replay(self, series: Series, *, over: bool) -> tuple[Verdict, list[Comparison]]:
        verdict, comparison = _now(series, series.level)
        return verdict, [comparison]

    def history(self, series: Series, looks: Sequence[Comparison]) -> tuple[Comparison, ...]:
        """Return the comparisons after more and more blocks, in at most MOST_STEPS steps.

        `blocks` of each counts all until then, those before a change of the effect included.
        """
        ratios = list(series.ratios.items())
        ends = range(len(ratios), 0, -max(1, math.ceil(len(ratios) / MOST_STEPS)))
        until = {end: replace(series, ratios=dict(ratios[:end])) for end in reversed(ends)}
        return tuple(replace(_now(one, series.level)[1], blocks=end) for end, one in until.items())

    def stands_on(self, blocks: Sequence[int], comparison: Comparison) -> list[int]:
        """Return the last blocks: those since the effect changed."""
        return list(blocks[-comparison.blocks :])

    def size_known(self, blocks: Sequence[int], cut: Mapping[str, Sequence[int]]) -> bool:
        return True

    def family(self, several: Sequence[Series], members: Literal["cases", "figures"]) -> list[Said]:
        return [_now(one, 1 - self.error / len(several)) for one in several]

    def fewest_blocks(self, level: float, looks: Sequence[int]) -> int:
        """Return how many blocks, all on one side, the confidence sequence needs for a claim."""
        return fewest_blocks(1 - round(1 - level, 12))


def _now(series: Series, level: float) -> Said:
    return as_of_now(series.ratios, level, better=series.better, margin=series.margin)


def monitored(study: Study, every_s: float | None = None) -> Study:
    """Return `study` as one without end, a round every `every_s` seconds (default: the study's).

    Raises StudyError where only a study with an end makes sense.
    """
    settings = study.settings
    other = study.scaling or settings.unit != "launch" or settings.decides != "headline"
    if other or settings.design not in ("auto", "standard"):
        raise StudyError(
            "a monitored study is one of launches without an end, and its headlines decide",
            place=study.path,
            fix="remove monitor or unit, builds, decides, design, allocations, [scaling], [series]",
        )
    every = settings.every_s if every_s is None else every_s
    settings = replace(settings, monitor=True, every_s=every, blocks=MOST_ROUNDS, design="standard")
    return replace(study, settings=settings)


def as_of_now(
    ratios: Mapping[int, float], level: float, *, better: Direction, margin: float
) -> tuple[Verdict, Comparison]:
    """Return verdict and interval of the log ratios of blocks, in order of time; never final.

    If the effect has changed, they are of the blocks since. The verdict's figures then have
    `since`, the first of these blocks, and `before`: for each earlier effect its blocks, the block
    in which the change was noticed, its word, and its ratio with interval.
    """
    blocks = list(ratios)
    *earlier, now = stretches(list(ratios.values()), level)
    comparison = as_ratios(now.sequence, level)
    verdict = judge(comparison, better=better, margin=margin, last=False)
    changed: dict[str, Any] = {}
    if earlier:
        before = [_before(one, blocks, level, better=better, margin=margin) for one in earlier]
        changed = {"since": blocks[now.first], "last": blocks[-1], "before": before}
    return replace(verdict, final=False, figures={**verdict.figures, **changed}), comparison


def _before(
    stretch: Stretch, blocks: Sequence[int], level: float, *, better: Direction, margin: float
) -> dict[str, Any]:
    found = as_ratios(stretch.sequence, level)
    return {
        "first": blocks[stretch.first],
        "last": blocks[stretch.first + found.blocks - 1],
        "noticed": None if stretch.noticed is None else blocks[stretch.noticed],
        "word": judge(found, better=better, margin=margin, last=False).word,
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
    }
