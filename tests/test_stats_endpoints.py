"""One figure for a launch: quantiles from the good end, and what counts as interference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.core import Endpoint
from paribus.stats.summary import endpoint, interrupted, launch_median

SAMPLES = st.lists(st.floats(1e-3, 1e6), min_size=100, max_size=300).map(sorted)


@given(SAMPLES)
def test_endpoints_are_numpys_quantiles_from_the_good_end(values):
    shares: dict[Endpoint, float] = {"median": 0.5, "p99": 0.99, "p25": 0.25, "min": 0.0}
    for which, share in shares.items():
        low, high = np.quantile(values, [share, 1 - share])
        assert endpoint(values, which, "lower") == pytest.approx(low, rel=1e-9)
        assert endpoint(values, which, "higher") == pytest.approx(high, rel=1e-9)


@given(SAMPLES)
def test_endpoints_stay_in_order_and_follow_the_median(values):
    ends = [endpoint(values, which, "lower") for which in ("min", "p25", "median", "p99")]
    assert ends == sorted(ends)
    assert endpoint(values, "median", "lower") == pytest.approx(launch_median(values), rel=1e-12)
    assert endpoint(values, "min", "lower") == min(values)
    assert endpoint(values, "min", "higher") == max(values)


def test_the_tail_of_a_rate_is_its_slow_end():
    rates = [10.0] * 3 + [100.0] * 97
    assert endpoint(rates, "p99", "higher") == 10.0
    assert endpoint(rates, "p99", "lower") == 100.0


def test_endpoints_that_samples_are_too_few_for():
    assert endpoint([3.0], "median", "lower") == endpoint([3.0], "min", "higher") == 3.0
    with pytest.raises(ValueError, match="p99 of 99 samples; it takes 100"):
        endpoint([1.0] * 99, "p99", "lower")
    with pytest.raises(ValueError, match="p25 of 3 samples; it takes 4"):
        endpoint([1.0] * 3, "p25", "lower")
    with pytest.raises(ValueError, match="median of 0 samples; it takes 1"):
        endpoint([], "median", "lower")


def test_interference_is_counted_on_the_bad_side():
    times = [0.1] * 2 + [1.0] * 190 + [6.0] * 8
    assert interrupted(times) == 8
    assert interrupted(times, "higher") == 2
    assert interrupted([1.0, 1.0, 5.0]) == 0
    assert interrupted([0.2, 1.0, 1.0], "higher") == 0
