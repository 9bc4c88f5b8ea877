"""How long a study will take: before its first launch, and from what it has so far."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds that a study spends before its first block (`first_s`) and on each (`block_s`)."""

    first_s: float
    block_s: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one benchmark has come: `done` complete blocks of `block_s` seconds each.

    `needed` is what `verdict.blocks_needed` said at the last look, the largest over the arms;
    None if nothing is planned yet. `decided`: it will not be launched again.
    """

    done: int
    block_s: float
    needed: int | None = None
    decided: bool = False


def forecast(standings: Mapping[str, Standing], looks: Sequence[int]) -> float:
    """Return the seconds left of a study that decides at `looks`, blocks in ascending order.

    A benchmark ends at a look, so `needed` is rounded up to the next one still to come, at most
    the last. Before the first look nothing is known of the scatter, and the last is expected.
    Raises ValueError for no looks.
    """
    if not looks:
        raise ValueError("no looks, no end to forecast")
    left = (max(0, _end(one, looks) - one.done) * one.block_s for one in standings.values())
    return math.fsum(left)


def cost(launch_s: Mapping[str, Mapping[str, float]], *, together: bool = False) -> Cost:
    """Return what blocks cost, from the seconds of a launch by benchmark and arm (a pilot).

    One warm-up for each benchmark and arm, then one launch of each in a block. `together`: the arms
    of a block are launched at the same time (duet), and the slower one counts.
    """
    each = sum if not together else max
    launches = math.fsum(each(arms.values()) for arms in launch_s.values() if arms)
    return Cost(first_s=launches, block_s=launches)


def duration(each: Cost, least: int, most: int) -> tuple[float, float]:
    """Return the best and the worst seconds of a study of `least` to `most` blocks.

    The best is that every benchmark is decided at its first look, the worst that all go on to the
    last block. Blocks that are repeated after a failure are not in it.
    """
    return each.first_s + least * each.block_s, each.first_s + most * each.block_s


def blocks_affordable(each: Cost, budget_s: float) -> int:
    """Return how many blocks fit in `budget_s` seconds if all benchmarks go on; maybe 0.

    What a plan does with it is to make this the last look (`looks.schedule`) before the first
    launch: a budget that is known beforehand costs no confidence.
    """
    if each.block_s <= 0:
        raise ValueError(f"a block of {each.block_s} s")
    return max(0, math.floor((budget_s - each.first_s) / each.block_s))


def _next(done: int, looks: Sequence[int]) -> int:
    return next((look for look in looks if look > done), looks[-1])


def _end(standing: Standing, looks: Sequence[int]) -> int:
    if standing.decided:
        return standing.done
    if standing.needed is None or standing.done < looks[0]:
        return looks[-1]
    return _next(max(standing.done, standing.needed - 1), looks)
