"""Blocks needed, iterations per launch and forecasts: exact values, and planning by simulation."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.stats.estimate import hodges_lehmann
from paribus.stats.forecast import Cost, Standing, blocks_affordable, cost, duration, forecast
from paribus.stats.iterations import (
    LEAST,
    LEAST_AT_ALL,
    advise,
    iterations_per_launch,
    sample_seconds,
    tau_int,
)
from paribus.stats.looks import LONGER, LOOKS, schedule
from paribus.stats.verdict import MOST_PAIRED, blocks_needed, sd_of, sd_within
from validation.noise import normal, outliers
from validation.studies import pair_up

INF = math.inf
MARGIN = 0.02
DELTA = math.log1p(MARGIN)
LEVEL = schedule(60).level


# --- scatter -----------------------------------------------------------------------------------


def test_scatter_is_the_standard_deviation_of_normal_values():
    values = np.random.default_rng(1).normal(5, 0.03, 3000)
    assert sd_of(values.tolist()) == pytest.approx(0.03, rel=0.04)
    assert sd_of(values.tolist()) == sd_of(values[-MOST_PAIRED:].tolist())
    assert sd_within(values.reshape(-1, 3).tolist()) == pytest.approx(0.03, rel=0.05)


def test_a_quarter_of_outliers_do_not_multiply_the_scatter():
    values = np.random.default_rng(2).normal(0, 0.02, 400)
    values[::4] += 3.0
    assert 0.02 < sd_of(values.tolist()) < 0.05


def test_scatter_of_one_value_is_unknown():
    assert math.isnan(sd_of([1.0]))
    assert math.isnan(sd_within([[1.0], [2.0]]))
    assert sd_of([1.0, 1.0]) == 0


# --- blocks needed -----------------------------------------------------------------------------

HALF = [0.01, 0.02, 0.03, 0.04]
AROUND_0 = [-x for x in HALF] + HALF
SIGMA = 0.03 / 0.95387  # the median of the 28 differences is 0.03


def formula(distance: float, sigma: float = SIGMA) -> int:
    return max(8, math.ceil(4 + 18 * (sigma / distance) ** 2))


MOST = 300
EVERY_LOOK = (*LOOKS, *LONGER)


def test_blocks_needed_is_the_planning_formula():
    assert sd_of(AROUND_0) == pytest.approx(SIGMA, rel=1e-4)
    assert blocks_needed(AROUND_0, 0.02) == formula(DELTA)
    assert blocks_needed(AROUND_0, 0.10) == formula(math.log1p(0.10))


def test_blocks_needed_of_a_difference_is_by_its_distance_or_for_its_size():
    near = [x + 0.04 for x in AROUND_0]
    assert blocks_needed(near, 0.02) == formula(0.04 - DELTA)
    large = [4 * x + 0.30 for x in AROUND_0]
    assert blocks_needed(large, 0.02) == formula(1.2 * 0.075, 4 * SIGMA) > 8


def test_blocks_needed_at_the_margin_is_what_ends_the_study_there():
    d = [DELTA + x for x in AROUND_0]
    assert blocks_needed(d, 0.02) == formula(DELTA / 4)


def test_blocks_needed_may_be_unknowable():
    assert blocks_needed([0.1, 0.2, 0.3], 0.02) is None
    assert blocks_needed([INF] * 10, 0.02) is None
    assert blocks_needed([0.0] * 10, 0.02) == 8
    assert blocks_needed([0.0] * 10 + [INF], 0.02) == 8


def pairs_of_n2(rng, studies, blocks, sd):
    return pair_up(rng, outliers(rng, studies, 2 * blocks))


def settled(rows: np.ndarray, n: int) -> np.ndarray:
    """Return which studies `judge` would end at `n` blocks, were it a look like any other."""
    estimate, low, high = hodges_lehmann(rows[:, :n], LEVEL)
    half = (high - low) / 2
    beyond = ((low > DELTA) | (high < -DELTA)) & (half <= np.maximum(DELTA, np.abs(estimate) / 4))
    within = (low > -DELTA) & (high < DELTA)
    return beyond | within | (half <= DELTA / 4)


@cache
def planned(noise, sd: float, effect: float, first: int, *, rounded: bool, studies: int = 400):
    """Return the share of studies settled at the n planned from `first` blocks, and the median n.

    The few planned beyond 300 blocks are left out. `rounded`: at the look that follows n.
    """
    rows = noise(np.random.default_rng(13), studies, MOST, sd) + math.log1p(effect)
    wanted = np.array([max(first, blocks_needed(row[:first], MARGIN)) for row in rows.tolist()])
    ends = wanted
    if rounded:
        ends = np.array(
            [next((at for at in EVERY_LOOK if at >= n), MOST + 1) for n in wanted.tolist()]
        )
    done = [settled(rows[ends == n], n) for n in np.unique(ends[ends <= MOST]).tolist()]
    return float(np.concatenate(done).mean()), float(np.median(wanted))


CELLS = [(0.01, 0.01), (0.01, 0.30), (0.015, 0.0), (0.02, 0.05), (0.03, 0.0), (0.03, 0.10)]


@pytest.mark.parametrize(("sd", "effect"), CELLS)
def test_blocks_planned_from_the_first_look_settle_a_study(sd, effect):
    """Check 13 of the validation plans from the second."""
    assert planned(normal, sd, effect, 8, rounded=False)[0] >= 0.88
    assert planned(normal, sd, effect, 8, rounded=True)[0] >= 0.92


@pytest.mark.parametrize("effect", [0.0, 0.05, 0.10])
def test_outliers_make_planning_less_certain(effect):
    assert planned(pairs_of_n2, 0.0, effect, 12, rounded=True)[0] >= 0.78


def test_negative_control_a_tenth_of_the_formula_does_not_settle():
    rows = normal(np.random.default_rng(4), 400, 60, 0.02)
    assert settled(rows, blocks_needed(rows[0, :12].tolist(), MARGIN) // 2).mean() < 0.7


# --- iterations per launch ---------------------------------------------------------------------


def correlated(rng, correlation: float, samples: int) -> np.ndarray:
    """Return an AR(1) series with sd 1."""
    noise = rng.normal(size=samples)
    for i in range(1, samples):
        noise[i] = correlation * noise[i - 1] + math.sqrt(1 - correlation**2) * noise[i]
    return noise


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_tau_is_how_much_more_the_median_varies(correlation):
    rng = np.random.default_rng(7)
    series = [correlated(rng, correlation, 2000) for _ in range(200)]
    varies = np.var([np.median(one) for one in series]) * 2000 / (math.pi / 2)
    assert np.mean([tau_int(one.tolist()) for one in series[:60]]) == pytest.approx(varies, rel=0.3)


def test_tau_is_not_swamped_by_interruptions():
    rng = np.random.default_rng(8)
    samples = correlated(rng, 0.8, 3000)
    interrupted = samples + 1000 * (rng.random(3000) < 0.01)
    assert tau_int(interrupted.tolist()) == pytest.approx(tau_int(samples.tolist()), rel=0.1)


def test_tau_of_what_has_none():
    assert tau_int([]) == tau_int([3.0] * 9) == tau_int([3.0] * 500) == 1.0
    assert tau_int([1.0, 2.0] * 100) == 1.0
    assert tau_int(list(range(500))) > 50


@given(st.lists(st.floats(-1e3, 1e3), max_size=60))
def test_tau_is_at_least_one_sample_and_at_most_all(samples):
    assert 1 <= tau_int(samples) <= max(1, len(samples))


def test_iterations_are_those_of_kalibera_and_jones():
    assert iterations_per_launch(0.6, 1e-6, 4.0, 0.03, 0.03) == math.ceil(math.sqrt(0.6e6 * 4))
    assert iterations_per_launch(0.6, 1e-6, 4.0, 0.03, 0.06) == math.ceil(math.sqrt(0.6e6))
    assert iterations_per_launch(0.6, 1e-4, 1.0, 0.01, 0.03) == LEAST
    assert iterations_per_launch(0.8, 1e-4, 9.0, 0.05, 0.001) == 2000
    assert iterations_per_launch(0.8, 1e-4, 1.0, 0.05, 0.0) == 2000
    assert iterations_per_launch(0.6, 1e-4, 1.0, 0.0, 0.0) == LEAST
    assert iterations_per_launch(5.0, 2.0, 1.0, 0.05, 0.01) == LEAST_AT_ALL


def test_the_number_of_iterations_is_where_a_study_is_most_precise():
    launch_s, sample_s, tau, within, between = 0.6, 1e-4, 3.0, 0.05, 0.02

    def cost_of_precision(n: float) -> float:
        return (launch_s + n * sample_s) * (between**2 + tau * within**2 / n)

    n = iterations_per_launch(launch_s, sample_s, tau, within, between)
    assert cost_of_precision(n) <= min(map(cost_of_precision, (n * 0.9, n * 1.1)))
    assert cost_of_precision(2 * n) < 1.125 * cost_of_precision(n)


@pytest.mark.parametrize(
    "bad", [(0, 1, 1, 1, 1), (1, 0, 1, 1, 1), (1, 1, 1, -1, 1), (1, 1, 1, 1, math.nan)]
)
def test_no_iterations_from_impossible_figures(bad):
    with pytest.raises(ValueError, match=r"launch|deviations"):
        iterations_per_launch(*bad)


def test_cost_of_a_sample():
    assert sample_seconds(4.0, "us", 10) == pytest.approx(4e-5)
    assert sample_seconds(4.0, "MB/s", 10) is None


def test_advice_from_a_pilot():
    rng = np.random.default_rng(9)
    pilot = [np.exp(rng.normal(0, 0.05, 1000) + rng.normal(0, 0.02)).tolist() for _ in range(400)]
    advice = advise(pilot, [0.7] * 400, 1e-4)
    assert advice.launch_s == pytest.approx(0.6)
    assert advice.tau == pytest.approx(1.0, abs=0.1)
    assert advice.sd_within == pytest.approx(0.05, rel=0.02)
    assert advice.sd_between == pytest.approx(0.02, rel=0.1)
    assert advice.n == pytest.approx(math.sqrt(6000) * 2.5, rel=0.12)
    assert "samples scatter by 5 %; launches by 2 %" in advice.reason


def test_advice_does_not_take_the_scatter_of_few_samples_for_that_of_launches():
    rng = np.random.default_rng(10)
    pilot = [np.exp(rng.normal(0, 0.05, 11)).tolist() for _ in range(200)]
    assert advise(pilot, [0.7] * 200, 1e-4).sd_between < 0.006


def test_advice_says_which_bound_it_met():
    quiet = [[1.0 + 1e-6 * i + j for i in range(9)] for j in (0.0, 0.05, 0.1)]
    assert "more precise" in advise(quiet, [1.0] * 3, 1e-5).reason
    assert "a launch has time for only" in advise(quiet, [1.0] * 3, 0.1).reason
    loud = [[1.0 + 0.1 * i for i in range(9)]] * 3
    assert "25 % of the launch" in advise(loud, [1.0] * 3, 1e-4).reason


@pytest.mark.parametrize("wall", [[1.0], [1.0, 1.0]])
def test_no_advice_from_one_launch(wall):
    with pytest.raises(ValueError, match="pilot of 1"):
        advise([[1.0, 2.0]], wall, 1e-3)


# --- forecasts ---------------------------------------------------------------------------------


def test_before_the_first_look_the_last_block_is_expected():
    assert forecast({"latency": Standing(done=5, block_s=2.0, needed=9)}, LOOKS) == 55 * 2.0


@pytest.mark.parametrize(
    ("done", "needed", "ends"),
    [(8, 9, 12), (8, 12, 12), (8, 13, 18), (12, 9, 18), (14, 27, 27), (12, 999, 60), (8, None, 60)],
)
def test_needed_blocks_are_rounded_up_to_a_look(done, needed, ends):
    assert forecast({"x": Standing(done, 1.0, needed)}, LOOKS) == ends - done


def test_a_study_is_the_sum_of_its_benchmarks():
    standings = {
        "a": Standing(12, 2.0, 30),
        "b": Standing(12, 5.0, 14, decided=True),
        "c": Standing(18, 1.0, 20),
    }
    assert forecast(standings, LOOKS) == 28 * 2 + 9 * 1


def test_nothing_is_left_of_a_study_that_is_decided_or_over():
    assert forecast({"a": Standing(8, 2.0, decided=True)}, LOOKS) == 0
    assert forecast({"a": Standing(60, 2.0, 90)}, LOOKS) == 0
    assert forecast({}, LOOKS) == 0
    with pytest.raises(ValueError, match="no looks"):
        forecast({}, [])


@given(st.integers(0, 60), st.none() | st.integers(8, 500), st.booleans())
def test_no_study_goes_on_after_its_last_look(done, needed, decided):
    assert 0 <= forecast({"x": Standing(done, 3.0, needed, decided)}, LOOKS) <= 3 * (60 - done)


PILOT = {"latency": {"host": 0.5, "bridged": 0.7}, "allreduce": {"host": 1.0, "bridged": 1.5}}


def test_cost_of_a_block_of_launches():
    assert (cost(PILOT).first_s, cost(PILOT).block_s) == (pytest.approx(3.7), pytest.approx(3.7))
    assert cost(PILOT, together=True).block_s == pytest.approx(2.2)
    assert duration(Cost(4.0, 3.0), 8, 60) == (28.0, 184.0)


def test_blocks_that_a_budget_affords():
    assert blocks_affordable(Cost(4.0, 3.0), 28.0) == 8
    assert blocks_affordable(Cost(4.0, 3.0), 27.9) == 7
    assert blocks_affordable(Cost(4.0, 3.0), 1.0) == 0
    with pytest.raises(ValueError, match="block of 0"):
        blocks_affordable(Cost(4.0, 0.0), 28.0)
