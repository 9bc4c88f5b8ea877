"""One figure for a launch: quantiles from the good end, and what counts as interference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgements
from paribus.core import Endpoint, Judgement, Launch, Outcome, Settings, State, Word
from paribus.judge.evidence import Evidence, last_block_over
from paribus.plan import frozen as plans
from paribus.report import html, sentences
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import schedule
from paribus.stats.summary import endpoint, interrupted, launch_median
from stored import Script, Twist, judged
from validation.noise import NOISE
from validation.studies import pair_up

STUDIES = 4000


@pytest.mark.parametrize("noise", ["N1", "N2", "Drift", "Sticky"])
def test_missing_blocks_leave_the_error_of_all_looks_as_it_was(noise: str) -> None:
    """Identical arms differ at some look in at most 5 % (and two standard errors) of studies."""
    rng = np.random.default_rng([71, list(NOISE).index(noise)])
    ratios = pair_up(rng, NOISE[noise](rng, STUDIES, 120))
    looks = schedule(60)
    early = False
    for n in looks.at[:-1]:
        _, low, high = hodges_lehmann(ratios[:, :n], looks.level)
        early = early | (low > 0) | (high < 0)
    for missing in range(4):
        _, low, high = hodges_lehmann(ratios[:, : 60 - missing], looks.level)
        assert (early | (low > 0) | (high < 0)).mean() <= 0.057


def undecided(fails: tuple[int, ...], most: int | None = None) -> Judgement:
    """Return a study too noisy for a word, in which the launch of one arm failed in some blocks."""

    def twist(launch: Launch, attempt: int) -> Twist:
        bad = launch.arm == "bridged" and launch.block in fails
        return Twist(state=State.FAILED, error="lost") if bad else Twist()

    script = Script({"barrier": {"bridged": 1.03}}, twist=twist, scatter={"barrier": 0.1})
    asked = judgements.study(("barrier",), settings=Settings(seed=3))
    return judged(asked, script, name="noisy", most=most)


@pytest.mark.parametrize("fails", [(), (33,), (60,), (5, 33, 60)])
def test_the_last_look_is_made_on_the_blocks_that_are_complete(fails: tuple[int, ...]) -> None:
    judgement = undecided(fails)
    (head,) = judgement.headlines
    assert judgement.complete
    assert head.verdict.word is Word.UNDECIDED
    assert head.comparison.blocks == 60 - len(fails)
    said = sentences.rests_on(judgement, head)
    assert said == (f"{60 - len(fails)} of 60 blocks" if fails else "")
    assert not fails or f"; on {said}</small>" in html.page(judgement, "")
    assert ("Blocks with a failed launch" in sentences.ratio_note(judgement)) == bool(fails)


def test_an_unfinished_study_waits_for_its_look() -> None:
    (head,) = undecided((33,), 59).headlines
    assert not head.verdict.final
    assert head.verdict.figures["next"] == 60


def test_the_last_block_is_over_when_every_arm_of_it_was_launched() -> None:
    plan = plans.freeze(judgements.study(("barrier",)), {})
    evidence = Evidence(plan.metrics)
    for launch in (one for block in plan.blocks() for one in block if one.block == 60):
        assert not last_block_over(plan, evidence, "barrier")
        evidence.add(launch, Outcome(State.FAILED, 0.0, 1.0, 1, (), (), {}, "lost"))
    assert last_block_over(plan, evidence, "barrier")


SAMPLES = st.lists(st.floats(1e-3, 1e6), min_size=100, max_size=300).map(sorted)


@given(SAMPLES)
def test_endpoints_are_numpys_quantiles_from_the_good_end(values):
    shares: dict[Endpoint, float] = {"median": 0.5, "p99": 0.99, "p25": 0.25, "min": 0.0}
    for which, share in shares.items():
        low, high = np.quantile(values, [share, 1 - share])
        assert endpoint(values, which, "lower") == pytest.approx(low, rel=1e-9)
        assert endpoint(values, which, "higher") == pytest.approx(high, rel=1e-9)


@given(SAMPLES)
def test_endpoints_stay_in_order_and_follow_the_median(values):
    ends = [endpoint(values, which, "lower") for which in ("min", "p25", "median", "p99")]
    assert ends == sorted(ends)
    assert endpoint(values, "median", "lower") == pytest.approx(launch_median(values), rel=1e-12)
    assert endpoint(values, "min", "lower") == min(values)
    assert endpoint(values, "min", "higher") == max(values)


def test_the_tail_of_a_rate_is_its_slow_end():
    rates = [10.0] * 3 + [100.0] * 97
    assert endpoint(rates, "p99", "higher") == 10.0
    assert endpoint(rates, "p99", "lower") == 100.0


def test_endpoints_that_samples_are_too_few_for():
    assert endpoint([3.0], "median", "lower") == endpoint([3.0], "min", "higher") == 3.0
    with pytest.raises(ValueError, match="p99 of 99 samples; it takes 100"):
        endpoint([1.0] * 99, "p99", "lower")
    with pytest.raises(ValueError, match="p25 of 3 samples; it takes 4"):
        endpoint([1.0] * 3, "p25", "lower")
    with pytest.raises(ValueError, match="median of 0 samples; it takes 1"):
        endpoint([], "median", "lower")


def test_interference_is_counted_on_the_bad_side():
    times = [0.1] * 2 + [1.0] * 190 + [6.0] * 8
    assert interrupted(times) == 8
    assert interrupted(times, "higher") == 2
    assert interrupted([1.0, 1.0, 5.0]) == 0
    assert interrupted([0.2, 1.0, 1.0], "higher") == 0
