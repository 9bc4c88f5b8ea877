"""Stretches of a monitored study, each with one effect: before a change and since it.

A change is noticed when the confidence sequence of a stretch becomes empty: while the effect stays
the same that happens in at most 1 - confidence of studies, however long they last, because it
takes a wrong bound on the one effect. Then the study is cut where the blocks so far divide best,
and what comes after is a study of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.stats.betting import ConfidenceSequence, confidence_sequence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_CLOSER = 1.2
"""The factor from the distance of one cut that is tried from the end to that of the next one."""

_MOST_CUTS = 20
"""How often a cut is moved to the best one for its two medians, at most; 2 or 3 times do."""


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
