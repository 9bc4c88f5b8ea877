"""A monitored effect that changes: noticed soon, dated well, and stated before and since."""

from __future__ import annotations

import math

import numpy as np
import pytest

import judgements
from paribus.core import Comparison, Word
from paribus.designs.monitored import Monitored, as_of_now
from paribus.designs.standard import Design
from paribus.stats.betting import scales, scores, wealth
from paribus.stats.stretches import cut_of, stretches
from paribus.words.values import reason_of

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
