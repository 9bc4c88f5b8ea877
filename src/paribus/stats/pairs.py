"""Log ratios of the arm to the reference, block by block: drift between blocks cancels in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def block_log_ratios(reference: Mapping[int, float], arm: Mapping[int, float]) -> dict[int, float]:
    """Return ln(arm / reference) by block, for each block that both arms completed, in order.

    Both map a block's number to the launch median in one unit. An infinite value stands for a
    launch that a time limit cut off (censored): the ratio is then infinite on that side, and a
    block with both cut off says nothing and is dropped. Raises ValueError, naming the block, for
    NaN and for values not above zero.
    """
    ratios = {}
    for block in sorted(reference.keys() & arm.keys()):
        ours, theirs = arm[block], reference[block]
        if not (ours > 0 and theirs > 0):
            raise ValueError(f"block {block}: no ratio of {ours} to {theirs}")
        if math.isinf(ours) and math.isinf(theirs):
            continue
        ratios[block] = math.log(ours) - math.log(theirs)
    return ratios


def headline_log_ratios(cases: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """Return the mean log ratio over `cases` for each block that has all of them, in order.

    The mean of logs is the log of the geometric mean, so each case weighs the same whatever its
    size. A block in which one case is +inf and another -inf says nothing and is dropped. Every
    block gives one value, so cases that vary together are not counted as independent evidence.
    """
    if not cases:
        return {}
    common = sorted(set.intersection(*(set(case) for case in cases)))
    means = {block: sum(case[block] for case in cases) / len(cases) for block in common}
    return {block: mean for block, mean in means.items() if not math.isnan(mean)}
