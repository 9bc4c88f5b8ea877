"""Order effect: whether the launch that comes second in a block fares differently."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.stats.estimate import compare


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """Value of the second launch over that of the first, with its interval, from `blocks` blocks.

    `found`: the interval excludes 1.
    """

    blocks: int
    ratio: float
    low: float
    high: float
    found: bool


def order_effect(
    second_minus_first: Sequence[float], confidence: float = 0.95
) -> OrderEffect | None:
    """Return the order effect of blocks of two launches, or None if they are too few to tell.

    `second_minus_first` holds ln(launched second / launched first) of each block, whichever arms
    they were: the coin that put the arms in order keeps their difference out of it. Blocks with a
    launch that was cut off (infinite) are left out. Hodges-Lehmann with the signed-rank interval;
    6 blocks are the fewest that have one at 95 %. Chance finds an effect in `1 - confidence` of
    studies. Raises ValueError for NaN.
    """
    values = [value for value in second_minus_first if not math.isinf(value)]
    if not values:
        return None
    found = compare(values, confidence)
    if found.high == math.inf:
        return None
    return OrderEffect(
        found.blocks, found.ratio, found.low, found.high, not found.low <= 1 <= found.high
    )


def bias(effect: OrderEffect, arm_first: int, reference_first: int) -> float:
    """Return by how much, as a share, unequal counts of the two orders have moved the ratio.

    Each block in which the arm comes second has its log ratio raised by the log of the effect,
    each in which it comes first lowered, so the mean moves by that log times the difference of
    the counts over their sum; the Hodges-Lehmann estimate moves as much where the effect is small
    against the noise. 0.001 means that the ratio is 0.1 % too large. Raises ValueError for
    negative counts and for no blocks.
    """
    blocks = arm_first + reference_first
    if min(arm_first, reference_first) < 0 or not blocks:
        raise ValueError(f"orders of {arm_first} and {reference_first} blocks")
    return math.expm1(math.log(effect.ratio) * (reference_first - arm_first) / blocks)
