"""Order statistics of pairwise sums that are not made, against those that are."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.stats import estimate
from paribus.stats.estimate import compare, ordered_sums

VALUES = st.one_of(
    st.floats(-1e3, 1e3),
    st.integers(-3, 3).map(float),
    st.integers(0, 3).map(lambda i: 0.3 + i * 1e-16),
)


@settings(max_examples=300, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=40), seed=st.integers(0, 1000))
def test_ranks_are_those_of_all_sums(values: list[float], seed: int) -> None:
    array = np.array(values)
    one, other = np.triu_indices(len(array))
    every = np.sort(array[one] + array[other])
    ranks = np.random.default_rng(seed).integers(0, len(every), 4).tolist()
    ranks += [0, len(every) - 1]
    assert ordered_sums(array, ranks) == pytest.approx(every[ranks].tolist(), rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("digits", [1, 3, 16])
def test_intervals_are_the_same_by_either_way(monkeypatch: pytest.MonkeyPatch, digits: int) -> None:
    """Rounded values tie, by the thousand."""
    draw = np.random.default_rng(digits)
    for n in (151, 300, 1000):
        values = np.round(draw.standard_t(2, n) / 100, digits).tolist()
        found = compare(values, 0.95)
        with monkeypatch.context() as patch:
            patch.setattr(estimate, "ALL_SUMS_UP_TO", n)
            expected = compare(values, 0.95)
        for name in ("ratio", "low", "high"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-14)


def test_five_thousand_blocks_take_no_time_and_no_memory() -> None:
    values = np.random.default_rng(1).normal(0, 0.02, 5000).tolist()
    begin = time.process_time()
    found = compare(values, 0.95)
    assert time.process_time() - begin < 0.1
    assert 0 < np.log(found.high / found.low) < 0.003
