"""A study without an end: its verdict so far, and of the effect that holds now.

It has stretches, each with one effect: before a change and since it. A change is noticed when the
confidence sequence of a stretch becomes empty: while the effect stays the same that happens in at
most 1 - confidence of studies, however long they last, because it takes a wrong bound on the one
effect. Then the study is cut where the blocks so far divide best, and what comes after is a study
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from paribus.core import (
    Comparison,
    Direction,
    Judgement,
    Study,
    StudyError,
    Verdict,
    format_seconds,
    percent,
)
from paribus.designs.standard import Design, Said, Series
from paribus.stats.betting import (
    ConfidenceSequence,
    as_ratios,
    confidence_sequence,
    fewest_blocks,
)
from paribus.stats.forecast import Cost
from paribus.stats.looks import Looks
from paribus.stats.verdict import judge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_ROUNDS = 10_000
MOST_STEPS = 40
"""Steps in which the history of a monitored study is told."""

_CLOSER = 1.2
"""How much longer the end of a stretch becomes from one cut that is tried to the next."""

_MOST_CUTS = 20
"""Times that a cut is moved to where its two medians want it; 2 or 3 do."""


class Monitored(Design):
    """Rounds until the study is stopped; a confidence sequence is valid at any moment."""

    narrowed = "Times as slow, as more blocks came; shaded: margin"
    left_out = "before a change"
    spent = "in a round"
    has_end = False

    def settled(self, study: Study) -> Study:
        """Return `study` without an end, which an option of the command may have made of it."""
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
        """Return what was said after the first blocks, and after more and more of them.

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
        """Return how many bets must be won until winning all of them is worth a claim."""
        return fewest_blocks(1 - round(1 - level, 12))

    # --- words ---

    def state(self, *, complete: bool) -> str:
        return "monitoring, verdicts so far"

    def promise(self, *, several_looks: bool) -> str:
        sure = percent(self.settings.confidence)
        return f"Intervals: {sure} confidence, valid at any time; the verdicts are provisional."

    def of_cases(self) -> str:
        return "Per-case intervals are widened for multiple comparisons (Bonferroni)."

    def continues(self, command: str, waits: str) -> str:
        return f"Monitoring: {command} continues at any time; the interval stays valid."

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        return super().rows(looks, level) | {
            "Most blocks": "no limit",
            "Looks": "at any time (confidence sequence)",
            "Confidence": percent(self.settings.confidence),
        }

    def at_any(self, *, several_looks: bool) -> str:
        return ", at any time"

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        return ["monitoring: no last block; the interval is valid at any time"]

    def takes(self, best_s: float, worst_s: float) -> str:
        every = self.settings.every_s
        pause = f", a round every {format_seconds(every)}" if every else ""
        return (
            f"a round takes {format_seconds(best_s)}{pause}; the study continues until you stop it"
        )

    def estimated(self, judgement: Judgement) -> str:
        return (
            f"{self.against()} was estimated from the log ratios within blocks, with a confidence"
            f" sequence (betting) that is valid at {percent(self.settings.confidence)} at any time."
        )

    def stopped(self, judgement: Judgement) -> str:
        return "The study has no planned end, so every verdict is one so far."

    def corrected(self, size: int, error: str) -> str:
        return "intervals widened for their number (Bonferroni)"


def _now(series: Series, level: float) -> Said:
    return as_of_now(series.ratios, level, better=series.better, margin=series.margin)


def monitored(study: Study, every_s: float | None = None) -> Study:
    """Return `study` as one without end, a round every `every_s` seconds (default: the study's).

    Raises StudyError where only a study with an end makes sense.
    """
    settings = study.settings
    if settings.unit != "launch" or settings.decides != "headline" or settings.design == "few":
        raise StudyError(
            "a monitored study is one of launches without an end, and its headlines decide",
            place=study.path,
            fix='remove unit = "session", builds, decides and design = "few", or do not monitor',
        )
    every = settings.every_s if every_s is None else every_s
    settings = replace(settings, monitor=True, every_s=every, blocks=MOST_ROUNDS, design="standard")
    return replace(study, settings=settings)


def as_of_now(
    ratios: Mapping[int, float], level: float, *, better: Direction, margin: float
) -> tuple[Verdict, Comparison]:
    """Return verdict and interval of the log ratios of blocks, in order of time; never final.

    Where the effect has changed they are of the blocks since. The verdict's figures then have
    `since`, the first of these blocks, and `before`: of each earlier effect its blocks, in which
    block the change was noticed, its word, and its ratio with interval.
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


# --- stretches -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Blocks `first` to `first + sequence.blocks - 1`, counted from 0, and their one effect.

    `noticed` is the block, counted from 0, after which the change at the end of the stretch was
    noticed; None for the last stretch.
    """

    first: int
    sequence: ConfidenceSequence
    noticed: int | None = None


def stretches(log_ratios: Sequence[float], confidence: float = 0.95) -> tuple[Stretch, ...]:
    """Return the stretches of `log_ratios`, which are in order of time; the last one holds now.

    A later block never moves a change that was noticed. Raises ValueError as
    `confidence_sequence`.
    """
    found: list[Stretch] = []
    first = 0
    while True:
        rest = log_ratios[first:]
        sequence = confidence_sequence(rest, confidence)
        if sequence.moved is None:
            return (*found, Stretch(first, sequence))
        cut = cut_of(rest[: sequence.moved])
        noticed = first + sequence.moved - 1
        found.append(Stretch(first, confidence_sequence(rest[:cut], confidence), noticed))
        first += cut


def cut_of(log_ratios: Sequence[float]) -> int:
    """Return after how many of two or more `log_ratios` they divide best into two levels.

    Where the sum of the distances to the medians of both parts is least: the most likely block
    under Laplace's noise, which outlying launches hardly move.
    """
    import numpy as np

    values = np.asarray(log_ratios, dtype=np.float64)
    n = len(values)
    finite = values[np.isfinite(values)] if np.isfinite(values).any() else np.zeros(1)
    far = max(float(np.ptp(finite)), 1e-9)
    values = np.clip(values, finite.min() - far, finite.max() + far)
    best = min(_cuts(n), key=lambda cut: _distances(values, cut))
    for _ in range(_MOST_CUTS):
        before, since = float(np.median(values[:best])), float(np.median(values[best:]))
        middle = np.clip(values, min(before, since), max(before, since)) - (before + since) / 2
        nearer = np.cumsum(middle if before < since else -middle)[:-1]
        moved = int(nearer.argmin()) + 1
        if moved == best:
            break
        best = moved
    return best


def _cuts(blocks: int) -> list[int]:
    """Return the cuts to try: all near the end, where a change is noticed, then fewer."""
    lengths, length = [], 1
    while length < blocks:
        lengths.append(length)
        length = max(length + 1, int(length * _CLOSER))
    return [blocks - one for one in lengths]


def _distances(values: Floats, cut: int) -> float:
    import numpy as np

    return sum(float(np.abs(part - np.median(part)).sum()) for part in (values[:cut], values[cut:]))
