"""Ties: values so coarsely printed or timed that launches look equal which are not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

TIED_LIMIT = 0.40
"""Share of the blocks whose log ratio is within half a quantum of their median."""

SMALL = 0.25
"""A quantum of at most this part of the margin cannot change a verdict that matters."""

PRINTED_DIGITS = 6
"""Values of more significant digits were computed: their last digit says nothing of a clock."""

SAME = 1e-9
"""Values that differ by a smaller share are one value that was computed twice."""


@dataclass(frozen=True, slots=True)
class Ties:
    """How coarse the values are: `quantum` is their step, as a share.

    It is inf where all values are equal and nothing says what the next one would have been.
    `share` is that of the blocks whose log ratio is within half a quantum of the median of all;
    with `too_coarse` the verdict is to be withheld.
    """

    share: float
    quantum: float
    too_coarse: bool


def ties(log_ratios: Sequence[float], margin: float, values: Sequence[float] = ()) -> Ties:
    """Return whether the log ratios of the blocks come from values too coarse to judge.

    They do if the quantum is more than a quarter of `margin` (a share) *and* more than 40 % of
    the log ratios are within half a quantum of their median, which in normal noise means that
    they scatter by less than about one quantum. A smaller quantum leaves the ratio right to a
    quarter of the margin; more scatter smears the steps out. Simulated with steps of 1/8 of the
    margin to 8 times the margin, and scatter from none to 4 quanta: verdicts that this lets pass
    are wrong by a quarter of the margin or more in at most 3 % of studies, without it in up to
    87 % (tests/test_stats_warnings.py). The share of exact ties cannot be the rule: it
    grows with the blocks. Values printed in steps of a quarter of their scatter, which harms no
    verdict, tie 16 % of 8 blocks and 46 % of 60.

    `values` are the launch medians of both arms at the one case that the ratios are of, in any
    order: the quantum is the smallest step between them, over their median. Are fewer than three
    of them different, their last printed digit counts as well: 1.23 in every launch is 0.8 %
    coarse. Without `values` (for a mean over cases, which has no step of its own) it is the
    smallest step between the log ratios, which is seldom more than the true one. Infinite log
    ratios and values (censored launches) are skipped. Raises ValueError for values not above
    zero, and for no finite log ratio.
    """
    finite = [d for d in log_ratios if not math.isinf(d)]
    known = [value for value in values if not math.isinf(value)]
    if not finite:
        raise ValueError("the ties of no log ratios")
    if not all(value > 0 for value in known):
        raise ValueError(f"the ties of values that are not above zero, such as {min(known)}")
    quantum = _quantum(known) if known else min(_gaps(finite), default=math.inf)
    middle, half = statistics.median(finite), max(quantum / 2, SAME)
    near = sum([abs(d - middle) < half for d in finite])
    share = near / len(finite)
    return Ties(share, quantum, quantum > _least(margin) and share > TIED_LIMIT)


def fine(values: Sequence[float], margin: float) -> bool:
    """Return whether the quantum of positive, finite values is too small to matter.

    Then `ties` does not find them too coarse, whatever the log ratios are.
    """
    return _quantum(values) <= _least(margin)


def coarseness(values: Sequence[float], margin: float) -> float:
    """Return the quantum of positive, finite values; 0.0 where it is unknown or does not matter."""
    quantum = _quantum(values) if values else 0.0
    return quantum if _least(margin) < quantum < math.inf else 0.0


def least_gap(values: Sequence[float]) -> float:
    """Return the smallest step that values are seen to have, in their unit; 0.0 for none.

    Of one gap only the last printed digit shows how many steps it has.
    """
    gaps = _gaps(values)
    return min(gaps if len(gaps) > 1 else _printed(values), default=0.0)


def _quantum(values: Sequence[float]) -> float:
    return _step(values) / statistics.median(values)


def _least(margin: float) -> float:
    """Return the quantum from which on one matters to a verdict at `margin`."""
    return SMALL * math.log1p(margin)


def _gaps(values: Sequence[float]) -> list[float]:
    """Return the steps between neighbouring values, those of rounding errors left out."""
    ordered = sorted(set(values))
    least = SAME * max(map(abs, ordered), default=0.0)
    return [b - a for a, b in pairwise(ordered) if b - a > least]


def _step(values: Sequence[float]) -> float:
    """Return the smallest step between values, in their unit; inf where it is unknown."""
    gaps = _gaps(values)
    return min(gaps if len(gaps) > 1 else [*gaps, *_printed(values)], default=math.inf)


def _printed(values: Sequence[float]) -> list[float]:
    """Return the step of the last digit of values, as a list; none where they were computed."""
    numbers = [Decimal(repr(float(value))).normalize().as_tuple() for value in set(values)]
    if not all(len(number.digits) <= PRINTED_DIGITS for number in numbers):
        return []
    return [min(10.0 ** min(int(number.exponent), 0) for number in numbers)]
