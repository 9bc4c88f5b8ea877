"""Sessions: what counts when the factor is expensive to switch.

All launches between two switches share one installation (one boot, one cabling, one placement of
a machine's memory). Counting them as evidence about the factor is pseudo-replication (S. H.
Hurlbert, Ecol. Monogr. 54 (1984) 187): the session is the unit, its launches are replicates.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence

from paribus.stats.verdict import sd_of, sd_within

LEAST_SWITCHES = 6
"""Switches in each direction from which a difference may be called the factor's.

Six installations of one arm all lie on one side of six of the other by chance in 1 of 462
studies; three of three in 1 of 10.
"""

LEAST_LAUNCHES = 3
"""The fewest launches of a session: a median of two is a mean, which one outlier moves."""

MOST_LAUNCHES = 50
"""The most launches of a session: more make its median hardly more precise."""


def switches(orders: Sequence[Sequence[str]]) -> dict[tuple[str, str], int]:
    """Return how often a study switched from one arm to another, for each direction.

    `orders` holds the arms of each block of sessions in the order of time. Sessions that follow
    each other on the same arm, also across blocks, are no switch; nor is the first session, of
    which nobody knows what came before. Directions that never occurred between two arms that did
    are in it with 0.
    """
    sessions = [arm for order in orders for arm in order]
    counts = dict.fromkeys(itertools.permutations(dict.fromkeys(sessions), 2), 0)
    for before, after in itertools.pairwise(sessions):
        if before != after:
            counts[before, after] += 1
    return counts


def attributable(
    orders: Sequence[Sequence[str]], arms: Sequence[str] = (), least: int = LEAST_SWITCHES
) -> bool:
    """Return whether each of `arms` (none: all of the study) was switched to `least` times or more.

    With two arms that is `least` switches in each direction; with more it does not matter from
    which arm, because what chance has a say in is the new installation. A block of
    two arms has 1.5 switches on average, in either direction: 8 blocks make 6 each way in half
    of all studies, 10 in 98 %.
    """
    wanted = set(arms) or {arm for order in orders for arm in order}
    made: Counter[str] = Counter()
    for (_, after), count in switches(orders).items():
        made[after] += count
    return bool(wanted) and all(made[arm] >= least for arm in wanted)


def components(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the standard deviations between sessions and between the launches of a session.

    `values` holds, for each session of one arm, the logs of its launches. Both are robust
    (`scatter`). What the launches explain of the scatter of the session medians
    (`_share_of_median`) is taken off the first; drift between sessions is in it. NaN where
    nothing is known: the first for fewer than two sessions, the second where no session has
    two launches. Raises ValueError for sessions without launches and values not finite.
    """
    for launches in values:
        if not launches or not all(map(math.isfinite, launches)):
            raise ValueError("a session without a finite value")
    sd_launch = sd_within(values)
    total = sd_of([statistics.median(launches) for launches in values])
    if math.isnan(total):
        return total, sd_launch
    share = statistics.fmean(_share_of_median(len(launches)) for launches in values)
    explained = 0.0 if math.isnan(sd_launch) else share * sd_launch**2
    return math.sqrt(max(0.0, total**2 - explained)), sd_launch


def analysed(arms: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float]:
    """Return what `components` does, of several arms together and by analysis of variance.

    `arms` holds values as there, each arm about its own mean. Squares, not medians: one session
    that is off is what this is to show (R. A. Fisher, Statistical methods for research workers
    (1925), chapter 7; the share of the first in both is his intraclass correlation). Of sessions
    with unlike numbers of launches the mean number counts.
    """
    between = within = 0.0
    for sessions in arms:
        middle = statistics.fmean(itertools.chain.from_iterable(sessions))
        for launches in sessions:
            own = statistics.fmean(launches)
            between += len(launches) * (own - middle) ** 2
            within += sum((one - own) ** 2 for one in launches)
    numbers = [len(launches) for sessions in arms for launches in sessions]
    free = len(numbers) - len(arms), sum(numbers) - len(numbers)
    if not all(free):
        return math.nan, math.nan
    between, within = between / free[0], within / free[1]
    each = statistics.fmean(numbers)
    return math.sqrt(max(0.0, between - within) / each), math.sqrt(within)


def launches_per_session(
    switch_s: float, launch_s: float, sd_launch: float, sd_session: float
) -> int:
    """Return how many launches of a session give the shortest study for a wanted precision.

    m* = sqrt((c_switch / c_launch) s_launch^2 / s_session^2), which minimises (c_switch + m
    c_launch) (s_session^2 + s_launch^2 / m): T. Kalibera, R. Jones, "Rigorous benchmarking in
    reasonable time", ISMM'13. `switch_s` is what a session costs before its first launch, warm-up
    included. At least LEAST_LAUNCHES, at most MOST_LAUNCHES, which is also the answer where
    sessions do not differ. The cost is flat around m*: twice or half as many cost at most an
    eighth more. Raises ValueError for costs not above 0 and deviations below 0 or NaN.
    """
    if not (switch_s > 0 and launch_s > 0):
        raise ValueError(f"a switch of {switch_s} s and a launch of {launch_s} s")
    if not (sd_launch >= 0 and sd_session >= 0):
        raise ValueError(f"deviations of {sd_launch} and {sd_session}")
    if sd_session == 0:
        return MOST_LAUNCHES if sd_launch > 0 else LEAST_LAUNCHES
    best = math.sqrt(switch_s / launch_s) * sd_launch / sd_session
    return min(max(LEAST_LAUNCHES, math.ceil(best)), MOST_LAUNCHES)


def _share_of_median(n: int) -> float:
    """Return the variance of the median of `n` normal values of variance 1, within 5 %.

    It tends to pi / 2n; the constants make it agree from n = 1 on (even n average two values).
    """
    return math.pi / (2 * n + (math.pi - 2 if n % 2 else 2.6))
