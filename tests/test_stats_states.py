"""Two states: found where they are, seldom where they are not."""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from paribus.stats.states import (
    TwoStates,
    higher_sides,
    ratio_per_state,
    shares_differ,
    two_states,
    widest_gap,
)


def lognormal(draw: random.Random, sd: float, count: int) -> list[float]:
    return [draw.lognormvariate(0, sd) for _ in range(count)]


@pytest.mark.parametrize(("launches", "bound"), [(12, 0.02), (18, 0.01), (60, 0.005)])
def test_one_state_is_seldom_taken_for_two(launches: int, bound: float) -> None:
    draw = random.Random(7)
    told = sum(two_states(lognormal(draw, 0.3, launches)) is not None for _ in range(3000))
    assert told / 3000 <= bound


@pytest.mark.parametrize("apart", [1.5, 2.4])
def test_two_states_are_found_and_measured(apart: float) -> None:
    draw = random.Random(8)
    for _ in range(300):
        values = lognormal(draw, 0.03, 11) + [apart * v for v in lognormal(draw, 0.03, 7)]
        draw.shuffle(values)
        found = two_states(values)
        assert found is not None
        assert (found.higher, found.launches) == (7, 18)
        assert found.apart == pytest.approx(apart, rel=0.08)


def test_the_recorded_machine_with_two_states() -> None:
    """22 to 24 of 169 launches of 8 B over shared memory took 3.4 times as long."""
    path = Path(__file__).parent / "data" / "noise-launches.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["transport"] == "shm"]
    (column,) = [name for name in rows[0] if name.startswith("pp8") and "50" in name]
    found = two_states([float(row[column]) for row in rows])
    assert found is not None
    assert found.apart == pytest.approx(3.4, rel=0.1)
    assert 20 <= found.higher <= 26


def test_few_launches_small_gaps_and_equal_values_are_not_told() -> None:
    assert two_states([1.0] * 5 + [3.0] * 6) is None
    assert two_states([1.0] * 10 + [1.05] * 10) is None
    assert two_states([2.0] * 20) is None
    assert two_states([1.0] * 18 + [9.0] * 2) is None


def test_exactly_repeated_values_in_both_states() -> None:
    found = two_states([1.0] * 10 + [3.0] * 10)
    assert found is not None
    assert math.isclose(found.apart, 3.0)


@pytest.mark.parametrize(
    "counts", [(7, 18, 7, 18), (0, 12, 9, 12), (3, 20, 11, 18), (18, 18, 1, 18), (5, 30, 6, 12)]
)
def test_fishers_test_is_scipys(counts: tuple[int, int, int, int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    a, n, b, m = counts
    expected = stats.fisher_exact([[a, n - a], [b, m - b]])[1]
    assert shares_differ(TwoStates(2, a, n), TwoStates(2, b, m)) == pytest.approx(expected)


def pairs(
    draw: random.Random, higher: Callable[[int], tuple[bool, bool]], ratio: tuple[float, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return two arms by block, states 2.4 apart, the arm `ratio` (lower, higher) times as slow."""
    reference, arm = {}, {}
    for block in range(40):
        mine, its = higher(block)
        reference[block] = draw.lognormvariate(0, 0.02) * (2.4 if mine else 1)
        arm[block] = draw.lognormvariate(0, 0.02) * (2.4 * ratio[1] if its else ratio[0])
    return reference, arm


def test_ratios_in_each_state() -> None:
    draw = random.Random(9)
    found = ratio_per_state(
        *pairs(draw, lambda b: (b >= 25, b >= 25 or b in (3, 8)), ratio=(1.05, 1.3))
    )
    assert found is not None
    assert found.lower == pytest.approx(1.05, abs=0.01)
    assert found.higher == pytest.approx(1.3, abs=0.02)
    assert (found.lower_blocks, found.higher_blocks, found.mixed) == (23, 15, 2)
    assert (found.reference.higher, found.arm.higher) == (15, 17)
    assert found.arm.share == pytest.approx(17 / 40)
    assert not found.shares_differ


def test_an_arm_that_is_always_in_one_state() -> None:
    draw = random.Random(10)
    found = ratio_per_state(*pairs(draw, lambda b: (b % 2 == 0, True), ratio=(1.0, 1.0)))
    assert found is not None
    assert (found.reference.higher, found.arm.higher, found.mixed) == (20, 40, 20)
    assert found.arm.apart == 1.0
    assert found.lower is None
    assert found.higher == pytest.approx(1.0, abs=0.02)
    assert found.shares_differ
    assert found.p < 1e-6


def test_no_states_no_ratios_in_them() -> None:
    draw = random.Random(11)
    assert ratio_per_state(*pairs(draw, lambda _: (False, False), ratio=(1.1, 1.0))) is None
    assert ratio_per_state({}, {}) is None
    with pytest.raises(ValueError, match="no state"):
        ratio_per_state({1: 0.0}, {1: 1.0})


@pytest.mark.parametrize("launches", [12, 20, 40])
def test_shares_of_arms_that_share_the_machine_seldom_differ(launches: int) -> None:
    """Sticky states, neighbours mostly in the same one: Fisher's test errs in less than 5 %."""
    draw = random.Random(12)
    told = 0
    for _ in range(400):
        slow = draw.random() < 0.4
        arms: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for block in range(launches):
            for arm in arms:
                slow ^= draw.random() < 0.1
                arm[block] = draw.lognormvariate(0, 0.02) * (2.4 if slow else 1)
        found = ratio_per_state(*arms)
        told += found is not None and found.shares_differ
    assert told / 400 <= 0.05


def test_sides_agree_with_the_count() -> None:
    draw = random.Random(13)
    values = [draw.lognormvariate(0, 0.02) * (2.4 if i % 3 else 1) for i in range(30)]
    sides = higher_sides(values)
    assert sides == tuple(bool(i % 3) for i in range(30))
    assert two_states(values).higher == sum(sides)
    assert higher_sides(values[:11]) is None


def test_strays_may_lie_in_the_gap_only_where_they_are_allowed() -> None:
    logs = [0.012 * i for i in range(20)] + [0.6] + [1 + 0.012 * i for i in range(20)]
    assert widest_gap(logs, 3, 38) is None
    assert 0.23 < widest_gap(logs, 3, 38, between=1) < 1
    assert widest_gap(logs, 0, 38) is None
    assert widest_gap(logs, 3, 41) is None
    assert widest_gap(logs, 30, 29) is None
