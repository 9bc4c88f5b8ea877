"""Find, date and size the changes of one effect over many studies, each of several blocks.

Studies that say 2 %, 2 %, 2 %, 2 %, 2 %, 5 %, 5 %, 5 % have two stages: the effect changed before
the first of 5 %. Three tests must agree. The blocks of all studies, one after the other, must leave
no one ratio that a confidence sequence allows, as in a monitored study (stats/betting.py): while
the effect stays the same that happens in at most `error` of histories, however long they grow. And
the means of the studies before and since must lie apart for the scatter from study to study
(Student's t), for days may differ by themselves, which the blocks of one day cannot show. That test
is made after each study and at each place, so its error is divided: after n studies since the last
change it is error / ((n - 7) (n - 6)), which over all n from 8 on sums to `error`, shared by n - 5
places. Where some days are of another kind, three such in a row may lie far out. So the studies
since must also rank above or below those before (rank sums, at error / (n - 7)).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count

from paribus.stats.betting import confidence_sequence
from paribus.stats.order import rank_sum_p
from paribus.stats.student import p_value, quantile

LEAST_SIDE = 3
"""Studies before and since a change: one or two may be days of another kind."""

LEAST_STUDIES = 8
"""With fewer, days of two kinds stand in two rows by chance in more than 5 % of histories."""

ROUNDING = 1e-9


def fewest(error: float) -> int:
    """Return from how many studies on ranks can show a change, at this share of the error."""
    return next(n for n in count(LEAST_STUDIES) if math.comb(n, n // 2) * error >= 2 * (n - 7))


@dataclass(frozen=True, slots=True)
class Stage:
    """Studies `first` to `last`, counted from 0, that have one effect: `mean` is its log ratio.

    `noticed` is the study after which the change at the end of the stage was noticed, None for the
    last stage.
    """

    first: int
    last: int
    mean: float
    noticed: int | None = None


def stages(
    studies: Sequence[Sequence[float]], values: Sequence[float], error: float = 0.05
) -> tuple[Stage, ...]:
    """Return the stages of studies, in order of time.

    `studies` are the log ratios of the blocks of each study, `values` the log ratio that each study
    estimates. `error` is the share of histories without a change in which one is found. A later
    study never moves a change that was noticed.
    """
    found: list[Stage] = []
    first = 0
    while True:
        change = _change(studies[first:], values[first:], error)
        if change is None:
            last = len(studies) - 1
            return (*found, Stage(first, last, statistics.fmean(values[first:])))
        cut, seen = change
        mean = statistics.fmean(values[first : first + cut])
        found.append(Stage(first, first + cut - 1, mean, first + seen - 1))
        first += cut


def _change(
    studies: Sequence[Sequence[float]], values: Sequence[float], error: float
) -> tuple[int, int] | None:
    """Return after how many studies the effect changed, and after how many that shows; or None."""
    if len(studies) < LEAST_STUDIES:
        return None
    blocks = [block for one in studies for block in one]
    moved = confidence_sequence(blocks, 1 - error).moved
    if moved is None:
        return None
    ends = accumulate(map(len, studies))
    first = next(n for n, end in enumerate(ends, 1) if end >= moved)
    for n in range(max(first, LEAST_STUDIES), len(studies) + 1):
        places = range(LEAST_SIDE, n - LEAST_SIDE + 1)
        p, cut = min((_student_p(values[:n], place), place) for place in places)
        order = n - LEAST_STUDIES + 1
        if p * len(places) <= error / (order * (order + 1)):
            ranks = rank_sum_p([(values[:cut], values[cut:n])])
            if ranks <= error / order + ROUNDING:
                return cut, n
    return None


def _student_p(values: Sequence[float], cut: int) -> float:
    """Return p of Student's test that the values before and since a cut have one mean."""
    shift, width, freedom = _shift(values[:cut], values[cut:])
    if not width:
        return float(not shift)
    return p_value(shift / width, freedom)


def _shift(before: Sequence[float], since: Sequence[float]) -> tuple[float, float, int]:
    """Return the difference of the means, its standard error, and the degrees of freedom."""
    freedom = len(before) + len(since) - 2
    means = statistics.fmean(before), statistics.fmean(since)
    squares = sum((x - m) ** 2 for xs, m in zip((before, since), means, strict=True) for x in xs)
    width = math.sqrt(squares / freedom * (1 / len(before) + 1 / len(since)))
    return means[1] - means[0], width, freedom


def step(
    before: Sequence[float], since: Sequence[float], level: float
) -> tuple[float, float, float]:
    """Return by how much the mean log ratio changed, and the ends of its interval at `level`."""
    shift, width, freedom = _shift(before, since)
    reach = quantile((1 - level) / 2, freedom) * width
    return shift, shift - reach, shift + reach
