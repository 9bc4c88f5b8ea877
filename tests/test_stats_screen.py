"""Slow units of a fleet: exact chances, looks, and what must not change a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.screen.course import (
    BELOW,
    ERROR,
    LATER,
    SHARES,
    Row,
    Rules,
    chance,
    detectable,
    looks,
)
from paribus.screen.nodes import LOWER, ROUNDS, Nodes, divided, scatter
from validation.screens import Fleet, launches

MARGIN = -math.log1p(-0.04)
SMALL = st.floats(-0.05, 0.05, allow_nan=False)
RULES = Rules(ROUNDS, LATER, BELOW, 0.0)


def taken(rows: list[Row], units: Sequence[str], seed: int, families: float = 1.0) -> Nodes:
    """Return where a screen of `units` stands after `rows` of one metric."""
    course = Nodes({"m": units}, {"m": MARGIN}, seed, families)
    for row in rows:
        course.take({"m": row})
    return course


def screened(
    speeds: dict[str, float], noise: float, seed: int, failing: tuple[str, ...] = ()
) -> tuple[Nodes, list[Row]]:
    """Return where a screen ends of units of so many log `speeds`, and its rounds."""
    rng = np.random.default_rng(seed)
    now, rows = taken([], [*speeds], seed), list[Row]()
    while not now.done:
        drawn = dict(zip(speeds, rng.normal(0, noise, len(speeds)), strict=True))
        rows.append(
            {
                unit: math.nan if unit in failing else speeds[unit] + float(drawn[unit])
                for unit in now.wanted["m"]
            }
        )
        now.take({"m": rows[-1]})
    return now, rows


def named(now: Nodes) -> set[str]:
    return {one.unit for one in now.questions if one.word == "slow"}


@given(st.lists(SMALL, min_size=1, max_size=9, unique_by=abs))
def test_the_chance_is_that_of_all_signs(values: list[float]) -> None:
    """By enumeration: the share of all signs whose sum of positive ranks is as small or smaller."""
    size = sorted(map(abs, values))

    def above(signed: list[float]) -> int:
        return sum(size.index(abs(one)) + 1 for one in signed if one >= 0)

    ours = above(values)
    sums = [
        sum(rank for rank, up in enumerate(ups, 1) if up)
        for ups in product((False, True), repeat=len(values))
    ]
    share = sum(one <= ours for one in sums) / len(sums)
    assert chance(values, 0.0) == pytest.approx(share)


@given(st.lists(SMALL, min_size=1, max_size=20), SMALL)
def test_ties_and_the_bound_itself_never_help_to_name(values: list[float], bound: float) -> None:
    assert chance([*values, bound], bound) >= chance([*values, bound - 1.0], bound)
    moved = [value + 1e-3 for value in values]
    assert chance(moved, bound) >= chance(values, bound)


@given(st.integers(1, 5000))
def test_the_first_look_can_name_and_one_round_earlier_could_not(hypotheses: int) -> None:
    first, *later = looks(hypotheses)
    level = ERROR * SHARES[0] / hypotheses
    assert 2.0**-first <= level * (1 + 1e-9) < 2.0 ** -(first - 1) * (1 + 1e-6)
    assert [n - first for n in later] == [*LATER[1:]]
    assert sum(SHARES) == 1


def test_a_unit_that_is_slow_is_named_with_its_size_and_no_other() -> None:
    speeds = {f"n{i}": 0.0 for i in range(16)} | {"n7": math.log(0.9)}
    now, rows = screened(speeds, 0.01, seed=3)
    [slow] = (one for one in now.questions if one.word == "slow")
    assert slow.unit == "n7"
    ratio, low, high = slow.effect
    assert low < 0.9 < high
    assert abs(ratio - 0.9) < 0.01
    assert slow.look in now.at[False]
    assert len(rows) == ROUNDS + slow.look


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3, 3), st.integers(1, 9))
def test_what_all_nodes_share_in_a_round_changes_nothing(
    seed: int, shift: float, number: int
) -> None:
    speeds = {f"n{i}": 0.0 for i in range(8)} | {"n1": -0.12}
    now, rows = screened(speeds, 0.015, seed)
    moved: list[Row] = [
        {unit: value + (shift if n == number else 0.0) for unit, value in row.items()}
        for n, row in enumerate(rows, 1)
    ]
    after = taken(moved, [*speeds], seed)
    assert [(one.unit, one.word) for one in after.questions] == [
        (one.unit, one.word) for one in now.questions
    ]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_a_resumed_screen_wants_what_an_uninterrupted_one_wanted(seed: int) -> None:
    """Every round of a finished screen is what its earlier rounds alone ask for."""
    _, rows = screened({f"n{i}": 0.0 for i in range(12)} | {"n1": -0.09}, 0.03, seed)
    units = [f"n{i}" for i in range(12)]
    for last in range(len(rows)):
        assert set(taken(rows[:last], units, seed).wanted["m"]) == set(rows[last])


def test_a_unit_that_fails_twice_is_launched_no_more_and_others_are_judged() -> None:
    speeds = {f"n{i}": 0.0 for i in range(16)} | {"n7": -0.12}
    now, rows = screened(speeds, 0.01, seed=3, failing=("n2",))
    assert now.gone == {"m": {"n2"}}
    assert [n for n, row in enumerate(rows, 1) if "n2" in row] == [1, 2]
    assert named(now) == {"n7"}


def test_a_unit_that_fails_while_it_is_examined_is_failed_and_never_slow() -> None:
    """Its fresh values before the failures would have named it at the first look."""
    speeds = {f"n{i}": 0.0 for i in range(16)} | {"n7": -0.12}
    _, rows = screened(speeds, 0.01, seed=3)
    first = taken(rows[:ROUNDS], [*speeds], 3).questions[0].at[0]
    for lost in range(2, first):
        now = taken(rows[: ROUNDS + first - lost], [*speeds], 3)
        while not now.done:
            now.take({"m": {u: math.nan if u == "n7" else 0.0 for u in now.wanted["m"]}})
        assert [(one.unit, one.word) for one in now.questions] == [("n7", "failed")]
        assert now.gone == {"m": {"n7"}}


def test_a_slow_rack_is_a_group_and_within_it_units_are_screened() -> None:
    speeds = {f"n{i}": 0.0 for i in range(40)} | {f"s{i}": -0.2 for i in range(20)}
    speeds["s3"] = -0.35
    now, _ = screened(speeds, 0.01, seed=5)
    _, lower = now.groups["m"]
    assert set(lower) == {unit for unit in speeds if unit[0] == "s"}
    assert named(now) == {LOWER.name, "s3"}
    [whole] = (one for one in now.questions if one.cause is LOWER)
    assert abs(math.log(whole.effect[0]) + 0.2) < 0.02


def test_single_slow_units_are_no_group() -> None:
    rows: list[Row] = [{f"n{i}": -0.3 if i < 2 else 0.001 * i for i in range(40)}] * 3
    assert len(divided(rows, [f"n{i}" for i in range(40)], MARGIN)) == 1


def test_half_a_fleet_within_the_margin_is_not_nominated() -> None:
    speeds = {f"n{i}": -0.01 * (i % 2) for i in range(30)}
    now, rows = screened(speeds, 0.001, seed=1)
    assert now.questions == []
    assert len(rows) == ROUNDS


@pytest.mark.parametrize(("noise", "least", "most"), [("quiet", 0.04, 0.07), ("normal", 0.05, 0.1)])
def test_what_would_have_been_named_is_named_so_often(
    noise: str, least: float, most: float
) -> None:
    """The size that a screen promises to find is found in nearly as many fleets as it promises."""
    rng = np.random.default_rng(1)
    fleet = Fleet(64, "quiet" if noise == "quiet" else "normal")
    units = [f"n{i}" for i in range(64)]
    rows: list[Row] = [
        dict(zip(units, map(float, launches(fleet, rng, n)), strict=True)) for n in (1, 2, 3)
    ]
    found = detectable(scatter(rows, units), MARGIN, 1, 1, RULES)
    assert found is not None
    assert least <= found <= most
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        now = taken([], units, seed)
        while not now.done:
            values = launches(fleet, rng, now.round + 1)
            values[0] += math.log1p(-found)
            now.take({"m": {u: float(values[int(u[1:])]) for u in now.wanted["m"]}})
        hits += "n0" in named(now)
    assert hits >= 51  # 95 % of 60 are 57; fewer than 51 come by chance in 1 of 500 such tests


@pytest.mark.parametrize(("shares", "least", "most"), [(1.0, 5, 40), (7.0, 0, 4)])
def test_batches_share_the_error_of_one_fleet(shares: float, least: int, most: int) -> None:
    """Of seven batches of nine, each with two nodes exactly at the margin, which is not slow.

    Each by itself with 5 %, some node is named in a fifth of the fleets.
    """
    fleet, units = Fleet(9, "quiet"), [f"n{i}" for i in range(9)]

    def names(seed: int) -> bool:
        rng, now = np.random.default_rng(seed), taken([], units, seed, shares)
        while not now.done:
            values = launches(fleet, rng, now.round + 1)
            values[:2] -= MARGIN
            now.take({"m": {u: float(values[int(u[1:])]) for u in now.wanted["m"]}})
        return bool(named(now))

    wrong = sum(any(names(7 * n + batch) for batch in range(7)) for n in range(40))
    assert least <= wrong <= most


def test_noise_that_hides_everything_is_said() -> None:
    rng = np.random.default_rng(1)
    rows: list[Row] = [
        {f"n{i}": float(value) for i, value in enumerate(rng.normal(0, 2.0, 30))} for _ in range(3)
    ]
    units = tuple(f"n{i}" for i in range(30))
    assert detectable(scatter(rows, units), MARGIN, 1, 1, RULES) is None


def test_two_units_have_no_median_to_be_compared_with() -> None:
    with pytest.raises(ValueError, match="fewer than 3 units"):
        taken([], ["a", "b"], 1)
