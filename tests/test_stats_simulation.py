"""What the checks of tools/validation leave out: other schedules, other numbers of arms and blocks.

The checks themselves, and the page that they make, are in test_validation.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from chances import at_most
from paribus.stats.looks import schedule
from validation.awkward import failures_called_different
from validation.errors import planned_share
from validation.families import family, three_arms
from validation.noise import (
    NOISE,
    REQUIRED,
    alternating,
    bimodal,
    drift,
    normal,
    outliers,
    recorded,
    recorded_series,
    steps,
    sticky,
    stretches,
)
from validation.studies import any_look_error, intervals_of

__all__ = [  # the noise of other tests
    "NOISE",
    "REQUIRED",
    "alternating",
    "bimodal",
    "drift",
    "normal",
    "outliers",
    "recorded",
    "recorded_series",
    "steps",
    "sticky",
    "stretches",
]

STUDIES = 4000


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [8, 10, 12, 15, 17, 20, 26, 27, 33, 50, 75])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_other_schedules_keep_their_error(blocks, confidence, sample):
    looks = schedule(blocks, confidence)
    ratios = np.random.default_rng(5).normal(size=(20_000, blocks))
    tried = sample(range(20_000))
    error = 1 - confidence
    most = at_most(error + 3 * math.sqrt(error / 20_000), len(tried), 20_000)
    assert any_look_error(intervals_of(ratios[tried], looks)) <= most


@pytest.mark.parametrize("share", [0.02, 0.05, 0.10])
def test_equally_flaky_arms_are_rarely_called_different(share):
    assert failures_called_different(share, STUDIES) <= 0.05


def test_latin_square_rows_keep_the_error_under_drift():
    assert any_look_error(three_arms(1000)) <= 0.05 + 3 * math.sqrt(0.05 / 1000)


@pytest.mark.parametrize(("sd", "effect"), [(0.01, 0.01), (0.02, 0.0), (0.03, 0.0), (0.03, 0.05)])
def test_planned_blocks_settle_a_study(sd, effect):
    assert planned_share(sd, effect)[0] >= 0.88


def test_the_words_on_ten_cases_are_right_more_often_than_their_intervals():
    headline, any_case, any_interval = family(300)
    assert headline <= 0.006
    assert any_case <= 0.01 < any_interval
