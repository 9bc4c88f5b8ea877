"""Outlying launches: flagged where they are, seldom where they are not."""

from __future__ import annotations

import math
import random

import pytest

from paribus.stats.outliers import outlying


@pytest.mark.parametrize(("launches", "bound"), [(8, 0.07), (12, 0.045), (60, 0.012)])
def test_normal_noise_is_seldom_flagged(launches, bound):
    draw = random.Random(7)
    told = [outlying([draw.lognormvariate(0, 0.02) for _ in range(launches)]) for _ in range(1000)]
    assert sum(map(bool, told)) / 1000 <= bound


def test_slow_and_fast_launches_are_flagged():
    draw = random.Random(8)
    values = [draw.lognormvariate(0, 0.01) for _ in range(30)]
    values[4], values[17] = 1.5, 0.6
    assert outlying(values) == (4, 17)
    assert outlying(values, limit=1000) == ()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_other_state_is_no_outlier_but_a_launch_far_from_both_is(share):
    draw = random.Random(9)
    values = [draw.lognormvariate(0, 0.02) * (2.4 if i < 40 * share else 1.0) for i in range(40)]
    assert outlying(values) == ()
    values[39] = 1.5
    assert outlying(values) == (39,)


def test_launches_that_mostly_tie():
    assert outlying([1.0] * 30) == ()
    assert outlying([1.0] * 29 + [9.0]) == (29,)
    assert outlying([1.23] * 20 + [1.24] * 8) == ()
    assert outlying([1.0] * 6 + [9.0]) == ()
    with pytest.raises(ValueError, match="finite"):
        outlying([1.0] * 8 + [math.nan])
