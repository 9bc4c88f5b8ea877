"""The change of an effect between two studies: its interval covers the truth however they stop."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from paribus.core import Comparison
from paribus.logs.change import change, change_p, claims, hochberg
from paribus.stats.estimate import compare, hodges_lehmann
from paribus.stats.looks import schedule

LOOKS = schedule(60)
DELTA = math.log1p(0.02)
PAIRS = 1500


def noise(kind, rng, sd, n=60):
    if kind == "normal":
        return rng.normal(0, sd, n)
    if kind == "heavy":
        return rng.standard_t(3, n) * sd
    if kind == "outliers":
        return rng.normal(0, sd, n) + (rng.random(n) < 0.1) * rng.normal(0, 8 * sd, n)
    return (rng.integers(0, 2, n) - rng.integers(0, 2, n)) * 4 * sd + rng.normal(0, sd, n)


def stopped(ratios):
    """Return what studies (rows) say at the look at which each ends (rules of verdict.py)."""
    ends = np.empty((3, len(ratios)))
    blocks = np.empty(len(ratios), dtype=int)
    going = np.arange(len(ratios))
    for look in LOOKS.at:
        found = np.stack(hodges_lehmann(ratios[going, :look], LOOKS.level))
        ends[:, going], blocks[going] = found, look
        middle, low, high = found
        half = (high - low) / 2
        apart = (low > DELTA) | (high < -DELTA)
        beyond = apart & (half <= np.maximum(DELTA, abs(middle) / 4))
        within = (low > -DELTA) & (high < DELTA)
        going = going[~(beyond | within | (half <= DELTA / 4))]
    rows = zip(blocks.tolist(), np.exp(ends).T.tolist(), strict=True)
    return [Comparison(n, x, low, high, LOOKS.confidence) for n, (x, low, high) in rows]


def test_studies_stopped_together_are_those_stopped_alone():
    scatter = np.linspace(0.002, 0.04, 40)[:, None]
    rows = 0.03 + scatter * np.random.default_rng(1).normal(size=(40, 60))
    together = stopped(rows)
    assert len({one.blocks for one in together}) > 3
    for row, one in zip(rows, together, strict=True):
        assert stopped(row[None]) == [one]
        assert compare(row[: one.blocks].tolist(), LOOKS.confidence) == one


@pytest.mark.parametrize("kind", ["normal", "heavy", "outliers", "two states"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0.0, 0.015), (0.0, 0.015)),
        ((0.0, 0.005), (0.0, 0.03)),  # the upgrade made the machine noisier
        ((0.02, 0.01), (0.02, 0.01)),  # at the margin, where stopping biases an estimate most
        ((0.1, 0.01), (0.02, 0.03)),
        ((0.3, 0.05), (0.05, 0.01)),
    ],
)
def test_the_interval_covers_in_95_percent(kind, first, second):
    rng = np.random.default_rng(2026)
    truth = math.exp(second[0] - first[0])
    drawn = [[effect + noise(kind, rng, sd) for effect, sd in (first, second)]
             for _ in range(PAIRS)]  # fmt: skip
    before, after = (stopped(np.stack(rows)) for rows in zip(*drawn, strict=True))
    found = map(change, before, after)
    missed = sum(not one.low <= truth <= one.high for one in found)
    assert missed / PAIRS <= 0.05


def test_one_study_decides_where_the_other_has_no_scatter():
    """Without scatter in one study the interval is that of the other, moved."""
    one = Comparison(8, 2.0, 2.0, 2.0, 0.987)
    other = Comparison(12, 3.0, 2.7, 3.3, 0.987)
    found = change(one, other)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.5, 1.35, 1.65))
    assert found.blocks == 8
    back = change(other, one)
    assert (back.ratio, back.low, back.high) == pytest.approx((1 / 1.5, 1 / 1.65, 1 / 1.35))


def test_no_interval_in_one_study_leaves_none_of_the_change():
    found = change(compare([0.1] * 3, 0.987), compare([0.2] * 9, 0.987))
    assert (found.low, found.high) == (0, math.inf)
    with pytest.raises(ValueError, match="no ratio"):
        change(compare([math.inf] * 9, 0.987), compare([0.2] * 9, 0.987))


def test_p_is_the_error_at_which_the_interval_gives_a_word():
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.03, 0.06):
        one, other = (list(rng.normal(mean, 0.012, 20)) for mean in (0.1, 0.1 + shift))
        p = change_p(one, other, 0.02)
        assert 0 < p < 1
        for error, word in ((p * 1.001, True), (p * 0.9, False)):
            found = change(compare(one, 1 - error), compare(other, 1 - error))
            low, high = math.log(found.low or 1e-300), math.log(found.high)
            assert (low > DELTA or -DELTA < low <= high < DELTA) is word, (shift, error)


@pytest.mark.parametrize("cases", [3, 10])
def test_a_family_without_a_change_is_rarely_called(cases):
    """Cases of one launch vary together; in 5 % of studies at most any of them changes falsely."""
    rng = np.random.default_rng(9)
    wrong = 0
    for _ in range(150):
        pairs = []
        common = [rng.normal(0, 0.01, 18) for _ in range(2)]
        for _ in range(cases):
            one, other = (list(part + rng.normal(0, 0.01, 18)) for part in common)
            pairs.append((one, other))
        found = claims(pairs, [0.0] * cases, (LOOKS, LOOKS), 0.05)
        wrong += any(claim.supported for claim in found)
    assert wrong <= 0.05 * 150


def test_cases_that_changed_are_called_at_the_first_look():
    rng = np.random.default_rng(4)
    pairs = [(list(rng.normal(0, 0.005, 8)), list(rng.normal(0.1, 0.005, 8))) for _ in range(3)]
    found = claims(pairs, [0.02] * 3, (LOOKS, LOOKS), 0.05)
    assert all(claim.supported for claim in found)
    assert all(
        change(compare(one, claim.level), compare(other, claim.level)).low > 1.02
        for (one, other), claim in zip(pairs, found, strict=True)
    )


def test_hochberg_is_at_most_holm_and_at_least_p():
    draw = random.Random(1)
    p = [draw.random() ** 3 for _ in range(7)]
    adjusted = hochberg(p)
    assert all(a >= one for a, one in zip(adjusted, p, strict=True))
    assert max(adjusted) == max(p)
    assert hochberg([0.03, 0.03, 0.03]) == [0.03] * 3
    assert hochberg([0.001, 0.2]) == [0.002, 0.2]
