"""Launches of two modes: the report says of the cause what the state probe shows, and no more."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

import judgements
from paribus.core import Cause, Judgement, Launch, Notice, NoticeName, Settings
from paribus.stats.order import EXACT_UP_TO, rank_sum_p
from paribus.stats.probes import switching
from paribus.stats.states import (
    LEVEL,
    TwoStates,
    higher_sides,
    ratio_per_state,
    shares_differ,
    two_states,
    widest_gap,
)
from paribus.words.values import notice_text
from stored import Script, Twist, judged


def lognormal(draw: random.Random, sd: float, count: int) -> list[float]:
    return [draw.lognormvariate(0, sd) for _ in range(count)]


@pytest.mark.parametrize(("launches", "bound"), [(12, 0.02), (18, 0.01), (60, 0.005)])
def test_one_state_is_seldom_taken_for_two(launches: int, bound: float) -> None:
    draw = random.Random(7)
    reported = sum(two_states(lognormal(draw, 0.3, launches)) is not None for _ in range(3000))
    assert reported / 3000 <= bound


@pytest.mark.parametrize("apart", [1.5, 2.4])
def test_two_states_are_found_and_measured(apart: float) -> None:
    draw = random.Random(8)
    for _ in range(300):
        values = lognormal(draw, 0.03, 11) + [apart * v for v in lognormal(draw, 0.03, 7)]
        draw.shuffle(values)
        found = two_states(values)
        assert (found.higher, found.launches) == (7, 18)
        assert found.apart == pytest.approx(apart, rel=0.08)


def test_the_recorded_machine_with_two_states() -> None:
    """22 to 24 of 169 launches of 8 B over shared memory took 3.4 times as long."""
    path = Path(__file__).parent / "data" / "noise-launches.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["transport"] == "shm"]
    (column,) = [name for name in rows[0] if name.startswith("pp8") and "50" in name]
    found = two_states([float(row[column]) for row in rows])
    assert found.apart == pytest.approx(3.4, rel=0.1)
    assert 20 <= found.higher <= 26


def test_few_launches_small_gaps_and_equal_values_are_not_reported() -> None:
    assert two_states([1.0] * 5 + [3.0] * 6) is None
    assert two_states([1.0] * 10 + [1.05] * 10) is None
    assert two_states([2.0] * 20) is None
    assert two_states([1.0] * 18 + [9.0] * 2) is None


def test_exactly_repeated_values_in_both_states() -> None:
    found = two_states([1.0] * 10 + [3.0] * 10)
    assert math.isclose(found.apart, 3.0)


@pytest.mark.parametrize(
    "counts", [(7, 18, 7, 18), (0, 12, 9, 12), (3, 20, 11, 18), (18, 18, 1, 18), (5, 30, 6, 12)]
)
def test_fishers_test_is_scipys(counts: tuple[int, int, int, int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    a, n, b, m = counts
    expected = stats.fisher_exact([[a, n - a], [b, m - b]])[1]
    assert shares_differ(TwoStates(2, a, n), TwoStates(2, b, m)) == pytest.approx(expected)


def pairs(
    draw: random.Random, higher: Callable[[int], tuple[bool, bool]], ratio: tuple[float, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return two arms by block, states 2.4 apart, the arm `ratio` (lower, higher) times as slow."""
    reference, arm = {}, {}
    for block in range(40):
        mine, its = higher(block)
        reference[block] = draw.lognormvariate(0, 0.02) * (2.4 if mine else 1)
        arm[block] = draw.lognormvariate(0, 0.02) * (2.4 * ratio[1] if its else ratio[0])
    return reference, arm


def test_ratios_in_each_state() -> None:
    draw = random.Random(9)
    found = ratio_per_state(
        *pairs(draw, lambda b: (b >= 25, b >= 25 or b in (3, 8)), ratio=(1.05, 1.3))
    )
    assert found.lower == pytest.approx(1.05, abs=0.01)
    assert found.higher == pytest.approx(1.3, abs=0.02)
    assert (found.lower_blocks, found.higher_blocks, found.mixed) == (23, 15, 2)
    assert (found.reference.higher, found.arm.higher) == (15, 17)
    assert found.arm.share == pytest.approx(17 / 40)
    assert not found.shares_differ


def test_an_arm_that_is_always_in_one_state() -> None:
    draw = random.Random(10)
    found = ratio_per_state(*pairs(draw, lambda b: (b % 2 == 0, True), ratio=(1.0, 1.0)))
    assert (found.reference.higher, found.arm.higher, found.mixed) == (20, 40, 20)
    assert found.arm.apart == 1.0
    assert found.lower is None
    assert found.higher == pytest.approx(1.0, abs=0.02)
    assert found.shares_differ
    assert found.p < 1e-6


def test_no_states_no_ratios_in_them() -> None:
    draw = random.Random(11)
    assert ratio_per_state(*pairs(draw, lambda _: (False, False), ratio=(1.1, 1.0))) is None
    assert ratio_per_state({}, {}) is None
    with pytest.raises(ValueError, match="no state"):
        ratio_per_state({1: 0.0}, {1: 1.0})


@pytest.mark.parametrize("launches", [12, 20, 40])
def test_shares_of_arms_that_share_the_machine_seldom_differ(launches: int) -> None:
    """Sticky states, neighbours mostly in the same one: Fisher's test errs in less than 5 %."""
    draw = random.Random(12)
    reported = 0
    for _ in range(400):
        slow = draw.random() < 0.4
        arms: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for block in range(launches):
            for arm in arms:
                slow ^= draw.random() < 0.1
                arm[block] = draw.lognormvariate(0, 0.02) * (2.4 if slow else 1)
        found = ratio_per_state(*arms)
        reported += found is not None and found.shares_differ
    assert reported / 400 <= 0.05


def test_sides_agree_with_the_count() -> None:
    draw = random.Random(13)
    values = [draw.lognormvariate(0, 0.02) * (2.4 if i % 3 else 1) for i in range(30)]
    sides = higher_sides(values)
    assert sides == tuple(bool(i % 3) for i in range(30))
    assert two_states(values).higher == sum(sides)
    assert higher_sides(values[:11]) is None


def test_strays_may_lie_in_the_gap_only_where_they_are_allowed() -> None:
    logs = [0.012 * i for i in range(20)] + [0.6] + [1 + 0.012 * i for i in range(20)]
    assert widest_gap(logs, 3, 38) is None
    assert 0.23 < widest_gap(logs, 3, 38, between=1) < 1
    assert widest_gap(logs, 0, 38) is None
    assert widest_gap(logs, 3, 41) is None
    assert widest_gap(logs, 30, 29) is None


Arms = tuple[tuple[list[float], list[float]], ...]


@pytest.mark.parametrize("sizes", [(3, 9), (12, 20), (60, 60)])
def test_one_stratum_is_the_rank_sum_test(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    method = "exact" if math.prod(sizes) <= EXACT_UP_TO else "asymptotic"
    for shift in (0.0, 0.5, 2.0):
        one, other = rng.normal(shift, 1, sizes[0]), rng.normal(0, 1, sizes[1])
        theirs = mannwhitneyu(one, other, method=method).pvalue
        assert rank_sum_p([(one.tolist(), other.tolist())]) == pytest.approx(theirs, rel=1e-9)


def test_strata_add_up_as_all_their_orders_say() -> None:
    """Every order of two small strata, counted: the p of what was seen is that of the count."""
    sizes = ((2, 3), (2, 2))

    def counts(m: int, n: int) -> list[int]:
        of = itertools.combinations(range(m + n), m)
        return [sum(i > j for i in ours for j in {*range(m + n)} - {*ours}) for ours in of]

    sums = [a + b for a in counts(*sizes[0]) for b in counts(*sizes[1])]
    seen: Arms = (([9.0, 8.0], [1.0, 2.0, 3.0]), ([5.0, 1.0], [4.0, 0.0]))
    at_least = sum(total >= 9 for total in sums) / len(sums)
    assert rank_sum_p(seen) == pytest.approx(2 * at_least)


def test_ties_speak_for_nothing() -> None:
    assert rank_sum_p([([1.0] * 20, [1.0] * 20)]) == 1.0
    assert rank_sum_p([([1.0] * 60, [1.0] * 60)]) == 1.0


Launches = list[tuple[str, bool, dict[str, float]]]


def made(draw: random.Random, blocks: int, seen: float, walk: float) -> Launches:
    """Return launches whose modes are drawn anew, before a probe that `seen` moves with them.

    The probe wanders by `walk` from launch to launch, as a machine does.
    """
    found: Launches = []
    level = 0.0
    for arm in ("a", "b") * blocks:
        level += draw.gauss(0, walk)
        upper = draw.random() < 0.4
        figures = {
            f"before.{name}": math.exp(level + (seen if name == "x" else 0.0) * upper)
            * draw.random()
            for name in "xyz"
        }
        found.append((arm, upper, {**figures, "after.x": 2.0 if upper else 1.0}))
    return found


@pytest.mark.parametrize("walk", [0.0, 0.3])
@pytest.mark.parametrize("blocks", [12, 60])
def test_a_program_that_draws_its_mode_is_called_the_machine_in_5_of_100(
    blocks: int, walk: float
) -> None:
    """What is seen after a launch alone, which may be its own doing, is no sign of the machine."""
    draw = random.Random(f"{blocks} {walk}")
    studies = 400
    found = [switching(made(draw, blocks, 0.0, walk)) for _ in range(studies)]
    share = sum(one is not None and one.found for one in found) / studies
    assert share <= LEVEL + 3 * math.sqrt(LEVEL / studies)


def test_a_machine_that_switches_is_recognised() -> None:
    draw = random.Random(3)
    found = [switching(made(draw, 12, 3.0, 0.0)) for _ in range(100)]
    assert sum(one is not None and one.found and one.figure == "x" for one in found) >= 95
    assert switching([("a", True, {}), ("a", False, {"after.x": 1.0})]) is None


# --- in a report -------------------------------------------------------------------------------

FITFUL = (3, 4, 9, 10, 14, 20, 21, 26, 31, 33)
Seen = Callable[[Launch], dict[str, Any]]


def probe(launch: Launch, upper: float) -> dict[str, Any]:
    draw = random.Random(launch.number)
    times = upper if launch.block in FITFUL else 1.0
    return {
        "probe.before.core_to_core_ns": 60 * times * math.exp(draw.gauss(0, 0.02)),
        "probe.before.triad_gbps": 9 * math.exp(draw.gauss(0, 0.02)),
        "probe.after.core_to_core_ns": 60 * math.exp(draw.gauss(0, 0.02)),
    }


def bimodal(seen: Seen, labels: tuple[str, ...] = ("latency",)) -> Judgement:
    """Return a study whose launches are 1.3 times as slow in some blocks."""

    def twist(launch: Launch, attempt: int) -> Twist:
        return Twist(times=1.3 if launch.block in FITFUL else 1.0, facts=seen(launch))

    few = tuple(judgements.selection(label, parameters={"bytes": [8]}) for label in labels)
    settings = Settings(seed=20210, monitor=True)  # so that no look ends it
    asked = judgements.study((), benchmarks=few, settings=settings)
    script = Script({label: {} for label in labels}, twist, usual=0.02, samples=4)
    return judged(asked, script, name="x", most=36)


def modes_of(judgement: Judgement) -> Notice:
    (found,) = [n for n in judgement.notices if n.name is NoticeName.TWO_STATES]
    return found


SAID = {
    Cause.MACHINE: "The state probe switches with the launches (core_to_core_ns is 1.",
    Cause.PROGRAM_OR_UNSEEN: "so the cause is the program, or something that the probe does not",
    Cause.NO_PROBE: "No state probe was taken before these launches, so whether the machine or the",
}


@pytest.mark.parametrize(
    ("cause", "seen"),
    [
        (Cause.MACHINE, lambda launch: probe(launch, 1.4)),
        (Cause.PROGRAM_OR_UNSEEN, lambda launch: probe(launch, 1.0)),
        (Cause.NO_PROBE, lambda launch: {}),
    ],
)
def test_the_cause_is_what_the_probe_shows(cause: Cause, seen: Seen) -> None:
    notice = modes_of(bimodal(seen))
    reference = notice.figures["latency"]["host"]
    assert reference["cause"] is cause
    assert ("probe" in reference) == (cause is not Cause.NO_PROBE)
    for one, text in SAID.items():
        assert (text in notice_text(notice)) == (one is cause), notice_text(notice)
    assert ("the cause is the machine" in notice_text(notice)) == (cause is Cause.MACHINE)


def test_benchmarks_of_one_cause_share_a_notice_and_each_has_its_figure() -> None:
    labels = ("latency", "barrier")
    notice = modes_of(bimodal(lambda launch: probe(launch, 1.4), labels))
    assert notice.benchmarks == labels
    for label in labels:
        assert f"{label}: core_to_core_ns is 1." in notice_text(notice)


def test_a_verdict_of_an_older_version_says_nothing_of_the_cause() -> None:
    notice = modes_of(bimodal(lambda launch: probe(launch, 1.4)))
    arms = {arm: dict(figures) for arm, figures in notice.figures["latency"].items()}
    del arms["host"]["cause"], arms["host"]["probe"]
    assert SAID[Cause.NO_PROBE] in notice_text(replace(notice, figures={"latency": arms}))
