"""The change of an effect between two studies: its interval covers the truth however they stop."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import judgements
from paribus.core import Comparison, Word
from paribus.designs.monitored import Monitored, as_of_now
from paribus.designs.standard import Design
from paribus.logs.change import change, change_p, claims
from paribus.stats.betting import scales, scores, wealth
from paribus.stats.estimate import compare
from paribus.stats.family import hochberg
from paribus.stats.looks import schedule
from paribus.stats.stretches import cut_of, stretches
from paribus.words.values import reason_of
from validation.studies import intervals_of, run_to_the_end

INF = math.inf
LIMIT = 2 / 0.05
BEFORE, SINCE = math.log(1.22), math.log(3.05)
"""The effects of a study that the change of was named after 28 blocks."""


def two_states(rng, shape):
    """Return log ratios of arms that are each in one of two states, 8 % apart."""
    one, other = (0.08 * (rng.random(shape) < 0.3) + rng.normal(0, 0.015, shape) for _ in range(2))
    return one - other


def drift(rng, shape):
    """Return log ratios of arms that drift alike: the noise of what they do not share grows."""
    return rng.normal(0, 0.02, shape) * np.linspace(0.5, 3, shape[-1])


STATIONARY = {
    "normal": lambda rng, shape: rng.normal(0, 0.02, shape),
    "heavy tails": lambda rng, shape: 0.02 * rng.standard_cauchy(shape),
    "two states": two_states,
    "ties": lambda rng, shape: 0.01 * rng.integers(-2, 3, shape),
    "drift": drift,
}


@pytest.mark.parametrize("noise", STATIONARY)
def test_an_effect_that_stays_gives_a_false_alarm_in_at_most_5_percent(noise):
    """An alarm takes that every effect is excluded, the true one as well, whenever that was."""
    rng = np.random.default_rng([61, list(STATIONARY).index(noise)])
    values = STATIONARY[noise](rng, (400, 2000))
    score = scores(values, scales(values), 0.0)
    excluded = np.maximum(wealth(score), wealth(-score)).max(axis=1) >= LIMIT
    assert excluded.mean() <= 0.05


@pytest.mark.parametrize("noise", STATIONARY)
def test_an_effect_that_stays_is_one_stretch(noise):
    rng = np.random.default_rng([62, list(STATIONARY).index(noise)])
    rows = 0.3 + STATIONARY[noise](rng, (40, 80))
    assert sum(len(stretches(row.tolist())) > 1 for row in rows) <= 2


def changed(rng, sd, before, since, blocks=60):
    values = rng.normal(BEFORE, sd, blocks)
    values[before:] += since - BEFORE
    return values.tolist()


@pytest.mark.parametrize("sd", [0.02, 0.05, 0.2])
def test_a_change_is_noticed_soon_and_dated_well(sd):
    rng = np.random.default_rng(63)
    for _ in range(8):
        before, now = stretches(changed(rng, sd, 12, SINCE))
        assert 12 <= before.noticed < 12 + 24
        assert abs(now.first - 12) <= 1
        assert before.sequence.low < BEFORE < before.sequence.high
        assert now.sequence.low < SINCE < now.sequence.high
        assert before.sequence.high < now.sequence.low


def test_the_interval_since_a_change_that_the_data_dated_holds_the_effect():
    rng = np.random.default_rng(64)
    missed = dated = 0
    for _ in range(60):
        *before, now = stretches(changed(rng, 0.03, 20, BEFORE + 0.08, 70))
        dated += bool(before)
        missed += bool(before) and not now.sequence.low < BEFORE + 0.08 < now.sequence.high
    assert dated >= 55
    assert missed <= 5  # 5 % of 60 is 3


def test_a_change_that_was_noticed_stays_where_it_was_found():
    values = changed(np.random.default_rng(65), 0.3, 15, SINCE, 90)
    first, *_ = stretches(values)
    assert first.noticed is not None
    for blocks in range(first.noticed + 1, 91, 7):
        assert stretches(values[:blocks])[0] == first
    assert len(stretches(values[: first.noticed])) == 1


def test_an_effect_may_change_back():
    rng = np.random.default_rng(66)
    values = [*changed(rng, 0.03, 20, SINCE, 50), *rng.normal(BEFORE, 0.03, 40)]
    found = stretches(values)
    assert [one.first for one in found] == [0, 20, 50]
    assert [one.sequence.blocks for one in found] == [20, 30, 40]
    assert found[-1].noticed is None


@pytest.mark.parametrize(("where", "blocks"), [(1, 2), (3, 9), (90, 100), (4980, 5000)])
def test_the_cut_is_where_the_level_changes(where, blocks):
    values = np.random.default_rng(67).normal(0, 0.02, blocks)
    values[where:] += 1.0
    assert cut_of(values.tolist()) == where
    assert cut_of((-values).tolist()) == where
    assert cut_of([INF] * where + [0.0] * (blocks - where)) == where


# --- verdicts ----------------------------------------------------------------------------------


def test_the_verdict_is_of_what_holds_now_beside_what_held_before():
    values = changed(np.random.default_rng(68), 0.03, 12, 0.0)
    blocks = [2 * number for number in range(1, 61)]
    ratios = dict(zip(blocks, values, strict=True))
    verdict, comparison = as_of_now(ratios, 0.95, better="lower", margin=0.05)
    assert verdict.word is Word.EQUIVALENT
    assert not verdict.final
    assert comparison.blocks == 48
    assert comparison.low < 1 < comparison.high
    (before,) = verdict.figures["before"]
    assert (before["first"], before["last"], verdict.figures["since"]) == (2, 24, 26)
    assert 26 < before["noticed"] <= 2 * 36
    assert before["word"] is Word.SLOWER
    assert before["low"] < 1.22 < before["high"]
    assert "since block 26, before: blocks 2 to 24 slower, 1.2" in reason_of(verdict)


def test_an_effect_that_stays_has_nothing_before():
    ratios = dict(enumerate(np.random.default_rng(69).normal(0, 0.02, 40).tolist(), start=1))
    verdict, comparison = as_of_now(ratios, 0.95, better="lower", margin=0.05)
    assert "before" not in verdict.figures
    assert comparison.blocks == 40


def test_a_comparison_stands_on_the_first_blocks_or_if_monitored_on_the_last():
    comparison = Comparison(3, 1.0, 0.9, 1.1, 0.95)
    study = judgements.study(("barrier",))
    assert Design(study).stands_on([1, 2, 4, 5], comparison) == [1, 2, 4]
    assert Monitored(study).stands_on([1, 2, 4, 5], comparison) == [2, 4, 5]


LOOKS = schedule(60)
DELTA = math.log1p(0.02)
PAIRS = 500


def noise(kind, rng, sd, n=60):
    if kind == "normal":
        return rng.normal(0, sd, n)
    if kind == "heavy":
        return rng.standard_t(3, n) * sd
    if kind == "outliers":
        return rng.normal(0, sd, n) + (rng.random(n) < 0.1) * rng.normal(0, 8 * sd, n)
    return (rng.integers(0, 2, n) - rng.integers(0, 2, n)) * 4 * sd + rng.normal(0, sd, n)


def stopped(ratios):
    """Return what studies (rows) say at the look at which each ends."""
    found = intervals_of(ratios)
    ends = run_to_the_end(found, 0.0)
    middle = found.estimate[np.arange(len(ratios)), np.searchsorted(LOOKS.at, ends.blocks)]
    logs = np.exp([middle, ends.low, ends.high]).tolist()
    rows = zip(ends.blocks.tolist(), *logs, strict=True)
    return [Comparison(n, x, low, high, LOOKS.confidence) for n, x, low, high in rows]


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
