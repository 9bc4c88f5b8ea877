"""Values in coarse steps: verdicts that rest on the steps are told from those that do not.

Seeds are fixed, so every figure is the same each time; bounds leave three standard errors.
"""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np
import pytest

from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import schedule
from paribus.stats.ties import TIED_LIMIT, ties

MARGIN = 0.02
DELTA = math.log1p(MARGIN)
LOOKS = schedule(60)


def rounded(rng, step, scatter, effect, studies):
    """Return values of both arms in steps of `step`; log ratios scatter by `scatter` steps."""
    level = 1 + rng.uniform(0, step, (studies, 1))
    sd = scatter * step / math.sqrt(2)
    exact = [level * np.exp(e + rng.normal(0, sd, (studies, 60))) for e in (0.0, effect)]
    return [np.round(values / step) * step for values in exact]


def ended(reference, arm):
    """Return for each study its word as `judge` gives it, and whether `ties` lets it pass."""
    ratios = np.log(arm) - np.log(reference)
    words, passed = [], []
    found = [hodges_lehmann(ratios[:, :n], LOOKS.level) for n in LOOKS.at]
    for row in range(len(ratios)):
        for n, (estimates, lows, highs) in zip(LOOKS.at, found, strict=True):
            estimate, low, high = estimates[row], lows[row], highs[row]
            half, last = (high - low) / 2, n == 60
            beyond = low > DELTA or high < -DELTA
            if beyond and (last or half <= max(DELTA, abs(estimate) / 4)):
                word = "differs"
            elif low > -DELTA and high < DELTA:
                word = "equivalent"
            elif half <= DELTA / 4 or last:
                word = "undecided"
            else:
                continue
            words.append(word)
            values = [*reference[row, :n].tolist(), *arm[row, :n].tolist()]
            passed.append(not ties(ratios[row, :n].tolist(), MARGIN, values).too_coarse)
            break
    return np.array(words), np.array(passed)


@cache
def rounding(step: float, scatter: float, effect: float) -> tuple[float, float, float]:
    """Return the shares of wrong words in all studies, of wrong that pass, and of passing ones."""
    rng = np.random.default_rng([2026, int(step * 1000), int(scatter * 100)])
    words, passed = ended(*rounded(rng, step * DELTA, scatter, effect * DELTA, 150))
    wrong = words == ("equivalent" if effect > 1 else "differs")
    return wrong.mean(), (wrong & passed).mean(), passed.mean()


STEPS = (0.125, 0.25, 0.5, 1.0, 2.0, 8.0)
SCATTER = (0.0, 0.25, 0.5, 0.7, 1.0, 2.0, 4.0)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("effect", [0.75, 1.25])
def test_verdicts_on_rounded_values_that_pass_are_not_wrong_by_a_quarter_margin(step, effect):
    for scatter in SCATTER:
        assert rounding(step, scatter, effect)[1] <= 0.06


def test_without_the_rule_rounding_makes_verdicts_wrong():
    assert rounding(1.0, 0.0, 1.25)[0] >= 0.5
    assert rounding(2.0, 0.25, 1.25)[0] >= 0.2


@pytest.mark.parametrize("step", [1.0, 2.0, 8.0])
def test_the_rule_fires_where_steps_are_coarse_and_not_where_scatter_smears_them(step):
    for scatter, low, high in ((0.25, 0.0, 0.1), (2.0, 0.8, 1.0), (4.0, 0.95, 1.0)):
        assert low <= rounding(step, scatter, 1.25)[2] <= high


@pytest.mark.parametrize("scatter", [0.5, 1.0, 2.0])
def test_the_rule_does_not_fire_where_steps_are_small(scatter):
    assert rounding(0.125, scatter, 1.25)[2] >= 0.97


def tied_share(log_ratios: list[float]) -> float:
    """Return the share of log ratios that are exactly 0 or equal to another one."""
    return sum(d == 0 or log_ratios.count(d) > 1 for d in log_ratios) / len(log_ratios)


def test_exact_ties_are_no_rule_because_they_grow_with_the_blocks():
    rng = np.random.default_rng(5)
    reference, arm = rounded(rng, 0.25 * DELTA, 4.0, 0.0, 200)
    ratios = np.round(np.log(arm) - np.log(reference), 12)
    assert np.mean([tied_share(row[:8].tolist()) for row in ratios]) == pytest.approx(
        0.16, abs=0.03
    )
    assert np.mean([tied_share(row.tolist()) for row in ratios]) == pytest.approx(0.46, abs=0.03)


def test_ties_of_continuous_values_are_none():
    draw = random.Random(6)
    for sd in (1e-4, 0.01, 0.3):
        reference, arm = ([draw.lognormvariate(0, sd) for _ in range(30)] for _ in "ab")
        ratios = [math.log(b / a) for a, b in zip(reference, arm, strict=True)]
        assert not ties(ratios, MARGIN, [*reference, *arm]).too_coarse
        assert not ties(ratios, MARGIN).too_coarse


def test_printed_decimals():
    found = ties([0.0] * 8, 0.05, [1.23] * 16)
    assert (found.share, found.too_coarse) == (1.0, False)
    assert found.quantum == pytest.approx(0.01 / 1.23)
    assert ties([0.0] * 8, MARGIN, [1.23] * 16).too_coarse
    assert not ties([0.0] * 8, MARGIN, [12345.0] * 16).too_coarse
    ticks = [200.0, 210.0, 200.0, 200.0, 210.0, 200.0, 220.0, 200.0]
    found = ties([math.log(b / a) for a, b in zip(ticks[:4], ticks[4:], strict=True)], 0.05, ticks)
    assert found.quantum == pytest.approx(10 / 200)


def test_equal_values_that_tell_no_step_are_too_coarse():
    assert ties([0.0] * 8, 0.05, [10 / 3] * 16) == ties([0.0] * 8, 0.05)
    assert ties([0.0] * 8, 0.05).quantum == math.inf
    assert ties([0.0] * 8, 0.05).too_coarse


def test_ties_of_censored_and_senseless_values():
    with_censored = ties([0.0, math.inf, 0.01], MARGIN, [1.0, 1.0, math.inf, 1.01])
    assert with_censored.share == ties([0.0, 0.01], MARGIN, [1.0, 1.0, 1.01]).share
    with pytest.raises(ValueError, match="no log ratios"):
        ties([math.inf], MARGIN)
    with pytest.raises(ValueError, match="not above zero"):
        ties([0.0], MARGIN, [0.0, 1.0])
    assert 0 < TIED_LIMIT < 1
