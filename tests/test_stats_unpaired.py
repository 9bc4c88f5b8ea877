"""The shift of launches that nothing pairs, against all differences made and sorted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from paribus.logs.shift import shift, word_p
from paribus.stats.order import critical_count

VALUES = st.lists(
    st.one_of(st.floats(1e-6, 1e6), st.integers(1, 4).map(float)), min_size=1, max_size=30
)


@given(VALUES, VALUES, st.floats(0.5, 0.999))
def test_the_interval_ends_at_differences(
    reference: list[float], arm: list[float], level: float
) -> None:
    found = shift(reference, arm, level)
    every = np.sort(np.subtract.outer(np.log(arm), np.log(reference)), axis=None)
    assert math.log(found.ratio) == pytest.approx(np.median(every), abs=1e-12)
    k = critical_count(len(reference), len(arm), round(1 - level, 12))
    ends = (every[k], every[-1 - k]) if k >= 0 else (-math.inf, math.inf)
    assert (found.low, found.high) == pytest.approx(tuple(map(math.exp, ends)), rel=1e-12)


def test_arms_alike_have_a_ratio_of_one() -> None:
    assert shift([3.0, 7.1, 2.2] * 4, [2.2, 3.0, 7.1] * 4, 0.95).ratio == 1.0


@given(VALUES, VALUES)
def test_a_word_is_given_at_its_error_and_at_none_below(
    reference: list[float], arm: list[float]
) -> None:
    margin = 0.02
    p = word_p(reference, arm, margin)

    def says(error: float) -> bool:
        of = shift(reference, arm, 1 - error)
        most, least = 1 + margin, 1 / (1 + margin)
        return of.low > most or of.high < least or (of.low >= least and of.high <= most)

    if p < 1:
        assert says(min(1.0, p * 1.001))
        assert not says(p * 0.999)


def test_as_another_program_says() -> None:
    """A shift is left out of the interval where the rank-sum test says so."""
    draw = np.random.default_rng(3)
    reference, arm = draw.lognormal(0, 0.1, 14), draw.lognormal(0.1, 0.1, 11)
    found = shift(reference.tolist(), arm.tolist(), 0.95)
    for end, inside in ((found.low, 1), (found.high, -1)):
        for step, outside in ((1e-6 * inside, False), (-1e-6 * inside, True)):
            moved = arm / (end * math.exp(step))
            p = mannwhitneyu(moved, reference, method="exact").pvalue
            assert (p <= 0.05) == outside


def test_so_many_launches_that_their_differences_fit_nowhere() -> None:
    draw = np.random.default_rng(4)
    reference, arm = draw.lognormal(0, 0.1, 20_000), draw.lognormal(math.log(1.01), 0.1, 20_000)
    found = shift(reference.tolist(), arm.tolist(), 0.95)
    assert found.ratio == pytest.approx(1.01, rel=0.005)
    assert 0 < found.low < found.ratio < found.high < 1.05 * found.low
