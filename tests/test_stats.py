"""Each function of paribus.stats by itself: exact values, properties, refusals."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
import time
from itertools import islice
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, wilcoxon

from paribus.core import Comparison, Metric, Word
from paribus.stats import estimate
from paribus.stats.estimate import (
    compare,
    critical_rank,
    fewest_pairs,
    ordered_sums,
    signed_rank_cdf,
)
from paribus.stats.looks import LEVELS, LONGER, LOOKS, schedule
from paribus.stats.outliers import outlying
from paribus.stats.pairs import block_log_ratios, headline_log_ratios
from paribus.stats.reliability import failures_differ, reliability
from paribus.stats.schedule import EVEN, Randomiser, arm_orders, orders
from paribus.stats.summary import geometric_mean, launch_median, spread
from paribus.stats.verdict import case_margin, headline_margin, judge
from paribus.words.values import reason_of


@pytest.mark.parametrize(("launches", "bound"), [(8, 0.07), (12, 0.045), (60, 0.012)])
def test_normal_noise_is_seldom_flagged(launches, bound):
    draw = random.Random(7)
    reported = [
        outlying([draw.lognormvariate(0, 0.02) for _ in range(launches)]) for _ in range(1000)
    ]
    assert sum(map(bool, reported)) / 1000 <= bound


def test_slow_and_fast_launches_are_flagged():
    draw = random.Random(8)
    values = [draw.lognormvariate(0, 0.01) for _ in range(30)]
    values[4], values[17] = 1.5, 0.6
    assert outlying(values) == (4, 17)
    assert outlying(values, limit=1000) == ()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_other_state_is_no_outlier_but_a_launch_far_from_both_is(share):
    draw = random.Random(9)
    values = [draw.lognormvariate(0, 0.02) * (2.4 if i < 40 * share else 1.0) for i in range(40)]
    assert outlying(values) == ()
    values[39] = 1.5
    assert outlying(values) == (39,)


def test_launches_that_mostly_tie():
    assert outlying([1.0] * 30) == ()
    assert outlying([1.0] * 29 + [9.0]) == (29,)
    assert outlying([1.23] * 20 + [1.24] * 8) == ()
    assert outlying([1.0] * 6 + [9.0]) == ()
    with pytest.raises(ValueError, match="finite"):
        outlying([1.0] * 8 + [math.nan])


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
    assert found.low < 1 < found.high
    with pytest.raises(ValueError, match="at most"):
        compare([0.0] * (estimate.MOST_BLOCKS + 1), 0.95)


INF = math.inf
ratios = st.lists(st.floats(-3, 3), min_size=1, max_size=40)
levels = st.sampled_from([0.9, 0.95, 0.987, 0.99])


def test_importing_the_room_does_not_import_numpy():
    modules = ["estimate", "family", "looks", "pairs", "reliability", "schedule"]
    modules += ["summary", "verdict"]
    imports = "; ".join(f"import paribus.stats.{module}" for module in modules)
    code = f"import sys; {imports}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- summary -----------------------------------------------------------------------------------


def test_launch_median_ignores_interrupted_samples():
    assert launch_median([1.0, 1.1, 900.0]) == 1.1
    assert launch_median([4.0, 1.0, 2.0, 3.0]) == 2.5


@given(st.lists(st.floats(0.001, 1e6), min_size=1))
def test_spread_is_that_of_numpy(values):
    found = spread(values)
    assert found.launches == len(values)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    assert (found.low, found.median, found.high) == pytest.approx((low, middle, high), rel=1e-12)


@pytest.mark.parametrize("summary", [launch_median, spread, geometric_mean])
@pytest.mark.parametrize("values", [[], [1.0, math.nan], [1.0, INF]])
def test_no_summary_of_nothing_or_of_nan(summary, values):
    with pytest.raises(ValueError, match="values"):
        summary(values)


def test_geometric_mean():
    assert geometric_mean([1.0, 100.0]) == pytest.approx(10)
    assert geometric_mean([1e-300] * 40) == pytest.approx(1e-300)
    with pytest.raises(ValueError, match="not above zero"):
        geometric_mean([1.0, 0.0])


# --- pairs -------------------------------------------------------------------------------------


def test_only_blocks_of_both_arms_count_in_order():
    found = block_log_ratios({3: 2.0, 1: 1.0, 2: 5.0}, {1: 2.0, 3: 1.0, 9: 1.0})
    assert list(found) == [1, 3]
    assert found == pytest.approx({1: math.log(2), 3: -math.log(2)})


def test_a_censored_launch_ranks_last_and_two_say_nothing():
    found = block_log_ratios({1: 1.0, 2: INF, 3: INF}, {1: INF, 2: 1.0, 3: INF})
    assert found == {1: INF, 2: -INF}


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_no_ratio_of_what_is_no_measurement(bad):
    with pytest.raises(ValueError, match="block 4"):
        block_log_ratios({4: 1.0}, {4: bad})
    with pytest.raises(ValueError, match="block 4"):
        block_log_ratios({4: bad}, {4: 1.0})


def test_headline_takes_only_blocks_with_every_case():
    cases = [{1: 0.1, 2: 0.2, 3: INF}, {2: 0.4, 1: 0.3}, {1: -0.1, 2: 0.0, 3: 1.0}]
    assert headline_log_ratios(cases) == pytest.approx({1: 0.1, 2: 0.2})
    assert headline_log_ratios([]) == {}
    assert headline_log_ratios([{1: INF, 2: INF}, {1: -INF, 2: 0.0}]) == {2: INF}


# --- estimate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 13))
def test_signed_rank_distribution_equals_enumeration(n):
    sums = [
        sum(r for r, up in enumerate(signs, 1) if up)
        for signs in itertools.product((0, 1), repeat=n)
    ]
    counted = np.cumsum(np.bincount(sums, minlength=n * (n + 1) // 2 + 1)) / 2**n
    assert np.array_equal(signed_rank_cdf(n), counted)


@pytest.mark.parametrize("n", [8, 9, 12, 18, 27, 40])
@pytest.mark.parametrize("alpha", [0.10, 0.05, 0.013, 0.01])
def test_interval_ends_are_where_the_exact_p_crosses(n, alpha):
    d = np.random.default_rng(n).normal(0.01, 0.03, n)
    found = compare(d.tolist(), 1 - alpha)
    if found.low == 0:
        assert 2 / 2**n > alpha
        return

    def p(shift):
        return wilcoxon(d - shift, method="exact").pvalue

    nudge = 1e-9
    for end, outward in ((math.log(found.low), -nudge), (math.log(found.high), nudge)):
        assert p(end + outward) <= alpha < p(end - outward)


def test_hodges_lehmann_is_the_median_of_walsh_averages():
    d = np.random.default_rng(3).normal(size=25)
    walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(d, 2)]
    assert math.log(compare(d.tolist(), 0.95).ratio) == pytest.approx(median(walsh), abs=1e-12)


def test_expansion_gives_the_exact_ranks():
    cases = [(n, a) for n in (501, 700) for a in (0.1, 0.013, 0.0011)]
    expanded = [critical_rank(n, alpha) for n, alpha in cases]
    exact = [int(np.searchsorted(signed_rank_cdf(n), a / 2, "right")) - 1 for n, a in cases]
    assert expanded == exact


def test_level_on_the_step_of_the_distribution():
    d = [0.01 * 1.5**i for i in range(8)]
    assert compare(d, 1 - 2 / 256).low == pytest.approx(math.exp(min(d)))


@pytest.mark.parametrize("level", [0.013, 0.05, 1.0, math.nan])
def test_an_error_level_is_not_taken_for_a_confidence(level):
    with pytest.raises(ValueError, match="confidence"):
        compare([0.1] * 10, level)


@pytest.mark.parametrize("values", [[], [0.1, math.nan]])
def test_no_comparison_of_nothing(values):
    with pytest.raises(ValueError, match=r"no block|NaN"):
        compare(values, 0.95)


def ends(comparison: Comparison) -> tuple[float, float, float]:
    ratio, low, high = (
        math.log(x) if x else -INF for x in (comparison.ratio, comparison.low, comparison.high)
    )
    return ratio, low, high


@given(ratios, levels, st.floats(-2, 2), st.randoms())
def test_neither_unit_nor_reference_nor_the_order_of_blocks_matters(values, level, shift, random):
    ratio, low, high = ends(compare(values, level))
    moved = ends(compare([d + shift for d in values], level))
    assert moved == pytest.approx((ratio + shift, low + shift, high + shift), abs=1e-12)
    swapped = ends(compare([-d for d in values], level))
    assert swapped == pytest.approx((-ratio, -high, -low), abs=1e-12)
    shuffled = values[:]
    random.shuffle(shuffled)
    assert compare(shuffled, level) == compare(values, level)


with_infinite = st.lists(st.floats(-3, 3) | st.sampled_from([INF, -INF]), min_size=1, max_size=20)


@given(with_infinite, levels)
def test_censored_ratios_never_give_nan_and_only_widen(values, level):
    found = compare(values, level)
    assert 0 <= found.low <= found.high <= INF
    assert found.low <= found.ratio <= found.high
    # Whatever the censored launches would have taken beyond the others, the interval allows it.
    spelled_out = [
        50 + 7.1 * i if d == INF else -50 - 3.3 * i if d == -INF else d
        for i, d in enumerate(values)
    ]
    bounded = compare(spelled_out, level)
    far = math.exp(20)  # averages with a censored launch lie beyond this, others within
    assert found.low <= bounded.low * (1 + 1e-12) or bounded.low > far
    assert found.high >= bounded.high * (1 - 1e-12) or bounded.high < 1 / far


def test_an_arm_that_never_ended_is_infinitely_slower():
    found = compare([INF] * 8, 0.987)
    assert (found.ratio, found.low, found.high) == (INF, INF, INF)
    assert compare([INF, -INF], 0.95).ratio == 1
    one = compare([0.01 * i for i in range(19)] + [INF], 0.987)
    assert one.low > 0
    assert math.isfinite(one.high)


# --- looks -------------------------------------------------------------------------------------


def test_the_standard_schedule():
    assert schedule(60).at == LOOKS == (8, 12, 18, 27, 40, 60)
    assert schedule(60).level == 0.0130
    assert schedule(60).confidence == pytest.approx(0.987)


@given(st.integers(8, 1000), st.sampled_from([0.9, 0.95, 0.99]))
def test_schedules_end_where_asked_and_never_gain_level(blocks, confidence):
    looks = schedule(blocks, confidence)
    assert looks.at[-1] == blocks
    assert list(looks.at) == sorted(set(looks.at))
    assert set(looks.at[:-1]) <= set(LOOKS + LONGER)
    assert 0 < looks.level <= round(1 - confidence, 10)
    assert schedule(min(blocks + 1, 1000), confidence).level <= looks.level


def test_levels_are_tabulated_for_every_look():
    assert {len(levels) for levels in LEVELS.values()} == {len(LOOKS + LONGER)}


@pytest.mark.parametrize(
    ("blocks", "confidence", "says"),
    [
        (7, 0.95, "no verdict"),
        (0, 0.95, "no verdict"),
        (1001, 0.95, "1000"),
        (60, 0.97, r"0\.90, 0\.95, 0\.99"),
    ],
)
def test_schedules_that_cannot_be(blocks, confidence, says):
    with pytest.raises(ValueError, match=says):
        schedule(blocks, confidence)


# --- verdict -----------------------------------------------------------------------------------


def verdict_of(ratio, low, high, *, better="lower", margin=0.02, last=False, needed=None):
    comparison = Comparison(12, ratio, low, high, 0.987)
    return judge(comparison, better=better, margin=margin, last=last, needed=needed)


@pytest.mark.parametrize(
    ("interval", "better", "word", "final", "reason"),
    [
        ((1.03, 1.025, 1.035), "lower", "slower", True,
         "between 2.5 % and 3.5 % slower; the margin is 2 %"),
        ((1.03, 1.025, 1.035), "higher", "faster", True,
         "between 2.4 % and 3.4 % faster; the margin is 2 %"),
        ((0.95, 0.94, 0.96), "lower", "faster", True,
         "between 4.0 % and 6.0 % faster; the margin is 2 %"),
        ((0.95, 0.94, 0.96), "higher", "slower", True,
         "between 4.2 % and 6.4 % slower; the margin is 2 %"),
        ((2.5, 2.4, 2.6), "lower", "slower", True,
         "between 2.40x and 2.60x slower; the margin is 2 %"),
        ((1.1, 1.03, 1.18), "lower", "undecided", False,
         "between 3.0 % and 18.0 % slower; the margin is 2 %; size unknown so far"),
        ((1.0, 0.995, 1.005), "lower", "equivalent", True,
         "between 0.50 % faster and 0.50 % slower: within the margin of 2 %"),
        ((1.005, 1.001, 1.009), "lower", "equivalent", True,
         "between 0.10 % and 0.90 % slower: real, but within the margin of 2 %"),
        ((1.02, 1.018, 1.024), "lower", "undecided", True,
         ("between 1.8 % and 2.4 % slower: the effect is at the margin of 2 %; "
          "more blocks would not help")),
        ((1.01, 0.99, 1.03), "lower", "undecided", False,
         "between 1.0 % faster and 3.0 % slower; the margin is 2 %"),
        ((1.01, 0, INF), "lower", "undecided", False,
         "too few blocks (12) for an interval at 98.7 % confidence"),
        ((1.3, 1.2, INF), "lower", "undecided", False,
         "at least 20.0 % slower; the margin is 2 %; size unknown so far"),
        ((INF, INF, INF), "lower", "slower", True, "slower without limit; the margin is 2 %"),
        ((0.875, 0.87499, 0.87501), "lower", "faster", True, "12.5 % faster; the margin is 2 %"),
        ((2.844, 2.843, 2.844), "lower", "slower", True, "2.84x slower; the margin is 2 %"),
        ((1.0, 1.0, 1.0), "lower", "equivalent", True, "equal: within the margin of 2 %"),
    ],
)  # fmt: skip
def test_what_each_interval_says(interval, better, word, final, reason):
    found = verdict_of(*interval, better=better)
    assert (found.word, found.final, reason_of(found)) == (Word(word), final, reason)


def test_the_last_look_asks_for_no_precision():
    assert verdict_of(1.1, 1.03, 1.18, last=True).word is Word.SLOWER
    wide = verdict_of(1.01, 0.99, 1.03, last=True, needed=140)
    assert (wide.word, wide.final, wide.blocks_needed) == (Word.UNDECIDED, True, 140)
    assert "a verdict takes about 140 blocks" in reason_of(wide)


def test_the_margin_is_symmetric_on_the_log_scale():
    low_side = verdict_of(1 / 1.15, 1 / 1.19, 1 / 1.11, margin=0.10)
    assert low_side.word is Word.FASTER
    assert reason_of(low_side).endswith("the margin is 10 % (on this side 9.1 %)")


finite = st.floats(-1.5, 1.5)


@given(st.tuples(finite, finite, finite), st.sampled_from([0.01, 0.02, 0.1]), st.booleans())
def test_verdicts_mirror_and_never_contradict_the_interval(logs, margin, last):
    low, middle, high = sorted(logs)
    delta = math.log1p(margin)
    words = {}
    for better in ("lower", "higher"):
        words[better] = verdict_of(
            math.exp(middle), math.exp(low), math.exp(high), better=better, margin=margin, last=last
        ).word
    opposite = {Word.FASTER: Word.SLOWER, Word.SLOWER: Word.FASTER}
    assert words["higher"] == opposite.get(words["lower"], words["lower"])
    slack = 1e-9
    if words["lower"] is Word.SLOWER:
        assert low > delta - slack
    if words["lower"] is Word.FASTER:
        assert high < -delta + slack
    if words["lower"] is Word.EQUIVALENT:
        assert -delta - slack < low
        assert high < delta + slack
    if last and low > delta + slack:
        assert words["lower"] is Word.SLOWER


AT_THE_MARGIN = "the effect is at the margin of 2 %; more blocks would not help"


@pytest.mark.parametrize(
    ("interval", "word", "reason"),
    [
        ((1.30, 1.28, 1.32), "slower", "by more than the margin of 2 %"),
        ((0.70, 0.68, 0.72), "faster", "by more than the margin of 2 %"),
        ((1.00, 0.99, 1.01), "equivalent", "within the margin of 2 %"),
        ((1.01, 1.005, 1.015), "equivalent", "real, but within the margin of 2 %"),
        ((1.02, 1.018, 1.022), "undecided", AT_THE_MARGIN),
        ((1.05, 0.99, 1.09), "undecided", "the margin is 2 %"),
        ((1.30, 1.10, INF), "undecided", "the margin is 2 %"),
    ],
)  # fmt: skip
def test_a_size_that_the_time_limit_hides_is_withheld_and_the_word_stays(interval, word, reason):
    ratio, low, high = interval
    comparison = Comparison(12, ratio, low, high, 0.987)
    known = judge(comparison, better="lower", margin=0.02, last=False, needed=9)
    found = judge(comparison, better="lower", margin=0.02, last=False, needed=9, size_known=False)
    assert (found.word, found.size_known, known.size_known) == (word, False, True)
    assert (found.word, found.final, found.blocks_needed) == (
        known.word, known.final, known.blocks_needed,
    )  # fmt: skip
    why = "the size is withheld because the time limit cut off more than 2 % of the launches"
    assert reason_of(found) == f"{reason}; {why}"


# --- reliability -------------------------------------------------------------------------------


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_exact_binomial_test(b, c):
    expected = binomtest(b, b + c).pvalue if b + c else 1.0
    assert failures_differ(b, c) == pytest.approx(expected, abs=1e-12)


def test_failures_that_do_not_stand_in_the_way():
    assert reliability([], [], 0) is None
    assert reliability([3], [5], 12) is None


def test_failures_that_do():
    share = reliability([], [3, 5], 12)
    assert (share.word, share.final) == (Word.WITHHELD, False)
    assert reason_of(share).startswith(
        "2 of 12 first attempts failed, 0 of the reference: above 10 %"
    )
    assert reliability([], [3, 5], 12, last=True).final


@given(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)))
def test_reliability_differs_only_where_a_test_says_so(reference, arm):
    verdict = reliability(reference, arm, 40, last=True)
    significant = failures_differ(len(reference - arm), len(arm - reference)) < 0.05
    assert (verdict is not None and verdict.word is Word.RELIABILITY) == significant


def test_failures_of_one_arm_alone():
    never = reliability([], range(1, 9), 8)
    assert never.final
    assert "p = 0.0078" in reason_of(never)
    rare_but_one_sided = reliability([], range(6), 60)
    assert rare_but_one_sided.word is Word.RELIABILITY
    alike = reliability(range(8), range(8), 8, last=True)
    assert (alike.word, alike.final) == (Word.WITHHELD, True)
    with pytest.raises(ValueError, match="of 2 blocks failed"):
        reliability([1, 2], [3], 2)


# --- plan --------------------------------------------------------------------------------------


def test_same_seed_same_order_for_good():
    assert arm_orders(("a", "b"), 50, 7, "x") == arm_orders(("a", "b"), 50, 7, "x")
    assert arm_orders(("a", "b"), 50, 7, "x") != arm_orders(("a", "b"), 50, 8, "x")
    assert arm_orders(("a", "b"), 50, 7, "x") != arm_orders(("a", "b"), 50, 7, "y")
    # Written down once: a plan made today must come out the same years later.
    first = "".join(order[0] for order in arm_orders(("a", "b"), 24, 2026, "latency"))
    assert first == "aababbbbaaaabbbaabbaabba"
    assert [*map("".join, arm_orders("abc", 3, 2026, "latency"))] == ["acb", "bac", "cba"]


def test_a_longer_plan_begins_like_a_shorter_one():
    for arms in (("a", "b"), ("a", "b", "c")):
        assert arm_orders(arms, 60, 1, "s")[:20] == arm_orders(arms, 20, 1, "s")


def test_no_arm_comes_first_in_none_or_all_of_the_first_blocks():
    """Plans that had this are drawn again; every other one is what it was."""
    again = 0
    for seed in range(3000):
        coins = list(islice(orders(("a", "b"), seed, "s", after=1, even=0), 30))
        drawn = list(islice(orders(("a", "b"), seed, "s", after=1), 30))
        assert drawn[0] == coins[0]
        assert len(set(drawn[1 : EVEN + 1])) == 2
        lopsided = len(set(coins[1 : EVEN + 1])) == 1
        assert lopsided or drawn == coins
        again += lopsided
    assert abs(again / 3000 - 2 / 256) <= 3 * math.sqrt(2 / 256 / 3000)


@given(st.integers(3, EVEN), st.integers(0, 2**31))
def test_latin_rows_put_either_arm_of_a_pair_first_in_the_first_blocks(count, seed):
    arms = "abcdefgh"[:count]
    rows = arm_orders(arms, EVEN, seed, "s")
    for one, other in itertools.combinations(arms, 2):
        assert len({order.index(one) < order.index(other) for order in rows}) == 2
    assert {order[0] for order in rows} == set(arms)


@given(st.integers(3, 7), st.integers(0, 2**31), st.integers(0, 30))
def test_every_run_of_rows_is_a_latin_square(count, seed, blocks):
    arms = [f"arm{i}" for i in range(count)]
    rows = arm_orders(arms, blocks, seed, "s")
    assert len(rows) == blocks
    assert all(sorted(order) == sorted(arms) for order in rows)
    for start in range(0, blocks - count + 1, count):
        for column in zip(*rows[start : start + count], strict=True):
            assert sorted(column) == sorted(arms)


def test_orders_that_cannot_be():
    with pytest.raises(ValueError, match="named once"):
        arm_orders(("a", "a"), 3, 1, "s")
    with pytest.raises(ValueError, match="named once"):
        arm_orders((), 3, 1, "s")
    with pytest.raises(ValueError, match="-1"):
        arm_orders(("a", "b"), -1, 1, "s")
    with pytest.raises(ValueError, match="drawn"):
        Randomiser(1, "s").below(0)


def test_draws_are_uniform():
    draw = Randomiser(1, "uniform")
    counts = np.bincount([draw.below(6) for _ in range(12_000)], minlength=6)
    assert ((counts - 2000) ** 2 / 2000).sum() < 20.5  # chi-squared, 5 degrees, p = .001
    orders = [tuple(draw.shuffled("abc")) for _ in range(6000)]
    counts = np.array([orders.count(order) for order in itertools.permutations("abc")])
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5


# --- margin ------------------------------------------------------------------------------------


def test_short_times_have_their_own_margin():
    latency = Metric("latency", "us", "lower", margin=0.02, small_us=2.0, small_margin=0.05)
    assert case_margin(latency, 1.9) == 0.05
    assert case_margin(latency, 2.0) == 0.02
    in_ns = Metric("latency", "ns", "lower", small_us=2.0)
    assert (case_margin(in_ns, 1999.0), case_margin(in_ns, 2001.0)) == (0.05, 0.02)
    assert case_margin(Metric("bandwidth", "MB/s", "higher", margin=0.03), 1.0) == 0.03
    with pytest.raises(ValueError, match="times"):
        case_margin(Metric("bandwidth", "MB/s", "higher", small_us=2.0), 1.0)


def test_the_margin_of_a_headline_is_the_mean_on_the_log_scale():
    assert headline_margin([0.02, 0.02]) == pytest.approx(0.02)
    assert headline_margin([0.02, 0.05]) == pytest.approx(math.sqrt(1.02 * 1.05) - 1)
    with pytest.raises(ValueError, match="no cases"):
        headline_margin([])


@pytest.mark.parametrize(("alpha", "pairs"), [(0.1, 5), (0.05, 6), (0.025, 7), (2 / 256, 8)])
def test_an_interval_takes_so_many_pairs(alpha: float, pairs: int) -> None:
    assert fewest_pairs(alpha) == pairs
    for n, is_there in ((pairs - 1, False), (pairs, True)):
        found = compare([0.1 * (i + 1) for i in range(n)], 1 - alpha)
        assert (found.low is not None and found.low > 0) == is_there
