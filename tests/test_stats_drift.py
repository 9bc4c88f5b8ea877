"""Drift: found where it is, seldom elsewhere.

Seeds are fixed, so every figure is the same each time; bounds leave three standard errors.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from paribus.stats.drift import drift
from recorded import rows


def autoregressive(seed: int, launches: int) -> list[float]:
    draw = random.Random(seed)
    level, values = draw.gauss(0, 0.015), []
    for _ in range(launches):
        level = 0.95 * level + draw.gauss(0, 0.015 * math.sqrt(1 - 0.95**2))
        values.append(math.exp(level + draw.gauss(0, 0.005)))
    return values


@pytest.mark.parametrize(("launches", "bound"), [(12, 0.02), (18, 0.03), (60, 0.03)])
def test_independent_launches_seldom_drift(launches, bound):
    draw = random.Random(1)
    told = 0
    for _ in range(1000):
        found = drift([draw.lognormvariate(0, 0.02) for _ in range(launches)])
        assert found is not None
        told += found.drifting
    assert told / 1000 <= bound


def test_drift_is_told_and_grows_with_the_lag():
    found = [drift(autoregressive(seed, 60)) for seed in range(100)]
    assert sum(one.drifting for one in found) >= 95
    far = np.median([[share for _, share in one.lags] for one in found], axis=0)
    assert far[-1] > 2 * far[0]


def test_the_lags_of_the_recorded_launches_are_those_of_an_independent_analysis():
    """Section 2.1 of the study that recorded them: 1.4 to 3.6 % at lags 1 to 32, lag 1 at 0.74."""
    mine = [row for row in rows("noise-launches.csv.gz") if row["transport"] == "shm"]
    found = drift([float(row["pp4k_p50"]) for row in mine])
    assert found.lag1 == pytest.approx(0.74, abs=0.02)
    assert found.lag5 == pytest.approx(0.56, abs=0.02)
    assert found.noise == pytest.approx(0.15, abs=0.002)
    expected = (0.014, 0.014, 0.020, 0.019, 0.030, 0.036)
    assert [lag for lag, _ in found.lags] == [1, 2, 4, 8, 16, 32]
    assert [share for _, share in found.lags] == pytest.approx(expected, abs=0.002)


def test_a_steady_trend_is_a_drift():
    found = drift([1.01**i for i in range(40)])
    assert found.drifting
    shares = dict(found.lags)
    assert shares[16] > 10 * shares[1]


def test_drift_of_few_equal_or_senseless_launches():
    assert drift([1.0] * 11) is None
    still = drift([1.0] * 12)
    assert (still.lag1, still.drifting) == (0.0, False)
    assert still.lags == ((1, 0.0), (2, 0.0), (4, 0.0))
    with pytest.raises(ValueError, match="finite"):
        drift([1.0] * 11 + [math.inf])


def test_the_autocorrelation_is_that_of_ranks():
    stats = pytest.importorskip("scipy.stats")
    values = autoregressive(3, 50)
    values[10] = values[20]
    ranks = stats.rankdata(values)
    centred = ranks - ranks.mean()
    expected = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
    assert drift(values).lag1 == pytest.approx(expected, abs=1e-12)
