"""Verdicts on figures at an edge: of the margin, of a clock's steps, of what a number is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paribus as package
from judgements import FACTS, selection, study
from paribus.core import Case, Launch, Outcome, Sample, Settings, State, UserError, Word
from paribus.launch.execute import RETRY
from stored import Script, Twist, judged
from studies import paribus

LOAD = np.random.default_rng(7).lognormal(0, 0.2, 20)
"""How much slower the machine was in each block, of both arms alike."""


def columns(a: Any, b: Any, *, blocks: bool = True) -> dict[str, Any]:
    """Return a table of one figure of two arms."""
    n = len(a) + len(b)
    numbers = {"block": [*range(len(a)), *range(len(b))]} if blocks else {}
    named = {"arm": ["a"] * len(a) + ["b"] * len(b), "benchmark": ["s"] * n, "metric": ["t"] * n}
    return named | numbers | {"value": [*a, *b]}


def word(table: dict[str, Any], **answers: Any) -> tuple[str, str]:
    """Return the words of the headline, and of its only case."""
    answers = {"unit": "s", "better": "lower", "margin": 0.02, **answers}
    found = package.compare(table, **answers)
    (head,), (case,) = found["headlines"], found["cases"]
    return head["verdict"]["word"], case["verdict"]["word"]


@pytest.mark.parametrize("unit", [1.0, 3.0, 0.7, 1e-9, 7e11, math.pi])
@pytest.mark.parametrize("ratio", [1.02, 1 / 1.02])
def test_an_effect_exactly_at_the_margin_is_undecided_in_every_unit(
    unit: float, ratio: float
) -> None:
    """Rounding errors make no verdict: 102 s are no more than 2 % above 100 s."""
    reference = [unit * load for load in LOAD]
    arm = [value * ratio for value in reference]
    assert word(columns(reference, arm)) == ("undecided", "undecided")


@pytest.mark.parametrize("unit", [1.0, 3.0, 0.7, 1e-6])
def test_an_interval_of_launches_alone_that_touches_the_margin_is_undecided(unit: float) -> None:
    arm = [5100 * unit] * 5 + [5110 * unit] * 9
    found = word(columns([5000 * unit] * 14, arm, blocks=False))
    assert found == ("undecided", "undecided")


def test_a_table_that_is_repeated_is_no_more_launches() -> None:
    """As by a file given twice, or by a join; not where launches are always the same."""
    values = [round(value, 4) for value in (*LOAD[:8], *(1.1 * LOAD[:8]))]
    once = columns(values[:8], values[8:], blocks=False)
    word(once)
    twice = {name: column * 2 for name, column in once.items()}
    with pytest.raises(UserError, match="each row is there 2 times"):
        word(twice)
    word({**twice, "launch": [*range(16), *range(16, 32)]})
    coarse = {**twice, "value": [round(value, 1) for value in twice["value"]]}
    word(coarse)
    several = [f"s{number // 16}" for number in range(80)]
    same = {name: column * 5 for name, column in columns([1.2345] * 8, [1.3456] * 8).items()}
    del same["block"]
    found = package.compare({**same, "benchmark": several}, unit="s", better="lower")
    assert len(found["headlines"]) == 5


class WholeNumbers(Script):
    """Launches that all print 3, or fail: every third one of the arm."""

    def outcome(self, *asked: Any) -> tuple[Outcome, Twist]:
        outcome, twist = super().outcome(*asked)
        samples = tuple(Sample(one.metric, one.case, (3.0,)) for one in outcome.samples)
        return replace(outcome, samples=samples), twist


def killed(launch: Launch, attempt: int) -> Twist:
    if launch.arm != "bridged" or launch.block % 3 != 1:
        return Twist()
    return Twist(state=State.FAILED, error="killed", void="" if attempt else RETRY)


def test_figures_in_steps_hide_no_arm_that_fails() -> None:
    """A clock's steps withhold a verdict on the speed, and none on failures."""
    benchmark = replace(selection("barrier"), endpoints=("median",))
    asked = study((), benchmarks=(benchmark,), settings=Settings(seed=1, margin=0.02))
    found = judged(
        asked,
        WholeNumbers({"barrier": {}}, twist=killed),
        name="x",
        facts=FACTS,
        cases={"barrier": [Case()]},
    )
    (head,) = found.headlines
    assert head.verdict.word is Word.RELIABILITY


def test_a_pipeline_sees_an_arm_that_fails_and_prints_whole_seconds(tmp_path: Path) -> None:
    script = tmp_path / "b"
    script.write_text(
        "#!/bin/sh\nn=$(cat n) && echo $((n + 1)) > n && [ $((n % 3)) != 2 ] && echo 3.1\n"
    )
    script.chmod(0o755)
    (tmp_path / "n").write_text("0\n")
    words = ("--a", "echo 3.0", "--b", "./b", "--regex", "(.+)", "--unit", "us", "--brief")
    paribus("ab", *words, "--fail-on", "reliability", cwd=tmp_path, code=1)


@pytest.mark.parametrize("margin", [0.0, -0.02, 2, math.nan])
def test_a_margin_that_is_no_share_is_refused(margin: float) -> None:
    """2 is meant as 2 %: everything less than three times as slow would be equivalent."""
    with pytest.raises(UserError, match="outside 0 to 100 %"):
        word(columns([1.0] * 8, [1.1] * 8), margin=margin)


def test_a_direction_that_is_none_is_refused() -> None:
    """It would be taken for the other one."""
    with pytest.raises(UserError, match="no direction"):
        word(columns([1.0] * 8, [1.1] * 8), better="Lower")


def test_numbers_of_numpy_in_a_list_are_numbers() -> None:
    slower = [np.float64(2.5) * load for load in LOAD]
    assert word(columns(list(LOAD), slower)) == ("slower", "slower")


@pytest.mark.parametrize("value", [1e-200, 1e200, 5e-324])
def test_a_figure_beyond_all_measurements_is_refused(value: float) -> None:
    """Its ratio to another is beyond any number."""
    with pytest.raises(UserError, match=r"row 1, column value: .* beyond"):
        word(columns([value] * 8, [1.1] * 8))


def notices(values: Any) -> set[str]:
    """Return the names of the notices on two arms alike, of which `values` are the figures."""
    half = len(values) // 2
    table = columns(values[:half], values[half:])
    found = package.compare(table, unit="s", better="lower", margin=0.02)
    return {notice["name"] for notice in found["notices"]}


@pytest.mark.parametrize("seconds", [4.4, 7.4, 10.4])
@pytest.mark.parametrize("launches", [30, 120])
def test_whole_seconds_are_no_states_and_no_outliers(seconds: float, launches: int) -> None:
    """Nothing lies between 10 s and 11 s because nothing there can be printed."""
    for seed in range(20):
        rng = np.random.default_rng([seed, launches])
        values = np.round(seconds * rng.lognormal(0, 0.1, launches))
        assert not notices(values) & {"two states", "outlying launches"}


def test_states_and_outliers_of_figures_in_steps_are_named() -> None:
    rng = np.random.default_rng(3)
    states = np.round(10 * rng.lognormal(0, 0.05, 60) * rng.choice([1, 2], 60))
    assert "two states" in notices(states)
    once = np.round(10 * rng.lognormal(0, 0.05, 60))
    once[7] = 1000
    assert "outlying launches" in notices(once)


def sentence(*ratios: float) -> str:
    """Return the first sentence on cases of which the arm takes `ratios` times as long."""
    rng = np.random.default_rng(1)
    rows = [
        (arm, block, f"n={n}", ratio**power * rng.lognormal(0, 0.005))
        for block in range(16)
        for power, arm in enumerate("ab")
        for n, ratio in enumerate(ratios)
    ]
    names = dict(zip(("arm", "block", "case", "value"), zip(*rows, strict=True), strict=True))
    table = names | {"benchmark": ["s"] * len(rows), "metric": ["t"] * len(rows)}
    return str(package.compare(table, unit="s", better="lower", margin=0.02)["sentence"])


def test_the_sentence_names_cases_whose_effects_their_mean_hides() -> None:
    assert (
        sentence(1.3, 1 / 1.3) == "b is equivalent in s (1 of 2 cases faster, 1 of 2 cases slower)."
    )
    assert sentence(1.0, 1.0, 1.0, 1 / 1.06).startswith(
        "b is equivalent in s (1 of 4 cases faster)"
    )
    assert sentence(1.3, 1.3, 1 / 1.1).endswith("x, 1 of 3 cases faster).")
    assert sentence(1.3, 1.3, 1.0).endswith("x).")
