"""Studies of few launches: their order, statistic and looks, and how they are run.

The distribution against enumeration, and the error rates, are checks 26 to 29 of the validation.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import judgements
from calibrate_few import CAPS
from paribus.core import Completed, Settings, State, StudyError, Word
from paribus.designs import design_of
from paribus.designs.auto import EXPENSIVE_S, as_few
from paribus.designs.few import verdict, weigh
from paribus.launch.pilot import Pilot, durations
from paribus.paper.methods import methods
from paribus.plan import frozen as plans
from paribus.stats import few
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.schedule import rounds
from paribus.stats.verdict import blocks_needed
from paribus.studyfile.load import load_study
from paribus.words.values import reason_of
from stations import Answer, prints
from studies import write_study
from test_execute import ARMS, executed

RNG = np.random.default_rng(22)
HOUR_S = 3600.0

# --- order ---------------------------------------------------------------------------------------


def start(seed: int, arms: tuple[str, ...] = ("a", "b")) -> list[tuple[int, str]]:
    """Return block and arm of the shuffled launches of a study."""
    places = list(rounds(arms, ("x",), 7, seed, start=few.START))
    assert [block for block, *_ in places[:2]] == [0, 0]
    assert {block for block, *_ in places[14:]} == {7}
    return [(block, arm) for block, _, arm, _ in places[2:14]]


def test_the_start_has_each_arm_in_each_of_its_blocks_once() -> None:
    for seed in range(20):
        assert sorted(start(seed)) == [(n, arm) for n in range(1, 7) for arm in "ab"]


def test_every_order_of_the_start_is_as_likely_as_any_other() -> None:
    counts = Counter("".join(arm for _, arm in start(seed)) for seed in range(9240))
    assert len(counts) == 924
    apart = sum((count - 10) ** 2 / 10 for count in counts.values())
    assert apart < 923 + 4 * math.sqrt(2 * 923)  # chi-squared, four standard deviations


def test_blocks_match_the_launches_of_the_start_at_random() -> None:
    """So that every block is a pair by itself, in the order of a fair coin."""
    partners: Counter[tuple[int, int]] = Counter()
    for seed in range(2500):
        order = start(seed)
        for block in range(1, few.START + 1):
            one, other = (place for place, (n, _) in enumerate(order) if n == block)
            partners[one, other] += 1
    expected = 2500 * few.START / 66
    assert len(partners) == 66
    apart = sum((count - expected) ** 2 / expected for count in partners.values())
    assert apart < 65 + 4 * math.sqrt(2 * 65)


def test_other_designs_keep_their_order() -> None:
    standard = judgements.study(("barrier",), settings=Settings(seed=3, blocks=8))
    auto = replace(standard, settings=replace(standard.settings, design="auto"))
    duet = replace(standard.settings, design="few", layout="duet")
    assert plans.plan(standard) == plans.plan(auto) == plans.plan(replace(standard, settings=duet))
    few_launches = replace(standard, settings=replace(standard.settings, design="few"))
    assert plans.plan(few_launches) != plans.plan(standard)


# --- statistic and interval ----------------------------------------------------------------------


def test_the_start_alone_reaches_from_the_nearest_to_the_farthest_launches() -> None:
    reference = RNG.normal(0, 1, 6)
    arm = reference[::-1] + RNG.normal(3, 0.1, 6)  # scatters alike
    found = few.weigh(reference, arm, 6, 60)
    differences = sorted(b - a for a, b in itertools.product(reference, arm))
    assert found.away == pytest.approx((differences[1], differences[-2]))
    _, [ends] = few.intervals(reference, arm, 6, (1 / 924,))
    assert ends == pytest.approx((min(arm) - max(reference), max(arm) - min(reference)))
    assert found.estimate == pytest.approx(np.median(differences))


def test_pairs_alone_give_the_signed_rank_interval() -> None:
    ratios = RNG.normal(0.1, 1, 20)
    estimate, [(low, high)] = few.intervals(np.zeros(20), ratios, 0, (0.01,))
    assert (estimate, low, high) == pytest.approx([float(x) for x in hodges_lehmann(ratios, 0.02)])


def test_the_interval_follows_the_arms() -> None:
    reference, arm = RNG.normal(0, 0.02, 14), RNG.normal(0.03, 0.02, 14)
    one, other = few.weigh(reference, arm, 6, 60), few.weigh(arm, reference, 6, 60)
    assert one.ends == pytest.approx((-other.ends[1], -other.ends[0]))
    moved = few.weigh(reference, arm + 0.5, 6, 60)
    assert moved.away[0] == pytest.approx(one.away[0] + 0.5)
    assert moved.estimate == pytest.approx(one.estimate + 0.5)


def test_ends_are_further_out_away_from_1_than_towards_it() -> None:
    for n in few.LOOKS:
        away, towards = few.levels(n, 60, few.START)
        assert away < towards <= 0.035
        assert few.levels(n, 60, few.START) < few.levels(n, 12, few.START)
    drawn = np.random.default_rng(0)  # of its own: ends of other samples may coincide
    found = few.weigh(drawn.normal(0, 0.02, 20), drawn.normal(0.05, 0.02, 20), 6, 60)
    assert found.ends[0] == max(found.away[0], 0.0) <= found.towards[0]
    assert found.ends[1] == found.towards[1] < found.away[1]


def test_a_start_of_four_blocks_can_report_nothing_by_itself() -> None:
    """Of 70 orders two are 2.9 %: more than any level."""
    reference = np.linspace(0, 0.001, 7)
    arm = 1 + reference[::-1]
    assert few.weigh(reference[:4], arm[:4], 4, 60).ends == (-math.inf, math.inf)
    assert few.weigh(reference, arm, 4, 60).ends[0] > 0.9


def test_a_launch_that_was_cut_off_is_slower_than_all() -> None:
    reference, arm = RNG.normal(0, 0.01, 12), RNG.normal(0.5, 0.01, 12)
    arm[2] = math.inf
    _, [(low, high)] = few.intervals(reference, arm, 6, (1 / 924,))
    assert 0.4 < low < high == math.inf or 0.4 < low < high < 0.6
    reference[2] = math.inf  # of two nothing is known, and the others are faster than this one
    _, [(lower, _)] = few.intervals(reference, arm, 6, (1 / 924,))
    assert lower <= low


@pytest.mark.parametrize(
    ("blocks", "looks"),
    [(6, (6,)), (9, (6, 7, 8, 9)), (12, (6, 7, 8, 10, 12)), (60, few.LOOKS)],
)
def test_looks_end_at_the_last_block(blocks: int, looks: tuple[int, ...]) -> None:
    assert few.schedule(blocks).at == looks
    pairs = few.schedule(max(8, blocks), start=0).at
    assert pairs[0] == 8
    assert few.schedule(blocks).few


@pytest.mark.parametrize("blocks", [5, 61])
def test_no_other_lengths(blocks: int) -> None:
    with pytest.raises(ValueError, match=f"{blocks} blocks"):
        few.schedule(blocks)


def test_the_levels_are_those_of_every_length() -> None:
    for most in range(6, 61):
        cap = next(cap for cap in CAPS if cap >= most)
        assert few.levels(6, most, few.START) == few.levels(6, cap, few.START)


# --- verdicts ------------------------------------------------------------------------------------


def judged(looks: list[few.Weighed], *, last: bool = False) -> tuple[Word, bool, float, float]:
    found, comparison = verdict(
        looks, better="lower", margin=0.02, last=last, needed=None, size_known=True
    )
    return found.word, found.final, math.log(comparison.low), math.log(comparison.high)


def weighed(blocks: int, low: float, high: float) -> few.Weighed:
    ends = (low, high)
    return few.Weighed(blocks, (low + high) / 2, ends, ends, 0.99)


def test_before_eight_blocks_only_a_large_effect_ends_a_study() -> None:
    assert judged([weighed(6, 0.20, 0.30)])[:2] == (Word.SLOWER, True)
    assert judged([weighed(6, -0.30, -0.20)])[:2] == (Word.FASTER, True)
    # Beyond the margin by far, and not known to half of it: extended to 1.
    assert judged([weighed(6, 0.03, 0.30)]) == (Word.UNDECIDED, False, 0.0, pytest.approx(0.30))
    assert judged([weighed(7, -0.001, 0.001)])[:2] == (Word.UNDECIDED, False)
    assert judged([weighed(8, -0.001, 0.001)])[:2] == (Word.EQUIVALENT, True)


def test_the_last_look_asks_for_no_precision() -> None:
    assert judged([weighed(6, 0.03, 0.30)], last=True)[:2] == (Word.SLOWER, True)
    assert judged([weighed(6, -0.01, 0.01)], last=True)[:2] == (Word.EQUIVALENT, True)


def test_each_end_may_have_been_settled_at_another_look() -> None:
    first, second = weighed(8, -0.010, 0.030), weighed(10, -0.030, 0.012)
    assert judged([first])[:2] == judged([second])[:2] == (Word.UNDECIDED, False)
    found = judged([first, second])
    assert found == (Word.EQUIVALENT, True, pytest.approx(-0.010), pytest.approx(0.012))
    # Not from before 8, and not where the two contradict each other.
    assert judged([weighed(7, -0.010, 0.030), second])[0] is Word.UNDECIDED
    assert judged([weighed(8, 0.013, 0.060), second])[0] is Word.UNDECIDED


def test_arms_that_scatter_differently_count_by_the_signs_of_pairs() -> None:
    reference = np.linspace(0, 0.001, 12)
    arm = 0.5 + np.array([3, -3, 1, 0, 2, -2, 1, 3, 0, -1, 2, -1]) / 100
    early = few.weigh(reference[:6], arm[:6], 6, 60)
    assert early.uneven > 10
    assert early.ends == (-math.inf, math.inf)
    later = few.weigh(reference, arm, 6, 60)
    ordered = sorted(arm - reference)
    assert later.away == later.towards == (ordered[0], ordered[-1])
    assert later.estimate == pytest.approx(np.median(ordered))
    assert few.weigh(reference, arm, 0, 60).uneven  # duets and sessions too
    found, _ = verdict(
        [early], better="lower", margin=0.02, last=False, needed=None, size_known=True
    )
    assert "the launches of one arm scatter" in reason_of(found)
    assert "only the signs of pairs count, from block 8 on" in reason_of(found)


def test_signs_err_as_often_as_coins_say() -> None:
    """All looks together, whatever the log ratios are: a walk of fair coins, counted exactly."""
    for most in CAPS:
        for start in (0, few.START):
            at = [n for n in few.schedule(most, start).at if n >= few.LARGE_UNTIL]
            walks, crossed, n = {0: 1.0}, 0.0, 0
            for look in at:
                level, _ = few.levels(look, most, start)
                level = max(level, 2.0**-look) if look == few.LARGE_UNTIL else level
                k = few.critical_sign(look, level)
                for _ in range(look - n):
                    walks = {
                        heads: (walks.get(heads, 0.0) + walks.get(heads - 1, 0.0)) / 2
                        for heads in range(max(walks) + 2)
                    }
                crossed += sum(chance for heads, chance in walks.items() if heads <= k)
                walks = {heads: chance for heads, chance in walks.items() if heads > k}
                n = look
            assert 0.004 < crossed <= 0.015


@pytest.mark.parametrize("n", range(1, 13))
def test_the_critical_sign_is_that_of_all_orders(n: int) -> None:
    heads = np.array([sum(coins) for coins in itertools.product((0, 1), repeat=n)])
    for error in (0.0005, 2.0**-n, 0.01, 0.2):
        k = few.critical_sign(n, error)
        assert (heads <= k).mean() <= error < (heads <= k + 1).mean()


def test_signs_take_half_as_many_blocks_again() -> None:
    ratios = RNG.normal(0, 0.03, 30).tolist()
    ranks, signs = (blocks_needed(ratios, 0.02, signs=which) for which in (False, True))
    assert ranks is not None
    assert signs is not None
    assert (signs - 4) / (ranks - 4) == pytest.approx(1.5, rel=0.05)


def test_signs_of_launches_that_were_cut_off() -> None:
    reference, arm = np.zeros(10), np.linspace(0.1, 0.2, 10)
    arm[4] = math.inf
    estimate, (low, high) = few.by_signs(reference, arm, 0.012)
    assert (low, high) == (pytest.approx(arm[1]), arm[9])
    assert estimate == pytest.approx((arm[5] + arm[6]) / 2)
    reference[:2] = arm[:2] = math.inf  # of two nothing is known
    _, (low, high) = few.by_signs(reference, arm, 0.012)
    assert (low, high) == (-math.inf, math.inf)


# --- the study -----------------------------------------------------------------------------------


def answers(middle: float, wall_s: float = HOUR_S) -> list[Answer]:
    """Return launches within half a percent of `middle`, those of two arms alike in scatter."""
    around = (middle * math.exp(0.005 * math.sin(2.4 * i + middle)) for i in range(130))
    return [prints(f"{value:.6f}", wall_s) for value in around]


def test_a_study_of_long_launches_reports_after_six_of_each(tmp_path: Path) -> None:
    stored, judgement = executed(tmp_path, a=answers(2.0), b=answers(2.6), blocks=60)
    assert len(stored) == 14
    (head,) = judgement.headlines
    assert head.verdict.word is Word.SLOWER
    assert head.comparison.blocks == 6
    assert head.comparison.low > 1.25
    assert judgement.looks == few.LOOKS
    assert judgement.study.settings.design == "few"
    (case,) = judgement.cases
    assert (case.verdict.word, case.comparison) == (Word.SLOWER, head.comparison)
    assert "one random order" in judgement.design


def test_one_arm_alone_with_two_states_counts_by_signs(tmp_path: Path) -> None:
    """Four in ten launches of b are slower by a third: the median pair is one of the others."""
    good = answers(2.0)
    slow = [prints(f"{2.6 + i / 500:.6f}", HOUR_S) for i in range(130)]
    b = [slow[i] if i % 5 in (2, 4) else good[i + 3] for i in range(120)]
    _, judgement = executed(tmp_path, a=good, b=b, blocks=60)
    (head,) = judgement.headlines
    assert head.comparison.low < 1.005 < head.comparison.high < 1.4
    assert head.verdict.figures["uneven"] > 10
    (case,) = judgement.cases
    assert case.comparison == head.comparison
    assert "steady scattered differently: there the ratio is the median" in methods(judgement)


@pytest.mark.parametrize(("wall_s", "best"), [(HOUR_S, "14 h"), (60.0, "18 min")])
def test_the_pilot_knows_the_design_that_follows(tmp_path: Path, wall_s: float, best: str) -> None:
    """A warm-up and six launches of each arm, or a warm-up and eight."""
    frozen = plans.freeze(load_study(write_study(tmp_path, arms=ARMS)), {})
    seen = Pilot({("steady", arm): wall_s for arm in "ab"}, {}, {}, None)
    (line,) = durations(frozen, seen)
    assert f"takes {best}" in line


@pytest.mark.parametrize("wall_s", [EXPENSIVE_S - 1, EXPENSIVE_S + 1])
def test_the_warm_up_chooses_the_design(tmp_path: Path, wall_s: float) -> None:
    warm = [prints("2.00017", wall_s)]
    stored, judgement = executed(
        tmp_path, a=[*warm, *answers(2.0, 1.0)], b=answers(2.6, 1.0), blocks=60
    )
    expensive = wall_s > EXPENSIVE_S
    assert judgement.study.settings.design == ("few" if expensive else "auto")
    assert len(stored) == (14 if expensive else 18)
    in_pairs = [one.launch.block for one in stored[2:12]]
    assert (in_pairs == sorted(in_pairs)) != expensive


def test_a_launch_of_the_start_that_fails_is_rerun_in_its_place(tmp_path: Path) -> None:
    good, dies = answers(2.6), prints("", HOUR_S, exit_code=1)
    stored, judgement = executed(
        tmp_path, a=answers(2.0), b=[*good[:3], dies, *good[3:]], blocks=60
    )
    (voided,) = (one for one in stored if one.void)
    again = stored[stored.index(voided) + 1]
    assert again.launch == voided.launch
    assert again.outcome.state is State.OK
    counted = [one.launch for one in stored if not one.void]
    assert [one.number for one in counted] == list(range(1, len(counted) + 1))
    # One failure in six blocks is too many for a word on speed; one in ten is not.
    assert max(one.block for one in counted) == 10
    assert judgement.headlines[0].verdict.word is Word.SLOWER


def test_an_interrupted_start_goes_on_where_it_was(tmp_path: Path) -> None:
    """Of launches that take an hour none is repeated."""

    def stops(out: Path, err: Path) -> Completed:
        raise KeyboardInterrupt

    good = answers(2.6)
    with pytest.raises(KeyboardInterrupt):
        executed(tmp_path, a=answers(2.0), b=[*good[:3], stops], blocks=60)
    stored, judgement = executed(tmp_path, a=answers(2.0)[2:], b=good[3:], blocks=60)
    assert [one.launch.number for one in stored] == list(range(1, 15))
    assert not any(one.void for one in stored)
    assert judgement.headlines[0].verdict.word is Word.SLOWER


def test_a_launch_of_the_start_that_is_lost_delays_the_verdict(tmp_path: Path) -> None:
    good, dies = answers(2.6), prints("", HOUR_S, exit_code=1)
    _, judgement = executed(
        tmp_path, a=answers(2.0), b=[*good[:3], dies, dies, *good[3:]], blocks=60
    )
    (head,) = judgement.headlines
    assert head.verdict.word is Word.SLOWER
    assert head.comparison.blocks == 6


def test_a_study_that_ends_after_six_blocks_says_what_it_may(tmp_path: Path) -> None:
    _, judgement = executed(
        tmp_path, a=answers(2.0), b=answers(2.003), blocks=6, plan_keys='design = "few"'
    )
    (head,) = judgement.headlines
    assert head.verdict.word is Word.EQUIVALENT
    assert judgement.complete


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("confidence = 0.90", "confidence of 0.95"),
        ("blocks = 61", "60 blocks"),
        ("blocks = 5", "6 to 1000"),
        ('decides = "cases"', "one size by its headline"),
    ],
)
def test_what_few_launches_cannot_be(tmp_path: Path, more: str, said: str) -> None:
    study = write_study(tmp_path, plan=f'design = "few"\n{more}')
    with pytest.raises(StudyError, match=said):
        load_study(study)


@pytest.mark.parametrize(
    "more", ['layout = "duet"', 'unit = "session"', 'decides = "cases"', "blocks = 90"]
)
def test_where_the_warm_up_has_nothing_to_choose(tmp_path: Path, more: str) -> None:
    assert load_study(write_study(tmp_path, plan=more)).settings.design == "standard"


@pytest.mark.parametrize(("more", "first"), [('layout = "duet"', 8), ('unit = "session"', 12)])
def test_duets_and_sessions_have_the_looks_of_pairs(tmp_path: Path, more: str, first: int) -> None:
    study = load_study(write_study(tmp_path, plan=f'design = "few"\n{more}\nblocks = 20'))
    assert design_of(study).looks().at[0] == first
    assert design_of(study).shuffled == 0


def test_a_study_of_an_older_version_goes_on_as_it_was(tmp_path: Path) -> None:
    """Its plan has no design, and launches that take an hour choose none later."""

    def stops(out: Path, err: Path) -> Completed:
        raise KeyboardInterrupt

    settings = "blocks = 60\ndesign = "
    study = load_study(write_study(tmp_path, arms=ARMS, plan=f'{settings}"standard"'))
    out = tmp_path / "out"
    out.mkdir()
    plans.write_plan(plans.freeze(study, plans.software()), out)
    path = out / "plan.json"
    table = json.loads(path.read_text())
    del table["study"]["settings"]["design"], table["sha256"]
    path.write_text(json.dumps({"sha256": plans._digest(table), **table}))
    frozen = plans.read_plan(out)
    today = load_study(write_study(tmp_path, arms=ARMS, plan="blocks = 60"))
    assert (frozen.study.settings.design, today.settings.design) == ("standard", "auto")
    plans.check_same(frozen, today, plans.software())
    good = answers(2.6)
    with pytest.raises(KeyboardInterrupt):
        executed(tmp_path, a=answers(2.0), b=[*good[:4], stops], blocks=60)
    stored, judgement = executed(tmp_path, a=answers(2.0)[4:], b=good[4:], blocks=60)
    assert judgement.looks == (8, 12, 18, 27, 40, 60)
    assert [one.launch.number for one in stored if not one.void] == list(range(1, 19))
    assert judgement.headlines[0].verdict.word is Word.SLOWER


def test_a_start_of_another_length_is_judged_by_pairs() -> None:
    """Of a plan whose looks begin after five blocks: the launches of five were shuffled."""
    asked = judgements.study(("barrier",), settings=Settings(seed=3, design="few", blocks=12))
    today = plans.freeze(asked, {})
    earlier = replace(today, looks=replace(today.looks, at=(5, *today.looks.at)))
    assert [block for block in range(14) if earlier.shuffled(block)] == [1, 2, 3, 4, 5]
    ours, theirs = ({n: side * 0.3 + n / 1000 for n in range(1, 9)} for side in (0, 1))
    blocks = list(ours)
    pairs = few.weigh([*ours.values()], [*theirs.values()], 0, 12)
    assert weigh(earlier, (ours, theirs), blocks) == pairs
    assert weigh(today, (ours, theirs), blocks) != pairs


def test_the_chosen_plan_begins_as_the_frozen_one_did() -> None:
    asked = judgements.study(("barrier", "latency"), settings=Settings(seed=3, design="auto"))
    frozen = plans.freeze(asked, {})
    followed = as_few(frozen)
    assert followed.launches[:4] == frozen.launches[:4]
    assert followed.sha256 == frozen.sha256
    assert Counter((one.benchmark, one.arm) for one in followed.launches) == Counter(
        (one.benchmark, one.arm) for one in frozen.launches
    )
