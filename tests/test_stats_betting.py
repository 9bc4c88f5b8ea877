"""The confidence sequence of monitor mode: its error at any time, its ends, and what it costs."""

from __future__ import annotations

import math
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paribus.core import Comparison, Word
from paribus.stats.betting import (
    BETS,
    as_ratios,
    confidence_sequence,
    fewest_blocks,
    scales,
    scores,
    shares,
    wealth,
)
from paribus.stats.estimate import compare
from paribus.stats.verdict import judge
from validation.noise import NOISE
from validation.studies import intervals_of, pair_up, run_to_the_end

INF = math.inf
LIMIT = 2 / 0.05
MARGIN = 0.02
DELTA = math.log1p(MARGIN)
STUDIES = 1000
BLOCKS = 400


@cache
def ratios(name: str) -> np.ndarray:
    rng = np.random.default_rng([46, list(NOISE).index(name)])
    return pair_up(rng, NOISE[name](rng, STUDIES, 2 * BLOCKS))


def won(values: np.ndarray, theta: float, side: int) -> np.ndarray:
    """Return the blocks after which bets on ratios above (1) or below (-1) `theta` had won."""
    hits = wealth(side * scores(values, scales(values), theta)) >= LIMIT
    return np.where(hits.any(axis=-1), hits.argmax(axis=-1) + 1, BLOCKS + 1)


def beaten(values: np.ndarray, theta: float) -> np.ndarray:
    return np.minimum(won(values, theta, 1), won(values, theta, -1)) <= BLOCKS


def monitor(log_ratios: list[float], level: float) -> Comparison:
    return as_ratios(confidence_sequence(log_ratios, level), level)


# --- error -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["N1", "N2", "Drift"])
@pytest.mark.parametrize("effect", [0.02, 0.30])
def test_the_true_ratio_is_covered_at_all_times(name, effect):
    shift = math.log1p(effect)
    assert beaten(ratios(name) + shift, shift).mean() <= 0.05


def test_the_scale_knows_no_block_to_come():
    values = ratios("N2")[0]
    changed = np.concatenate([values[:100], 10 * values[100:]])
    assert np.array_equal(scales(values)[:101], scales(changed)[:101])
    assert not np.array_equal(scales(values), scales(changed))


def test_bets_leave_something_of_every_stake():
    assert 0 < min(BETS) < max(BETS) < 1


def test_the_shares_of_all_blocks_that_may_come_are_no_more_than_there_is():
    rest = 1 - shares(100_000).sum()
    # The sum of n^-1.5 beyond them is 2 / sqrt(100,000), within a millionth.
    assert rest == pytest.approx(0.2 * (2 / math.sqrt(100_000)) / 0.686, rel=0.01)


@pytest.mark.parametrize("blocks", [1, 8, 30, 250])
def test_wealth_is_that_of_every_beginning_played_on_its_own(blocks):
    score = np.random.default_rng(blocks).uniform(-1, 1, blocks)
    share, money = shares(blocks), 1 - shares(blocks).sum()
    for begin in range(blocks):
        for bet in BETS:
            money += share[begin] * np.prod(1 + bet * score[begin:]) / len(BETS)
    assert wealth(score)[-1] == pytest.approx(money)


# --- the ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["N1", "N2", "Sticky"])
def test_the_ends_are_where_the_wealth_reaches_its_limit(name):
    for row in ratios(name)[:20, :60]:
        found = confidence_sequence(row)
        nudge = 1e-9
        for end, side in ((found.low, 1), (found.high, -1)):
            assert won(row, end - side * nudge, side) <= 60
            assert won(row, end + side * nudge, side) > 60


def test_intervals_are_nested_and_hold_their_estimate():
    for row in ratios("Drift")[:4, :60].tolist():
        before = confidence_sequence(row[:8])
        for n in range(9, 61):
            found = confidence_sequence(row[:n])
            assert before.low <= found.low <= found.estimate <= found.high <= before.high
            before = found


log_ratios = st.lists(
    st.floats(-2, 2) | st.sampled_from([INF, -INF, 0.0, 0.1]), min_size=1, max_size=60
)


@given(log_ratios)
@example([0.0, 1e-310, 0.0, 2.0, -1.0])
@settings(max_examples=60, deadline=None)
def test_swapping_the_arms_negates(values):
    found = confidence_sequence(values)
    swapped = confidence_sequence([-value for value in values])
    assert (swapped.low, swapped.high) == (-found.high, -found.low)
    assert swapped.moved == found.moved
    assert found.low <= found.estimate <= found.high
    assert swapped.low <= swapped.estimate <= swapped.high


@given(st.integers(0, 50), st.floats(-3, 3))
@settings(max_examples=30, deadline=None)
def test_scaling_the_arm_moves_estimate_and_ends(seed, shift):
    values = np.random.default_rng(seed).normal(0, 0.03, 40)
    found, moved = (
        confidence_sequence(values.tolist()),
        confidence_sequence((values + shift).tolist()),
    )
    expected = [x + shift for x in (found.estimate, found.low, found.high)]
    assert [moved.estimate, moved.low, moved.high] == pytest.approx(expected, abs=1e-12)


def test_the_interval_closes_on_the_truth():
    values = np.random.default_rng(1).normal(0.01, 0.02, 3000)
    found = confidence_sequence(values.tolist())
    assert found.low < 0.01 < found.high
    assert found.high - found.low < 0.004
    assert found.estimate == pytest.approx(math.log(compare(values.tolist(), 0.95).ratio), abs=3e-4)


@pytest.mark.parametrize(("confidence", "least"), [(0.90, 7), (0.95, 8), (0.99, 11)])
def test_fewest_blocks_of_an_interval(confidence, least):
    assert fewest_blocks(confidence) == least
    values = [0.3 + 0.001 * (i % 3) for i in range(least)]
    assert confidence_sequence(values[:-1], confidence).low == -INF
    found = confidence_sequence(values, confidence)
    assert 0.25 < found.low < found.high < 0.35


def test_higher_confidence_is_wider():
    values = ratios("N1")[3, :50]
    narrow, wide = (confidence_sequence(values.tolist(), c) for c in (0.9, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


# --- awkward blocks ----------------------------------------------------------------------------


def test_launches_cut_off_count_for_their_side():
    plain = ratios("N1")[5, :60]
    some = np.concatenate([plain, [INF] * 4])
    assert confidence_sequence(some.tolist()).low >= confidence_sequence(plain.tolist()).low
    assert confidence_sequence(some.tolist()).high < INF
    assert confidence_sequence([INF] * 20).low == INF
    assert confidence_sequence([INF, -INF] * 40) == confidence_sequence([INF, -INF] * 40)
    both = confidence_sequence([INF, -INF] * 40)
    assert (both.estimate, both.low, both.high, both.moved) == (0.0, -INF, INF, None)


def test_ties_are_no_difficulty():
    found = confidence_sequence([0.1] * 30)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert confidence_sequence([0.0] * 30).estimate == 0


def test_an_effect_that_changes_is_reported():
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(0, 0.02, 200), rng.normal(0.10, 0.02, 200)])
    assert confidence_sequence(values[:200].tolist()).moved is None
    found = confidence_sequence(values.tolist())
    assert 200 < found.moved < 230
    before = confidence_sequence(values[: found.moved - 1].tolist())
    assert before.moved is None
    assert (found.low, found.high) == (before.low, before.high)
    assert confidence_sequence(values[: found.moved].tolist()).moved == found.moved
    assert found.blocks == 400


def test_an_arm_that_comes_back_from_time_outs_has_changed():
    rng = np.random.default_rng(7)
    found = confidence_sequence([INF] * 20 + rng.normal(0, 0.01, 100).tolist())
    assert found.low == INF
    assert 20 < found.moved < 40


@pytest.mark.parametrize("values", [[], [0.1, math.nan]])
def test_no_sequence_of_nothing(values):
    with pytest.raises(ValueError, match=r"no block|NaN"):
        confidence_sequence(values)


@pytest.mark.parametrize("confidence", [0.05, 1.0, math.nan])
def test_an_error_level_is_not_taken_for_a_confidence(confidence):
    with pytest.raises(ValueError, match="confidence"):
        confidence_sequence([0.1] * 10, confidence)


# --- verdicts ----------------------------------------------------------------------------------


def test_monitor_is_the_sequence_as_ratios():
    values = ratios("N2")[1, :40]
    found, comparison = confidence_sequence(values.tolist(), 0.9), monitor(values.tolist(), 0.9)
    assert (comparison.blocks, comparison.level) == (40, 0.9)
    logs = [math.log(x) for x in (comparison.ratio, comparison.low, comparison.high)]
    assert logs == pytest.approx([found.estimate, found.low, found.high])
    assert (monitor([INF] * 20, 0.95).low, monitor([0.0], 0.95).high) == (INF, INF)


def first_word(row: np.ndarray) -> tuple[Word, int]:
    """Return the first word other than undecided when a verdict is taken after each block.

    Starts where the interval first leaves one side of the margin, before which there is none.
    """
    above, below = won(row, DELTA, 1), won(row, -DELTA, -1)
    within = max(won(row, DELTA, -1), won(row, -DELTA, 1))
    for n in range(int(min(above, below, within)), len(row) + 1):
        comparison = monitor(row[:n].tolist(), 0.95)
        word = judge(comparison, better="lower", margin=MARGIN, last=False).word
        if word is not Word.UNDECIDED:
            return word, n
    return Word.UNDECIDED, len(row)


@cache
def watched(name: str, effect: float, studies: int = 50) -> tuple[float, float, list[Word]]:
    """Return mean blocks to a word in monitor mode and by the looks, and the words of the first."""
    rows = ratios(name)[:studies] + math.log1p(effect)
    words, blocks = zip(*map(first_word, rows), strict=True)
    looked = run_to_the_end(intervals_of(ratios(name)[:studies, :60]), effect)
    return float(np.mean(blocks)), float(looked.blocks.mean()), list(words)


@pytest.mark.parametrize(
    ("effect", "word", "most"),
    [(0.0, Word.EQUIVALENT, 1.3), (0.05, Word.SLOWER, 1.3), (0.30, Word.SLOWER, 1.1)],
)
def test_a_word_comes_little_later_than_by_looks(effect, word, most):
    blocks, looked, words = watched("N1", effect)
    assert words.count(word) >= 49
    assert blocks <= most * looked


def test_watched_identical_arms_are_almost_never_called_faster_or_slower():
    for name in ("N1", "Drift", "Sticky"):
        up, down = (won(side * ratios(name), DELTA, 1) for side in (1, -1))
        assert (np.minimum(up, down) <= BLOCKS).mean() <= 0.006


# --- cost --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("blocks", "seconds"), [(1000, 0.1), (10_000, 1.0)])
def test_cost(blocks, seconds):
    values = np.random.default_rng(2).normal(0.01, 0.02, blocks)
    spent = []
    for _ in range(5):
        begin = time.process_time()
        confidence_sequence(values)
        spent.append(time.process_time() - begin)
    assert min(spent) < seconds
