"""The state probe: in which blocks the machine was in two states, and whether the arms differ.

Every launch has a few figures of the machine, such as the time of a fixed loop, taken before and
after what it measures. Nothing else counts here, so that a block is rerun for the state of the
machine and never for what was measured.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from paribus.stats.estimate import compare
from paribus.stats.order import rank_sum_p
from paribus.stats.reliability import failures_differ
from paribus.stats.states import LEAST_IN_STATE, LEAST_LAUNCHES, LEVEL, widest_gap

REDO_MOST = 0.20
"""Share of the blocks that may be rerun: a machine that flips more often is as it is."""

STRAYS = 50
"""One value in so many may lie inside the gap, or long studies would close it: of 240 launches
whose figures scatter by 12 %, states 3.5 times apart were seen in 43 % of studies without, in all
of 30 with; recorded launches of one state are taken for two in 0.1 % of studies either way."""

LEAST_DIFFERENCE = 0.05
"""A figure of the probe that differs by less between the arms is not worth a notice."""

CONFIDENCE = 0.99
"""Of the interval that must exclude "no difference": there are three figures for each arm."""


@dataclass(frozen=True, slots=True)
class ProbeOfLaunch:
    """The figures of the state probe of one launch.

    `block` names the block, uniquely in the study; `figures` map "before.NAME" and "after.NAME" to
    a value above zero (others, and missing ones, are skipped).
    """

    block: Hashable
    arm: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ArmsDiffer:
    """A figure of the probe in which an arm differs from the reference.

    `kind` "level": by the factor `ratio` (interval `low` to `high`, 99 %) in the same block;
    "share": the arm was alone in the higher state in `only_arm` blocks, the reference in
    `only_reference`, which chance explains with probability `p`.
    """

    figure: str
    arm: str
    kind: str
    ratio: float = 1.0
    low: float = 1.0
    high: float = 1.0
    only_arm: int = 0
    only_reference: int = 0
    p: float = 1.0


@dataclass(frozen=True, slots=True)
class Switching:
    """How far a figure of the probe depends on the mode of launches.

    Before launches of the upper mode its median is `ratio` times that before the others of the same
    arm; a `p` so small comes by chance in that share of studies, all figures together.
    """

    figure: str
    ratio: float
    p: float

    @property
    def found(self) -> bool:
        return self.p < LEVEL


@dataclass(frozen=True, slots=True)
class _Sides:
    """By one figure, the states that each launch was seen in: True for the higher one."""

    probes: Sequence[ProbeOfLaunch]
    seen: Sequence[frozenset[bool]]

    def blocks(self) -> dict[Hashable, dict[str, frozenset[bool]]]:
        """Return the states that each arm was seen in, by block."""
        found: dict[Hashable, dict[str, frozenset[bool]]] = {}
        for probe, states in zip(self.probes, self.seen, strict=True):
            arms = found.setdefault(probe.block, {})
            arms[probe.arm] = arms.get(probe.arm, frozenset()) | states
        return found

    def alone_higher(self, reference: str, arm: str) -> tuple[int, int]:
        """Return in how many blocks only `reference`, and only `arm`, was in the higher state."""
        pairs = [(arms.get(reference), arms.get(arm)) for arms in self.blocks().values()]
        return (
            sum(pair == (frozenset({True}), frozenset({False})) for pair in pairs),
            sum(pair == (frozenset({False}), frozenset({True})) for pair in pairs),
        )


def discordant_blocks(probes: Sequence[ProbeOfLaunch]) -> set[Hashable]:
    """Return the blocks in which the machine was seen in both of two states, from the probes only.

    For each figure a gap test (states.widest_gap) sorts all values of all launches into two
    states, each holding both values of three launches or more; a block is discordant if its
    launches, or the two values of one of them, are on different sides. Before that each arm is
    shifted by the median of its difference to the others within blocks: an arm that always has
    another level, or is always in the other state, is no reason to rerun blocks, nor is
    one that is in a state significantly more often (`arms_differ` reports both). Fewer than 12
    launches have no states.

    With one state some block is called discordant in 0.1 % of studies of 12 to 120 launches
    (launches resampled from 31 recorded studies; in normal noise never in 2,000 studies). On a
    recorded machine with two states 9 of 69 blocks are: all 7 whose launches of 8 B took times
    over 1.6 apart, and 2 in which the state changed inside a launch
    (tests/test_stats_probes.py).
    """
    found: set[Hashable] = set()
    arms = list(dict.fromkeys(probe.arm for probe in probes))
    for figure in _names(probes):
        sides = _sides(probes, figure)
        if sides is None:
            continue
        alone = [sides.alone_higher(arms[0], arm) for arm in arms[1:]]
        if any(failures_differ(*counts) < LEVEL for counts in alone):
            continue
        for block, seen in sides.blocks().items():
            if len(frozenset().union(*seen.values())) > 1:
                found.add(block)
    return found


def arms_differ(probes: Sequence[ProbeOfLaunch], reference: str) -> tuple[ArmsDiffer, ...]:
    """Return in which figures of the probe the arms differ from `reference`, for a notice.

    Pass every launch, those of blocks that were rerun included (under a name of their own):
    without them the arms agree in their states by selection. A share differs by McNemar's exact
    test on blocks at 5 %; a level by more than 5 % with a 99 % signed-rank interval over blocks
    that excludes 1, which takes 8 blocks. Where the share differs, the level is not reported.
    Arms that do not differ are reported in at most 4 % of studies of three figures that scatter by
    20 % (tests/test_stats_probes.py).
    """
    found = []
    arms = [arm for arm in dict.fromkeys(probe.arm for probe in probes) if arm != reference]
    for figure in _names(probes):
        sides = _sides(probes, figure)
        for arm in arms:
            if sides is not None:
                counts = sides.alone_higher(reference, arm)
                p = failures_differ(*counts)
                if p < LEVEL:
                    found.append(
                        ArmsDiffer(
                            figure,
                            arm,
                            "share",
                            only_reference=counts[0],
                            only_arm=counts[1],
                            p=p,
                        )
                    )
                    continue
            differences = _differences(probes, figure, reference, arm)
            if not differences:
                continue
            level = compare(differences, CONFIDENCE)
            beyond = abs(math.log(level.ratio)) > math.log1p(LEAST_DIFFERENCE)
            if beyond and not level.low <= 1 <= level.high:
                found.append(ArmsDiffer(figure, arm, "level", level.ratio, level.low, level.high))
    return tuple(found)


def switching(launches: Sequence[tuple[str, bool, Mapping[str, float]]]) -> Switching | None:
    """Return the figure of the probe that goes best with the mode of launches, None without one.

    A launch is its arm, whether it is in the upper mode, and its figures as in ProbeOfLaunch. Only
    those from before count: what is seen after a launch may be its own doing. Rank-sum test within
    each arm, all arms together, times the number of figures. It is exact where a program draws its
    mode anew in each launch, whatever the machine does meanwhile.
    """
    names = dict.fromkeys(key.rpartition(".")[2] for *_, figures in launches for key in figures)
    found = []
    for name in names:
        strata: dict[str, tuple[list[float], list[float]]] = {}
        for arm, upper, figures in launches:
            value = figures.get(f"before.{name}", 0.0)
            if math.isfinite(value) and value > 0:
                strata.setdefault(arm, ([], []))[not upper].append(math.log(value))
        known = [both for both in strata.values() if all(both)]
        if known:
            apart = [statistics.median(one) - statistics.median(other) for one, other in known]
            ratio = math.exp(statistics.fmean(apart))
            found.append(Switching(name, ratio, rank_sum_p(known)))
    if not found:
        return None
    best = min(found, key=lambda one: one.p)
    return replace(best, p=min(1.0, best.p * len(found)))


def _names(probes: Sequence[ProbeOfLaunch]) -> list[str]:
    """Return the names of the figures, without "before." and "after."."""
    return list(dict.fromkeys(key.rpartition(".")[2] for p in probes for key in p.figures))


def _logs(probe: ProbeOfLaunch, figure: str) -> list[float]:
    return [
        math.log(value)
        for key, value in probe.figures.items()
        if key.rpartition(".")[2] == figure and math.isfinite(value) and value > 0
    ]


def _differences(
    probes: Sequence[ProbeOfLaunch], figure: str, reference: str, arm: str
) -> list[float]:
    """Return ln(arm / reference) of one figure in each block that has it of both."""
    means: dict[Hashable, dict[str, list[float]]] = {}
    for probe in probes:
        means.setdefault(probe.block, {}).setdefault(probe.arm, []).extend(_logs(probe, figure))
    return [
        statistics.fmean(arms[arm]) - statistics.fmean(arms[reference])
        for arms in means.values()
        if arms.get(arm) and arms.get(reference)
    ]


def _sides(probes: Sequence[ProbeOfLaunch], figure: str) -> _Sides | None:
    """Return the states of every launch by one figure, or None where there is but one state."""
    arms = list(dict.fromkeys(probe.arm for probe in probes))
    shift = dict.fromkeys(arms, 0.0)
    for arm in arms[1:]:
        shift[arm] = statistics.median(_differences(probes, figure, arms[0], arm) or [0.0])
    readings = [[value - shift[p.arm] for value in _logs(p, figure)] for p in probes]
    known = [values for values in readings if values]
    if len(known) < LEAST_LAUNCHES:
        return None
    pooled = sorted(value for values in known for value in values)
    # Single wild readings are common and no state: three launches must be in it all through.
    least = bisect_right(pooled, sorted(map(max, known))[LEAST_IN_STATE - 1])
    most = bisect_left(pooled, sorted(map(min, known))[-LEAST_IN_STATE])
    cut = widest_gap(pooled, least, most, len(pooled) // STRAYS)
    if cut is None:
        return None
    return _Sides(probes, [frozenset(value > cut for value in values) for values in readings])
