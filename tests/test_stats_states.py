"""Two states: found where they are, seldom where they are not."""

from __future__ import annotations

import csv
import gzip
import math
import random
from pathlib import Path

import pytest

from paribus.stats.states import TwoStates, shares_differ, two_states


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
