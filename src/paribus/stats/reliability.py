"""Launches that failed: when they, and not the speed, are what differs."""

from __future__ import annotations

import math
from collections.abc import Collection

from paribus.core import Reason, Verdict, Word, units

MOST_CENSORED = 0.02
"""Share of an arm's launches that may be cut off before "by how much" is withheld.

A launch that was cut off took longer than the limit, by an unknown amount. Leaving its block out
hides a slow tail, ranking it last (as is done) exaggerates one; the sign survives, the size does
not. Simulated with 20 blocks, launches of sd 4 %, an arm 3 % slower and a limit that cuts off 22 %
of its launches (7 % of the reference's): left out, the estimate is +2.0 % and 88 % of intervals
contain the 3 %; ranked last, +4.3 % and 93 %. With 2 % cut off: +2.9 %, +3.1 %, and 95 % or more
(tests/test_stats_warnings.py).
"""


def censored_share(cut: int, launches: int) -> float:
    """Return the share of `launches` that the time limit cut off; 0 where there were none.

    Raises ValueError for negative counts and for more cut off than launched.
    """
    if not 0 <= cut <= launches:
        raise ValueError(f"{cut} of {units.count(launches, 'launch')} cut off")
    return cut / launches if launches else 0.0


MOST_FAILING = 0.10
"""Share of blocks in which an arm may fail before its speed alone says too little."""

LEVEL = 0.05


def failures_differ(only_reference: int, only_arm: int) -> float:
    """Return the exact two-sided p of McNemar's test on blocks.

    Of the blocks in which exactly one arm failed, each is a fair coin if both arms fail equally
    often; blocks in which both or neither failed say nothing. (McNemar, Psychometrika 12 (1947)
    153, with the binomial distribution for the normal one.)
    """
    if min(only_reference, only_arm) < 0:
        raise ValueError(units.count(min(only_reference, only_arm), "block"))
    n = only_reference + only_arm
    tail: int = sum(math.comb(n, k) for k in range(min(only_reference, only_arm) + 1))
    return min(1.0, 2 * tail / (1 << n))


def reliability(
    reference_failed: Collection[int],
    arm_failed: Collection[int],
    blocks: int,
    *,
    last: bool = False,
) -> Verdict | None:
    """Return the verdict that failures lead to, or None when they do not stand in the way.

    The collections hold the numbers of the blocks in which that arm's launch failed, timed out
    or was invalid; `blocks` is how many blocks were attempted. Failures that differ between the
    arms (exact McNemar p < .05) are "reliability differs". Where they do not, an arm that fails in
    more than 10 % of the blocks withholds the verdict: what is left of it may be the fast launches.
    Final if they differ or no block will follow (`last`): a share may still fall as blocks are
    added. Looked at with the looks of 60 blocks, arms that both fail in 10 % of blocks
    are called different in 3.6 % of studies. Raises ValueError when more blocks failed than were
    attempted.
    """
    reference, arm = set(reference_failed), set(arm_failed)
    if len(reference | arm) > blocks:
        raise ValueError(f"{len(reference | arm)} of {units.count(blocks, 'block')} failed")
    if not reference and not arm:
        return None
    p = failures_differ(len(reference - arm), len(arm - reference))
    share = max(len(reference), len(arm)) / blocks
    if p >= LEVEL and share <= MOST_FAILING:
        return None
    figures = {"failed": len(arm), "reference_failed": len(reference), "blocks": blocks, "p": p}
    if p < LEVEL:
        return Verdict(Word.RELIABILITY, Reason.FAILURES_DIFFER, final=True, figures=figures)
    figures["most"] = MOST_FAILING
    return Verdict(Word.WITHHELD, Reason.TOO_MANY_FAILURES, final=last, figures=figures)
