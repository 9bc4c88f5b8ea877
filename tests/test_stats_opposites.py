"""Combinations launched with their opposites: which, and what least squares through them says."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, permutations

import pytest

from paribus.stats import parts
from paribus.stats.opposites import RUN, Opposed, Unit, dealt

Logs = list[float]


def drawn(several: int, logs: Logs, blocks: int, *, seed: int = 1, noise: float = 0.0) -> Opposed:
    """Return the units of blocks of which a launch takes the log of its station, and noise."""
    draw, needs, units = random.Random(seed), ((),) * several, []
    for block in range(1, blocks + 1):
        level = draw.gauss(0, 1) * bool(noise)
        for pair in parts.groups(needs, seed, "x", block):
            one, other = (logs[n] + level + draw.gauss(0, noise) for n in pair)
            units.append(Unit(block, pair[0], one, other))
    return Opposed(several, tuple(units))


def shapley(several: int, logs: Logs) -> list[float]:
    found, turns = [0.0] * several, list(permutations(range(several)))
    for turn in turns:
        station = 0
        for one in turn:
            found[one] += (logs[station | 1 << one] - logs[station]) / len(turns)
            station |= 1 << one
    return found


def game(several: int, pair: float = 0.0, triple: float = 0.0) -> Logs:
    effects = (0.1, 0.02, 0.0, -0.03, 0.05, 0.3, 0.0, -0.02)
    return [
        sum(effects[n] for n in range(several) if station >> n & 1)
        + pair * (station & 3 == 3)
        + triple * (station & 7 == 7)
        for station in range(1 << several)
    ]


@pytest.mark.parametrize("several", range(4, 9))
def test_each_block_has_both_arms_and_combinations_with_their_opposites(several: int) -> None:
    needs, whole = ((),) * several, (1 << several) - 1
    assert parts.groups(needs, 5, "x", 0) == ((whole, 0),)  # the warm-up
    for block in range(1, 40):
        groups = parts.groups(needs, 5, "x", block)
        assert groups[0] == (whole, 0)
        assert all(one ^ other == whole for one, other in groups)
        launched = [one for pair in groups for one in pair]
        assert len(launched) == len(set(launched)) == 2 * (1 + (several + 1) // 2)
    assert dealt(several, 5, "x", 0) != dealt(several, 6, "x", 0) != dealt(several, 6, "x", 1)
    bound = ((), (0,), *needs[2:])
    assert len(parts.groups(bound, 5, "x", 3)) == 1  # as orders allow it


@pytest.mark.parametrize("several", range(4, 9))
def test_sizes_come_as_often_as_shapley_values_ask_for(several: int) -> None:
    """In proportion to 1 / (s (n - s)) to within one; of a size, none again before all others."""
    every = [one for hand in dealt(several, 7, "x", 0) for one in hand]
    size = Counter(min(one.bit_count(), several - one.bit_count()) for one in every)
    share = {s: (1 if 2 * s == several else 2) / s / (several - s) for s in size}
    for s, seen in size.items():
        assert abs(seen - len(every) * share[s] / sum(share.values())) <= 1
        pairs = math.comb(several, s) // (1 + (2 * s == several))
        counts = Counter(
            one for one in every if min(one.bit_count(), several - one.bit_count()) == s
        )
        assert max(counts.values()) <= math.ceil(seen / pairs) + 1
    assert len(dealt(several, 7, "x", 0)) == RUN


@pytest.mark.parametrize("several", range(4, 9))
def test_parts_are_exact_where_changes_act_in_pairs(several: int) -> None:
    """And what acts together is, with a level of its own in each block."""
    logs = game(several, pair=0.4)
    found = drawn(several, logs, 24)
    truth = [logs[1 << n] + 0.2 * (n < 2) for n in range(several)]
    for one, known in zip(found.compared(range(25), 0.95), truth, strict=True):
        assert math.log(one.ratio) == pytest.approx(known, abs=1e-5)
        assert one.low <= one.ratio <= one.high
        assert one.blocks == 24
    acting = found.acting(range(25), 0.95)
    assert list(acting) == list(combinations(range(several), 2))
    for pair, one in acting.items():
        assert math.log(one.ratio) == pytest.approx(0.4 * (pair == (0, 1)), abs=1e-6)


@pytest.mark.parametrize("several", [4, 5, 6])
def test_parts_are_shapley_values_where_three_changes_act_together(several: int) -> None:
    logs = game(several, pair=0.2, triple=0.6)
    truth, blocks = shapley(several, logs), range(1, 1 + 4 * RUN)
    mean = [0.0] * several
    for seed in range(40):
        for n, one in enumerate(drawn(several, logs, 4 * RUN, seed=seed).compared(blocks, 0.95)):
            mean[n] += math.log(one.ratio) / 40
    assert mean == pytest.approx(truth, abs=0.004)  # 0.6 / 4 is the mean over all combinations


def test_blocks_say_of_each_part_what_adds_up_to_the_whole() -> None:
    found = drawn(5, game(5, 0.1, 0.1), 18, noise=0.02)
    whole = {one.block: one.log - one.opposite for one in found.units if one.station == 31}
    for block, known in whole.items():
        assert math.isclose(sum(one[block] for one in found.parts), known, abs_tol=1e-4)
    compared = found.compared(range(19), 0.95)
    for one, values in zip(compared, found.parts, strict=True):
        assert math.log(one.ratio) == pytest.approx(sum(values.values()) / 18, abs=1e-9)


def test_what_is_missing_or_cut_off_leaves_no_false_interval() -> None:
    found = drawn(4, game(4), 12, noise=0.01)
    missing = found.units[1]._replace(log=math.nan)
    less = Opposed(4, (found.units[0], missing, *found.units[2:]))
    assert all(one and one.high < math.inf for one in less.compared(range(13), 0.95))
    cut = found.units[1]._replace(opposite=math.inf)
    off = Opposed(4, (found.units[0], cut, *found.units[2:]))
    for one in (*off.compared(range(13), 0.95), *off.acting(range(13), 0.95).values()):
        assert (one.low, one.high) == (0.0, math.inf)
    assert found.compared((), 0.95) == [None] * 4
    assert found.acting((), 0.95) == {}
    few = found.compared([1], 0.95)
    assert all(one and (one.low, one.high) == (0.0, math.inf) for one in few)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """In 95 % at one look: 300 studies of five changes, each with combinations of its own."""
    truth, held = game(5), 0
    for seed in range(300):
        compared = drawn(5, truth, 12, seed=seed, noise=0.015).compared(range(13), 0.95)
        held += sum(
            one is not None and one.low <= math.exp(truth[1 << n]) <= one.high
            for n, one in enumerate(compared)
        )
    assert 0.93 < held / 1500 < 0.97  # 3.5 standard errors on either side
