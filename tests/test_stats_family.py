"""Words on many cases and many arms: exact values, properties, and error rates by simulation."""

from __future__ import annotations

import itertools
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, wilcoxon

import calibrate_few
import calibrate_looks
import paribus
from chances import at_most
from paribus.core import Word
from paribus.stats import few
from paribus.stats.estimate import compare, signed_rank_cdf
from paribus.stats.family import Claim, benjamini_hochberg, claims, holm, word_p
from paribus.stats.looks import LEVELS, LONGER, LOOKS, any_look_p, nominal_level, schedule
from paribus.stats.verdict import judge
from validation.families import family
from validation.studies import any_look_error, intervals_of

INF = math.inf
STANDARD = schedule(60)
DELTA = math.log(1.02)
WORDS = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)

coarse = st.integers(-30, 30).map(lambda i: i / 400)  # ties and values at the margin
values = st.floats(-0.3, 0.3) | coarse | st.sampled_from([INF, -INF])
ratios = st.lists(values, min_size=1, max_size=30)
margins = st.sampled_from([0.0, 0.01, 0.02, 0.1])
p_lists = st.lists(st.floats(1e-9, 1), min_size=1, max_size=15)


def as_series(rows) -> list[dict[int, float]]:
    return [dict(enumerate(map(float, row), start=1)) for row in rows]


def word_of(log_ratios, level: float, margin: float) -> Word:
    found = compare(list(log_ratios), level)
    return judge(found, better="lower", margin=margin, last=True).word


# --- the p of a word ---------------------------------------------------------------------------


@given(ratios, margins, st.floats(1e-6, 0.5))
def test_an_interval_gives_a_word_exactly_from_its_p_on(log_ratios, margin, alpha):
    p = word_p(log_ratios, margin)
    assume(abs(p - alpha) > 1e-9)
    # compare() carries the ends through exp and judge() back, which moves ties with the margin.
    walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(log_ratios, 2)]
    assume(all(abs(abs(w) - math.log1p(margin)) > 1e-12 for w in walsh if math.isfinite(w)))
    assert (word_of(log_ratios, 1 - alpha, margin) in WORDS) == (p <= alpha)


@pytest.mark.parametrize("n", [8, 12, 27, 60, 501, 800])
def test_the_interval_turns_at_the_p(n):
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.01, 0.03, -0.03):
        d = rng.normal(shift, 0.03, n).tolist()
        p = word_p(d, 0.02)
        if 1e-9 < p < 0.4:
            assert word_of(d, 1 - p * 1.0001, 0.02) in WORDS
            assert word_of(d, 1 - p * 0.9999, 0.02) is Word.UNDECIDED


@given(st.lists(st.integers(-(10**9), 10**9).filter(bool), min_size=5, max_size=25, unique_by=abs))
def test_without_a_margin_it_is_the_signed_rank_test(billionths):
    # Their sums are not within rounding of 0, where Walsh averages touch it; the test ranks
    # magnitudes.
    log_ratios = [one / 1e9 for one in billionths]
    assert word_p(log_ratios, 0.0) == pytest.approx(wilcoxon(log_ratios, method="exact").pvalue)


@given(ratios, margins, st.sampled_from([0.25, 0.5, 2.0, 4.0]))
def test_neither_the_unit_nor_the_reference_matters(log_ratios, margin, factor):
    # Scaled by a power of two and not too small, so that rounding makes or loses no tie.
    log_ratios = [d if abs(d) > 1e-9 else 0.0 for d in log_ratios]
    assert word_p([-d for d in log_ratios], margin) == word_p(log_ratios, margin)
    assert word_p([factor * d for d in log_ratios], 0.0) == word_p(log_ratios, 0.0)
    far = [d for d in log_ratios if abs(d) > 0.2]  # whose averages lie beyond or far from limits
    scaled = math.expm1(factor * math.log1p(margin))
    if far and len({d > 0 for d in far}) == 1:
        assert word_p([factor * d for d in far], scaled) == word_p(far, margin)


@given(ratios, st.floats(0, 0.2), st.floats(0, 0.2))
def test_a_wider_margin_makes_differing_no_easier(log_ratios, one, other):
    narrow, wide = sorted((one, other))
    far = [d if d > 0 else -d for d in log_ratios]  # only "slower" or "equivalent" is possible
    if min(far) > math.log1p(wide):
        assert word_p(far, narrow) <= word_p(far, wide)


def test_words_that_cannot_be():
    assert word_p([], 0.02) == 1
    assert word_p([0.5, 0.5, 0.5], 0.02) == 2 / 8
    assert word_p([INF] * 10, 0.02) == 2 / 1024
    assert word_p([INF, -INF] * 5, 0.02) == 1
    with pytest.raises(ValueError, match="NaN"):
        word_p([0.1, math.nan], 0.02)
    with pytest.raises(ValueError, match="margin"):
        word_p([0.1], -0.02)


# --- looks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "looks", "gains"),
    [
        ("crossings.toml", LOOKS + LONGER, calibrate_looks.GAINS),
        ("crossings_few.toml", few.LOOKS, calibrate_few.GAINS),
    ],
)
def test_the_table_of_crossings_has_the_levels_of_its_tool_and_a_row_for_each_look(
    file, looks, gains
):
    path = Path(paribus.__file__).parent / "stats" / file
    table = tomllib.loads(path.read_text())
    assert table["grid"] == calibrate_looks.grid(gains)
    assert list(table["none_earlier"]) == [str(n) for n in looks[1:]]
    for row in table["none_earlier"].values():
        assert len(row) == len(table["grid"])
        assert all(isinstance(share, int) and 0 < share <= 1000 for share in row)


def smallest_p(at, studies, rng):
    """Return the smallest signed-rank p over the looks `at` of studies of normal noise."""
    d = rng.normal(size=(studies, at[-1]))
    smallest = np.ones(studies)
    for n in at:
        ranks = np.abs(d[:, :n]).argsort(axis=1).argsort(axis=1) + 1
        w = (ranks * (d[:, :n] > 0)).sum(axis=1)
        p = 2 * signed_rank_cdf(n)[np.minimum(w, n * (n + 1) // 2 - w)]
        smallest = np.minimum(smallest, p)
    return smallest


@pytest.mark.parametrize("blocks", [8, 10, 12, 15, 27, 40, 60])
def test_any_look_p_is_the_share_of_studies(blocks):
    at, studies = schedule(blocks).at, 50_000
    smallest = smallest_p(at, studies, np.random.default_rng(blocks))
    for p in (0.0005, 0.002, 0.0078125, 0.013, 0.02, 0.05, 0.2):
        share = (smallest <= p + 1e-12).mean()
        error = math.sqrt(max(share, 1e-4) / studies)
        assert any_look_p(p, at) >= share - 3 * error
        if blocks in LOOKS and p >= 2 / 256:
            assert any_look_p(p, at) <= 1.06 * max(share, p) + 3 * error


def test_any_look_p_of_a_case_that_lacks_blocks_is_no_less_than_the_share():
    at = (7, 11, 16, 25, 38, 58)
    smallest = smallest_p(at, 100_000, np.random.default_rng(1))
    for p in (0.002, 0.013, 0.02, 0.03, 0.05):
        share = (smallest <= p).mean()
        assert any_look_p(p, at) >= share - 2 * math.sqrt(share / 100_000)


schedules = st.integers(8, 1000).map(lambda n: schedule(n).at)
chances = st.floats(1e-12, 1)


@given(schedules, chances, chances)
def test_any_look_p_rises_and_stays_between_its_bounds(at, one, other):
    low, high = sorted((any_look_p(min(one, other), at), any_look_p(max(one, other), at)))
    assert any_look_p(min(one, other), at) == low
    assert min(one, other) <= low <= min(1.0, len(at) * min(one, other) * (1 + 1e-9))
    assert high <= 1


@given(schedules, st.floats(1e-9, 0.5), st.floats(1e-9, 0.5))
def test_nominal_level_is_the_inverse(at, error, p):
    level = nominal_level(error, at)
    assert 0 < level <= error
    assert any_look_p(level, at) <= error
    if p < level:
        assert any_look_p(p, at) <= error
    if p > level * (1 + 1e-12):
        assert any_look_p(p, at) > error


@pytest.mark.parametrize("confidence", LEVELS)
def test_any_look_p_agrees_with_the_tabulated_levels(confidence):
    every = LOOKS + LONGER
    for count, level in enumerate(LEVELS[confidence], start=1):
        together = any_look_p(level, every[:count])
        assert 0.75 * (1 - confidence) < together <= round(1 - confidence, 12)


def test_one_look_needs_no_correction():
    for p in (1e-7, 0.02, 0.3):
        assert any_look_p(p, (27,)) == p
        assert nominal_level(p, (27,)) == p


@given(st.integers(8, 1000), st.sampled_from([0.9, 0.95, 0.99]), st.integers(2, 8))
def test_more_comparisons_never_gain_level(blocks, confidence, comparisons):
    alone = schedule(blocks, confidence)
    try:
        several = schedule(blocks, confidence, comparisons)
    except ValueError as error:
        assert "too few" in str(error)  # noqa: PT017
        assert 2 * signed_rank_cdf(blocks)[0] > (1 - confidence) / comparisons
        return
    assert several.at == alone.at
    assert several.level <= alone.level * (1 if blocks > 8 else 1 + 1e-9)
    assert any_look_p(several.level, several.at) <= (1 - confidence) / comparisons + 1e-12


def test_levels_of_one_comparison_are_the_tabulated_ones():
    for confidence, levels in LEVELS.items():
        for count, blocks in enumerate(LOOKS + LONGER):
            assert schedule(blocks, confidence, comparisons=1).level == levels[count]
    assert schedule(60, comparisons=3).level == pytest.approx(0.0049, abs=2e-4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: any_look_p(1.5, (8,)), "p of 1.5"),
        (lambda: any_look_p(math.nan, (8,)), "p of nan"),
        (lambda: any_look_p(0.5, ()), "no looks"),
        (lambda: nominal_level(0.0, (8,)), "error of 0"),
        (lambda: schedule(60, comparisons=0), "0 comparisons"),
        (lambda: schedule(8, 0.99, comparisons=2), "8 blocks: too few for 2 comparisons"),
    ],
)
def test_corrections_that_cannot_be(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [8, 10, 12, 15, 17, 20, 26, 27, 33, 50, 75])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_schedules_of_any_length_keep_their_error(blocks, confidence, sample):
    looks = schedule(blocks, confidence)
    ratios = np.random.default_rng(5).normal(size=(20_000, blocks))
    tried = sample(range(20_000))
    error = 1 - confidence
    most = at_most(error + 3 * math.sqrt(error / 20_000), len(tried), 20_000)
    assert any_look_error(intervals_of(ratios[tried], looks)) <= most


# --- the family --------------------------------------------------------------------------------


@given(p_lists)
def test_benjamini_hochberg_is_that_of_scipy(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values))


def test_holm_on_an_example_done_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1, 1]


@given(p_lists, st.randoms())
def test_corrections_keep_order_and_do_not_mind_it(p_values, random):
    for correct in (holm, benjamini_hochberg):
        adjusted = correct(p_values)
        order = list(range(len(p_values)))
        random.shuffle(order)
        assert correct([p_values[i] for i in order]) == [adjusted[i] for i in order]
        assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
        ranked = sorted(zip(p_values, adjusted, strict=True))
        assert [a for _, a in ranked] == sorted(adjusted)


def family_rows(cases: int, blocks: int, seed: int, *, shared: float = 0.5, shift=0.0):
    """Return log ratios (case, block) with correlation `shared` between cases, sd 1.5 %."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=blocks)
    own = rng.normal(size=(cases, blocks))
    shift = np.broadcast_to(np.asarray(shift, dtype=float), (cases,))
    return 0.015 * (math.sqrt(shared) * common + math.sqrt(1 - shared) * own) + shift[:, None]


@given(
    st.integers(1, 14),
    st.sampled_from(STANDARD.at),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.9]),
    st.sampled_from([0.0, 0.02]),
)
def test_every_supported_interval_gives_its_word(cases, blocks, seed, shared, margin):
    shift = np.where(np.arange(cases) % 2, 0.0, 0.04)
    rows = family_rows(cases, blocks, seed, shared=shared, shift=shift)
    for row, claim in zip(rows, claims(as_series(rows), [margin] * cases, STANDARD, seed=1),
                          strict=True):  # fmt: skip
        assert claim.p <= any_look_p(claim.p, STANDARD.at) <= claim.adjusted * (1 + 1e-9)
        assert claim.supported == (claim.adjusted <= 0.05)
        assert 0.5 <= claim.level < 1
        if claim.supported:
            assert word_of(row, claim.level, margin) in WORDS
        else:
            assert claim.level == STANDARD.confidence


@given(st.integers(2, 12), st.integers(0, 10**6), st.randoms())
def test_order_of_cases_and_of_blocks_says_nothing(cases, seed, random):
    rows = family_rows(cases, 18, seed, shift=np.linspace(0, 0.03, cases))
    found = claims(as_series(rows), [0.0] * cases, STANDARD, seed=3)
    order = list(range(cases))
    random.shuffle(order)
    moved = claims(as_series(rows[order]), [0.0] * cases, STANDARD, seed=3)
    # The flips are drawn, so below 8 cases they place a chance only to within their error.
    for place, i in enumerate(order):
        slack = 0 if cases >= 8 else 5 * math.sqrt(max(found[i].adjusted, 1e-3) / 4000)
        assert moved[place].adjusted == pytest.approx(found[i].adjusted, rel=1e-12, abs=slack)
    backwards = [dict(reversed(one.items())) for one in as_series(rows)]
    assert claims(backwards, [0.0] * cases, STANDARD, seed=3) == found


@given(st.integers(0, 10**6))
def test_a_case_alone_answers_only_for_the_looks(seed):
    (row,) = family_rows(1, 27, seed, shift=0.01)
    (claim,) = claims(as_series([row]), [0.02], STANDARD, seed=0)
    assert claim.adjusted == any_look_p(word_p(row, 0.02), STANDARD.at)
    assert claims([], [], STANDARD, seed=0) == ()


def test_cases_that_are_one_and_the_same_cost_nothing():
    row = family_rows(1, 40, 1, shift=0.0075)[0]
    alone = any_look_p(word_p(row, 0.0), STANDARD.at)
    assert 0.005 < alone < 0.1
    for claim in claims(as_series([row] * 6), [0.0] * 6, STANDARD, seed=2):
        assert alone <= claim.adjusted < 1.5 * alone
    # One that differs among five that vary with it, but do not: little more than alone.
    rows = [row, *(row - np.median(row) + 1e-6 * k for k in range(5))]
    first = claims(as_series(rows), [0.0] * 6, STANDARD, seed=2)[0]
    assert alone <= first.adjusted < 2 * alone


def simes_closed(p_values):
    """Return the p values of the closed test with Simes' statistic, spelled out."""
    adjusted = []
    for i in range(len(p_values)):
        sets = (
            [p_values[j] for j in members]
            for size in range(1, len(p_values) + 1)
            for members in itertools.combinations(range(len(p_values)), size)
            if i in members
        )
        adjusted.append(max(min(len(s) * p / r for r, p in enumerate(sorted(s), 1)) for s in sets))
    return adjusted


@pytest.mark.parametrize("cases", [2, 4, 7])
@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_flips_lose_little_against_the_inequality(cases, shared):
    rows = family_rows(cases, 40, cases, shared=shared, shift=np.linspace(0.006, 0.009, cases))
    found = [c.adjusted for c in claims(as_series(rows), [0.0] * cases, STANDARD, seed=2)]
    alone = [any_look_p(word_p(row, 0.0), STANDARD.at) for row in rows]
    for adjusted, bound in zip(found, simes_closed(alone), strict=True):
        assert adjusted <= 1.2 * bound + 0.005


def test_a_clean_machine_has_its_words_at_the_first_look():
    for cases in (1, 3, 7, 10):
        rows = np.random.default_rng(cases).normal(0, 0.001, (cases, 8))
        found = claims(as_series(rows), [0.02] * cases, STANDARD, seed=1)
        assert all(claim.supported and claim.p == 2 / 256 for claim in found)


def test_a_case_with_too_few_blocks_is_no_member():
    rows = as_series(family_rows(3, 18, 4, shift=0.05))
    short = dict.fromkeys(range(1, 8), 0.05)
    together = claims([*rows, short, {}], [0.02] * 5, STANDARD, seed=1)
    assert together[:3] == claims(rows, [0.02] * 3, STANDARD, seed=1)
    assert together[3] == Claim(2 / 128, 1.0, False, STANDARD.confidence)
    assert together[4] == Claim(1.0, 1.0, False, STANDARD.confidence)


def test_missing_and_censored_blocks_are_lived_with():
    for cases in (3, 9):
        rows = as_series(family_rows(cases, 27, cases, shift=0.05))
        for block in (2, 9, 20):
            del rows[1][block]
        rows[2][5] = rows[2][6] = INF
        found = claims(rows, [0.02] * cases, STANDARD, seed=1)
        assert all(claim.supported for claim in found)
        assert all(word_of(row.values(), claim.level, 0.02) is Word.SLOWER
                   for row, claim in zip(rows, found, strict=True))  # fmt: skip
        never = [dict.fromkeys(one, INF) for one in rows]
        assert all(c.supported for c in claims(never, [0.02] * cases, STANDARD, seed=1))


def test_claims_that_cannot_be():
    with pytest.raises(ValueError, match="1 case and 2 margins"):
        claims([{1: 0.0}], [0.02, 0.02], STANDARD, seed=0)
    with pytest.raises(ValueError, match="NaN"):
        claims([{1: math.nan}], [0.02], STANDARD, seed=0)


# --- error rates, for the stop that is worst: wherever a look supports anything ------------------


ENOUGH = nominal_level(0.05, STANDARD.at)
"""The largest p of a case that the family, which only adds to it, may support."""

LATER, EARLIER = np.tril_indices(STANDARD.at[-1])  # pairs, those of the first blocks first
NEW = np.array([0, *(n * (n + 1) // 2 for n in STANDARD.at[:-1])])  # first pair of each look


def smallest_word_p(rows: np.ndarray, margin: float) -> np.ndarray:
    """Return the smallest `word_p` of the rows at each look."""
    sums, limit = rows[:, LATER] + rows[:, EARLIER], 2 * math.log1p(margin)

    def counted(which):
        return np.add.reduceat(which, NEW, axis=1, dtype=int).cumsum(axis=1)

    above, below = counted(sums <= limit), counted(sums >= -limit)
    within = np.maximum(counted(sums <= -limit), counted(sums >= limit))
    fewest = np.minimum(np.minimum(above, below), within).min(axis=0)
    pairs = zip(STANDARD.at, fewest, strict=True)
    return np.array([min(1.0, 2 * signed_rank_cdf(n)[w]) for n, w in pairs])


@pytest.mark.parametrize("margin", [0.0, 0.02])
def test_the_quick_p_of_simulations_is_that_of_a_word(margin):
    for seed in range(20):
        rows = family_rows(4, 60, seed, shift=DELTA * (seed % 3) / 2)
        slow = [min(word_p(row[:n], margin) for row in rows) for n in STANDARD.at]
        assert smallest_word_p(rows, margin) == pytest.approx(slow, rel=1e-12)


def claimed(rows: np.ndarray, n: int, margin: float) -> np.ndarray:
    """Return which cases are supported after `n` blocks."""
    found = claims(as_series(rows[:, :n]), [margin] * len(rows), STANDARD, seed=n)
    return np.array([claim.supported for claim in found])


def ever_claimed(rows: np.ndarray, margin: float) -> bool:
    smallest = zip(STANDARD.at, smallest_word_p(rows, margin), strict=True)
    return any(p <= ENOUGH * (1 + 1e-9) and claimed(rows, n, margin).any() for n, p in smallest)


def test_the_words_on_ten_cases_are_right_more_often_than_their_intervals():
    headline, any_case, any_interval = family(300)
    assert headline <= 0.006
    assert any_case <= 0.01 < any_interval


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "shared"), [(3, 0.0), (3, 0.9), (6, 0.0), (6, 0.9)])
def test_small_families_rarely_claim_anything_of_identical_arms(cases, shared, sample):
    studies = 2000 if cases == 3 else 1000
    tried = sample(range(studies))
    rows = (family_rows(cases, 60, seed, shared=shared) for seed in tried)
    wrong = sum(ever_claimed(one, 0.0) for one in rows)
    assert wrong / len(tried) <= at_most(0.06, len(tried), studies)


@pytest.mark.parametrize("cases", [3, 10])
def test_cases_exactly_at_the_margin_rarely_get_a_word(cases, sample):
    studies = 2000
    tried = sample(range(studies))
    rows = (family_rows(cases, 60, seed, shift=DELTA) for seed in tried)
    wrong = sum(ever_claimed(one, 0.02) for one in rows)
    assert wrong / len(tried) <= at_most(0.06, len(tried), studies)
