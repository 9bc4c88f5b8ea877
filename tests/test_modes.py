"""Launches of two modes: the report says of the cause what the state probe shows, and no more."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

import judgements
from paribus.core import Cause, Judgement, Launch, Notice, NoticeName, Settings
from paribus.stats.order import EXACT_UP_TO, rank_sum_p
from paribus.stats.probes import switching
from paribus.stats.states import LEVEL
from paribus.words.values import notice_text
from stored import Script, Twist, judged

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
