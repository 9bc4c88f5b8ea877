"""The verdict of a monitored study: so far, and of the effect that holds now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paribus.core import Comparison, Direction, Verdict
from paribus.stats.betting import as_ratios
from paribus.stats.stretches import Stretch, stretches
from paribus.stats.verdict import judge


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


MOST_STEPS = 40
"""Steps in which the history of a monitored study is told."""


def until_now(
    ratios: Mapping[int, float], level: float, *, better: Direction, margin: float
) -> tuple[Comparison, ...]:
    """Return what `as_of_now` said after the first blocks, and after more and more of them.

    `blocks` of each counts all until then, those before a change of the effect included.
    """
    in_order = sorted(ratios)
    step = max(1, math.ceil(len(in_order) / MOST_STEPS))
    ends = range(len(in_order), 0, -step)
    return tuple(
        replace(
            as_of_now(
                {block: ratios[block] for block in in_order[:end]},
                level,
                better=better,
                margin=margin,
            )[1],
            blocks=end,
        )
        for end in reversed(ends)
    )


def stands_on(blocks: Sequence[int], comparison: Comparison, *, monitored: bool) -> list[int]:
    """Return those of `blocks`, in order, that a comparison is of: the last ones if monitored."""
    return list(blocks[-comparison.blocks :] if monitored else blocks[: comparison.blocks])


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
