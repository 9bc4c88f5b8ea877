"""Launches cut off by the time limit: what each treatment of them does to size and error rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paribus.stats.estimate import compare
from paribus.stats.reliability import MOST_CENSORED, censored_share


def with_limit(limit, effect=0.03, sd=0.04, timeouts=(0.0, 0.0), studies=600):
    """Return (share cut off per arm, {treatment: (estimate, coverage, infinite, excludes 1)})."""
    rng = np.random.default_rng(20)
    told: dict[str, list[tuple[float, ...]]] = {"left out": [], "ranked last": []}
    cut_off = np.zeros(2)
    for _ in range(studies):
        launches = rng.normal(0, sd, (2, 20))
        launches[1] += math.log1p(effect)
        cut = (launches > limit) | (rng.random((2, 20)) < np.array(timeouts)[:, None])
        cut_off += cut.mean(axis=1) / studies
        values = np.where(cut, np.inf, launches)[:, ~cut.all(axis=0)]
        ratios = values[1] - values[0]
        for treatment, kept in (
            ("left out", ratios[np.isfinite(ratios)]),
            ("ranked last", ratios),
        ):
            found = compare(kept, 0.95)
            told[treatment].append(
                (
                    found.ratio - 1,
                    found.low <= 1 + effect <= found.high,
                    found.low == 0 or found.high == math.inf,
                    not found.low <= 1 <= found.high,
                )
            )
    return cut_off, {
        name: (np.median([one[0] for one in each]), *np.mean([one[1:] for one in each], axis=0))
        for name, each in told.items()
    }


def test_a_limit_that_bites_leaves_the_size_open():
    cut_off, told = with_limit(0.06)
    assert cut_off == pytest.approx([0.07, 0.22], abs=0.02)
    assert told["left out"][0] == pytest.approx(0.020, abs=0.002)
    assert told["left out"][1] == pytest.approx(0.88, abs=0.04)
    assert told["ranked last"][0] == pytest.approx(0.043, abs=0.003)
    assert told["ranked last"][1] == pytest.approx(0.93, abs=0.03)


def test_few_launches_cut_off_leave_the_size_known():
    cut_off, told = with_limit(0.09, sd=0.03)
    assert max(cut_off) == pytest.approx(MOST_CENSORED, abs=0.003)
    assert told["left out"][0] == pytest.approx(0.029, abs=0.001)
    for estimate, covered, _, _ in told.values():
        assert estimate == pytest.approx(0.03, abs=0.0015)
        assert covered >= 0.94


def test_leaving_out_hides_that_one_arm_times_out():
    _, told = with_limit(9.0, effect=0.0, timeouts=(0.0, 0.15))
    assert told["left out"][3] <= 0.08
    assert told["ranked last"][3] >= 0.10


def test_time_outs_of_both_arms_cost_precision_and_not_the_error_rate():
    _, told = with_limit(9.0, effect=0.0, timeouts=(0.15, 0.15))
    _, covered, infinite, _ = told["ranked last"]
    assert covered >= 0.93
    assert infinite >= 0.5


def test_shares_cut_off():
    assert censored_share(0, 0) == 0
    assert censored_share(1, 60) == pytest.approx(1 / 60)
    assert censored_share(1, 60) <= MOST_CENSORED < censored_share(2, 60)
    assert censored_share(8, 8) == 1
    for cut, launches in ((-1, 5), (6, 5)):
        with pytest.raises(ValueError, match="cut off"):
            censored_share(cut, launches)
