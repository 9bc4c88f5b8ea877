"""Sessions: switches, components of variance, and what counting launches as evidence would do."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.stats.schedule import arm_orders
from paribus.stats.sessions import (
    LEAST_LAUNCHES,
    LEAST_SWITCHES,
    MOST_LAUNCHES,
    attributable,
    components,
    launches_per_session,
    switches,
)

AB, BA = ("a", "b"), ("b", "a")


# --- switches ----------------------------------------------------------------------------------


def test_switches_are_counted_by_direction_across_blocks():
    assert switches([AB, BA, AB, AB]) == {("a", "b"): 3, ("b", "a"): 2}
    assert switches([("a", "b", "c"), ("b", "a", "c")]) == {
        ("a", "b"): 1,
        ("b", "c"): 1,
        ("c", "b"): 1,
        ("b", "a"): 1,
        ("a", "c"): 1,
        ("c", "a"): 0,
    }
    assert switches([]) == switches([("a",)] * 3) == {}


orders = st.lists(st.permutations(["a", "b", "c"]), max_size=30)


@given(orders)
def test_every_change_of_arm_is_one_switch(blocks):
    sessions = [arm for block in blocks for arm in block]
    changes = sum(x != y for x, y in pairwise(sessions))
    assert sum(switches(blocks).values()) == changes


def test_six_switches_each_way_make_a_difference_attributable():
    assert attributable([AB] * 7)
    assert not attributable([AB] * 6)  # five back
    assert not attributable([AB, BA] * 5)
    assert attributable([AB, BA] * 6)
    assert not attributable([])
    assert not attributable([("a",)] * 40)


def test_of_more_arms_each_must_have_been_switched_to():
    blocks = [("a", "b", "c")] * 6 + [("a", "b")]
    assert attributable(blocks, ("a", "b"))
    assert attributable(blocks)
    assert not attributable(blocks[:6], ("a", "b"))
    assert attributable(blocks[:6], ("b", "c"))


@pytest.mark.parametrize(("blocks", "least", "most"), [(6, 0, 0), (8, 0.4, 0.6), (10, 0.96, 1)])
def test_how_many_blocks_make_six_switches_each_way(blocks, least, most):
    drawn = [arm_orders(("a", "b"), blocks, seed, "sessions") for seed in range(400)]
    assert least <= np.mean([attributable(order) for order in drawn]) <= most


def test_random_pairs_of_sessions_have_one_and_a_half_switches():
    drawn = arm_orders(("a", "b"), 4000, 1, "sessions")
    assert sum(switches(drawn).values()) / 4000 == pytest.approx(1.5, abs=0.03)


# --- components ---------------------------------------------------------------------


@pytest.mark.parametrize("launches", [2, 3, 5, 10])
@pytest.mark.parametrize(("sd_session", "sd_launch"), [(0.02, 0.01), (0.01, 0.01), (0.0, 0.02)])
def test_components_of_nested_normal_values(sd_session, sd_launch, launches):
    rng = np.random.default_rng(3)
    values = rng.normal(0, sd_launch, (2000, launches)) + rng.normal(0, sd_session, (2000, 1))
    between, within = components(values.tolist())
    assert within == pytest.approx(sd_launch, rel=0.04)
    assert between == pytest.approx(sd_session, rel=0.06, abs=0 if sd_session else 0.005)


def test_outliers_do_not_inflate_the_components():
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.01, (400, 5)) + rng.normal(0, 0.02, (400, 1))
    values += (rng.random((400, 5)) < 0.07) * rng.exponential(0.4, (400, 5))
    between, within = components(values.tolist())
    assert 0.01 <= within < 0.0125
    assert 0.018 < between < 0.024


def test_components_that_nobody_can_know():
    between, within = components([[0.1], [0.3]])
    assert between == pytest.approx(0.2 / 0.95387, rel=1e-4)
    assert math.isnan(within)
    between, within = components([[0.1, 0.2]])
    assert math.isnan(between)
    assert within == pytest.approx(0.1 / 0.95387, rel=1e-4)
    for bad in ([[0.1], []], [[0.1, math.inf]]):
        with pytest.raises(ValueError, match="finite"):
            components(bad)


# --- launches per session ----------------------------------------------------------------------


def test_launches_per_session_are_those_of_kalibera_and_jones():
    assert launches_per_session(600, 6, 0.01, 0.01) == 10
    assert launches_per_session(600, 6, 0.01, 0.02) == 5
    assert launches_per_session(600, 600, 0.01, 0.02) == LEAST_LAUNCHES
    assert launches_per_session(6000, 0.6, 0.05, 0.01) == MOST_LAUNCHES
    assert launches_per_session(600, 6, 0.01, 0.0) == MOST_LAUNCHES
    assert launches_per_session(600, 6, 0.0, 0.0) == LEAST_LAUNCHES


@pytest.mark.parametrize("bad", [(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, -1, 1), (1, 1, 1, math.nan)])
def test_no_launches_from_impossible_figures(bad):
    with pytest.raises(ValueError, match=r"switch|deviations"):
        launches_per_session(*bad)


def test_least_switches_are_those_that_chance_rarely_sorts():
    assert 2 / math.comb(2 * LEAST_SWITCHES, LEAST_SWITCHES) < 0.005
