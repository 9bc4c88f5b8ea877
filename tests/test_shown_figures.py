"""What reports show is what was computed: digits, directions, and what every surface says of it.

Figures are computed anew here, by the words of docs/statistics.md and docs/report.md.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import judgements
import paribus
from paribus.core import (
    Arm,
    Comparison,
    Judgement,
    Launch,
    NoticeName,
    Settings,
    State,
    Word,
    format_factor,
    format_interval,
    format_value,
)
from paribus.lenses.calibration import LENS as CALIBRATION
from paribus.lenses.calibration import Calibration, Different
from paribus.lenses.cost.lens import costs
from paribus.lenses.profiles.prediction import Weighed
from paribus.lenses.published.beside import beside
from paribus.lenses.published.lens import here
from paribus.lenses.published.reading import load_publication
from paribus.paper.notebook import document
from paribus.paper.paper import details
from paribus.probes.energy import JOULES
from paribus.report import export, wording
from paribus.report.html import page
from paribus.stats.verdict import judge
from paribus.web.found import Found
from paribus.web.metrics import open_metrics
from paribus.web.overview import text_of
from paribus.web.summaries import summary
from paribus.words.values import notice_text, reason_of
from stored import Script, Twist, judged

intervals = st.tuples(*[st.floats(-14.0, 14.0)] * 3).map(sorted)
near = st.tuples(*[st.floats(-0.002, 0.002)] * 3).map(sorted)


def numbers(text: str) -> list[float]:
    return [float(one.replace(",", "")) for one in re.findall(r"[-+]?\d[\d,]*\.?\d*", text)]


# --- digits ----------------------------------------------------------------------------------


@given(intervals | near)
@example([0.00028, 0.0003, 0.00031])
@example([-0.00031, -0.0003, -0.00028])
def test_an_interval_that_excludes_1_is_printed_so(logs: list[float]) -> None:
    low, ratio, high = map(math.exp, logs)
    if abs(low - 1) < 1e-8 or abs(high - 1) < 1e-8 or low < 1e-4:
        return
    shown = wording.estimate(Comparison(12, ratio, low, high, 0.987))
    middle, least, most = numbers(shown)
    if max(low, 1 / high) < 10:  # of a ratio of 480, nobody asks for the third decimal of an end
        assert (least > 1) == (low > 1) or ratio >= 10, shown
        assert (most < 1) == (high < 1), shown
    assert least <= middle <= most


def test_a_difference_of_equal_arms_is_printed_as_one() -> None:
    found = Different("latency", "", 1.0004, 1.0002, 1.0006, ())
    rows = Calibration((8,), (1.0,), 18, 1, (found,), ())
    [said] = CALIBRATION.failing(judgements.two_arms(), rows, "difference")
    assert "1.0004 times itself [1.0002, 1.0006]" in said


@given(st.floats(1e-8, 12.0), st.booleans())
@example(0.0003, True)
def test_a_factor_is_never_that_of_no_difference(log: float, slower: bool) -> None:
    assert numbers(format_factor(math.exp(log if slower else -log)))[0] > 1


@given(intervals | near, st.booleans())
@example([math.log(145.0), math.log(148.0), math.log(151.0)], False)
@example([math.log(1.952), math.log(1.981), math.log(2.007)], False)
def test_both_ends_of_a_span_have_one_form(logs: list[float], rate: bool) -> None:
    low, ratio, high = map(math.exp, logs)
    found = Comparison(12, ratio, low, high, 0.987)
    verdict = judge(found, better="higher" if rate else "lower", margin=1e-5, last=True)
    said = reason_of(verdict).partition(";")[0].partition(":")[0]
    assert not re.search(r"\dx?\.x|\d\.x|e[+-]\d", said), said
    if verdict.word in (Word.SLOWER, Word.FASTER):
        assert ("%" in said) != bool(re.search(r"\dx", said)), said


@given(intervals)
@example([math.log(2.57), math.log(2.59), math.log(2.62)])
def test_a_change_and_its_interval_have_one_form(logs: list[float]) -> None:
    low, ratio, high = map(math.exp, logs)
    said = format_interval(ratio, low, high)
    of_factors = said.count("x")
    assert of_factors in (0, 3), said
    if not of_factors:
        middle, least, most = numbers(said)
        assert least <= middle <= most


@given(st.floats(1e-6, 9e5))
@example(9.997)
@example(99.96)
@example(999.7)
def test_values_that_are_shown_alike_have_the_same_digits(value: float) -> None:
    shown = format_value(value)
    assert format_value(float(shown.replace(",", ""))) == shown


# --- one figure on every surface -------------------------------------------------------------


@cache
def few() -> Judgement:
    """Return a study of few launches that ends after six, by more than its pairs."""
    asked = judgements.study(("barrier", "triad"), settings=Settings(seed=9, design="few"))
    ratios = {label: {"bridged": 1.4} for label in ("barrier", "triad")}
    scatter = dict.fromkeys(ratios, 0.015)
    script = Script(ratios, scatter=scatter, growth=0)
    return judged(asked, script, name="few", facts=judgements.FACTS)


@pytest.mark.parametrize("made", [few, judgements.two_arms])
def test_a_kind_that_is_a_headline_says_what_that_does(made: Any) -> None:
    judgement = made()
    heads = {one.benchmark: one for one in judgement.headlines}
    alone = 0
    for kind in judgement.lenses["profiles"].kinds:
        [label, *more] = kind.verdict.figures["benchmarks"]
        if more or label not in ("barrier", "triad"):
            continue
        head = heads[label]
        alone += 1
        assert kind.verdict.word is head.verdict.word
        assert kind.comparison == head.comparison.times(head.metric.better)
        assert reason_of(kind.verdict) == reason_of(head.verdict)
    assert alone


@pytest.mark.parametrize("blocks", [6, 7, 8, 12])
def test_the_only_case_of_a_table_says_what_its_headline_does(blocks: int) -> None:
    draw = random.Random(blocks)
    rows = [(arm, block) for block in range(blocks) for arm in "ab"]
    found = paribus.compare(
        {
            "arm": [arm for arm, _ in rows],
            "block": [block for _, block in rows],
            "benchmark": ["solver"] * len(rows),
            "metric": ["time"] * len(rows),
            "unit": ["s"] * len(rows),
            "better": ["lower"] * len(rows),
            "value": [(1.1 if arm == "b" else 1.0) * draw.gauss(1, 0.01) for arm, _ in rows],
        },
        reference="a",
    )
    [head], [case] = found["headlines"], found["cases"]
    assert head["verdict"]["word"] == case["verdict"]["word"] == "slower"
    for end in ("ratio", "low", "high"):
        assert head["comparison"][end] == pytest.approx(case["comparison"][end])


@pytest.mark.parametrize("made", [judgements.logs, judgements.table, judgements.turns])
def test_the_correction_that_is_named_is_that_of_the_cases(made: Any) -> None:
    """Of logs launches by themselves have half of the error, and fewer than 8 cases Holm's test."""
    said = judgements.printed(made())
    assert "closed test" not in said
    assert "Benjamini-Hochberg at 5 %" not in said


def shown(judgement: Judgement, folder: Path) -> Any:
    """Return the summary of a judgement in the workbench."""
    (folder / "verdict.json").write_text(json.dumps(export.to_json(judgement)))
    return summary(Found("x", "x", folder, measured=False))


def test_a_size_that_is_withheld_is_in_no_list_of_the_workbench(tmp_path: Path) -> None:
    judgement = judgements.censored()
    withheld = {one.benchmark for one in judgement.headlines if not one.verdict.size_known}
    assert withheld
    one = shown(judgement, tmp_path)
    for effect in one.effects:
        assert (effect.ratio is None) == (effect.benchmark in withheld)
        assert bool(text_of(effect)) == (effect.benchmark not in withheld)
    sized = re.findall(r'paribus_ratio\{study="x",benchmark="(\w+)"', open_metrics([one]))
    assert not withheld & {*sized}


def test_the_notebook_draws_no_interval_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a size that is withheld, nor an end that is not known."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    judgement = judgements.censored()
    first, second = judgement.headlines
    assert first.comparison
    without = replace(first.comparison, low=0.0, high=math.inf)
    judgement = replace(judgement, headlines=(replace(first, comparison=without), second))
    with (tmp_path / "cases.csv").open("w", newline="") as file:
        export.cases_csv(judgement, file)
    monkeypatch.chdir(tmp_path)
    cells = ["".join(one["source"]) for one in json.loads(document(judgement))["cells"]]
    [ratios] = [one for one in cells if "errorbar" in one]
    pandas = pytest.importorskip("pandas")
    names = {"plt": pyplot, "pd": pandas, "cases": pandas.read_csv("cases.csv")}
    exec(ratios, names)
    [axes] = pyplot.gcf().axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["latency: bridged"]
    bars: Any = axes.collections[0].get_paths()[0].vertices
    assert bars[0][0] == bars[1][0] == pytest.approx(first.comparison.ratio)
    pyplot.close("all")


def test_an_order_effect_moves_the_ratio_that_is_printed() -> None:
    """The printed ratio is one of times, so it falls where rates rise."""
    judgement = judgements.troubled()
    metrics = {one.benchmark: one.metric for one in judgement.headlines}
    seen = set()
    for notice in judgement.notices:
        if notice.name is NoticeName.ORDER_EFFECT:
            better = metrics[notice.benchmarks[0]].better
            bias = notice.figures["bias"]
            times = 1 / (1 + bias) - 1 if better == "higher" else bias
            assert f"moves the ratio by {times * 100:+.2f} %" in notice_text(notice)
            seen.add(better)
    assert "higher" in seen


@pytest.mark.parametrize("made", [judgements.two_arms, judgements.troubled])
def test_scatters_are_median_absolute_deviations_over_medians(made: Any) -> None:
    """Of the times of launches; a rate is the inverse of its time."""
    judgement = made()
    heads = {one.benchmark: one.metric for one in judgement.headlines}
    checked = 0
    for row in judgement.lenses["steadiness"]:
        metric, means = heads[row.benchmark], dict[str, dict[int, float]]()
        for one in judgement.figures:
            of = one.values.items() if one.benchmark == row.benchmark else ()
            if logs := [math.log(v) for (name, _), v in of if name == metric.name]:
                sign = 1 if metric.better == "lower" else -1
                means.setdefault(one.arm, {})[one.block] = math.exp(sign * statistics.fmean(logs))
        arms = (judgement.reference, row.arm)
        both = set.intersection(*(set(means[arm]) for arm in arms))
        for arm, spread in zip(arms, row.spreads, strict=True):
            values = [means[arm][block] for block in both]
            middle = statistics.median(values)
            away = statistics.median(abs(value - middle) for value in values)
            assert spread == pytest.approx(away / middle, rel=0.02)
            checked += 1
    assert checked


# --- between two looks -----------------------------------------------------------------------


def between(blocks: int = 10, **settings: Any) -> Judgement:
    """Return a study that is interrupted after so many blocks, with prices and energy."""

    def twist(launch: Launch, attempt: int) -> Twist:
        used = 100 * (1.3 if launch.arm == "bridged" else 1) * (1 + launch.number % 5 / 100)
        return Twist(facts={JOULES["rapl"]: used})

    arms = tuple(
        replace(arm, price=f"{price} EUR/node-hour")
        for arm, price in zip(judgements.ARMS, (2.07, 1.5), strict=True)
    )
    asked = judgements.study(("latency", "bandwidth"), arms, settings=Settings(**settings))
    ratios = {"latency": {"bridged": 1.03}, "bandwidth": {"bridged": 1.1}}
    script = Script(ratios, twist, growth=0, scatter=dict.fromkeys(ratios, 0.02))
    return judged(asked, script, name="cut", facts=judgements.FACTS, most=blocks)


CLAIMS = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def test_between_two_looks_no_verdict_is_given() -> None:
    judgement = between(seed=20210)
    assert not judgement.complete
    assert [one.verdict.word for one in judgement.headlines] == [Word.UNDECIDED] * 2
    said = [one for one in judgement.cases if one.verdict.word in CLAIMS]
    assert said, "this study shows cases"
    for one in judgement.cases:
        assert not one.verdict.final
        assert one.comparison
        assert one.comparison.blocks in judgement.looks
    assert {one.word for one in costs(judgement)} == {Word.UNDECIDED}
    assert {one.word for one in judgement.lenses["energy"]} == {"undecided"}


def test_few_launches_say_nothing_between_two_looks() -> None:
    asked = judgements.study(("barrier", "triad"), settings=Settings(seed=9, design="few"))
    ratios = {label: {"bridged": 1.08} for label in ("barrier", "triad")}
    script = Script(ratios, scatter=dict.fromkeys(ratios, 0.015), growth=0)
    cut = judged(asked, script, name="few", facts=judgements.FACTS, most=9)
    heads = {one.benchmark: one.verdict for one in cut.headlines}
    open_ = [label for label, verdict in heads.items() if not verdict.final]
    assert open_
    for case in cut.cases:
        if case.benchmark in open_:
            assert not case.verdict.final
            assert case.comparison
            assert case.comparison.blocks in cut.looks


def test_a_study_whose_cases_decide_is_complete_once_they_have() -> None:
    def of(most: int | None) -> Judgement:
        asked = judgements.study(("latency",), settings=Settings(seed=20210, decides="cases"))
        script = Script(
            {"latency": {"bridged": 1.2}}, growth=1.0, scatter={"latency": 0.01}, usual=0.01
        )
        return judged(asked, script, name="cases", facts=judgements.FACTS, most=most)

    cut, whole = of(10), of(None)
    assert max(point.block for point in whole.points) == 12
    assert cut.headlines[0].verdict.final
    assert (whole.complete, cut.complete) == (True, False)
    assert {case.verdict.final for case in whole.cases} == {True}
    assert {case.verdict.final for case in cut.cases} == {False}


def test_a_range_from_kinds_holds_as_often_as_all_looks_do() -> None:
    """An interval at 98.7 % at each look is one at 95 % where the looks said when to stop."""
    from test_weighing import profile

    asked = judgements.study(("latency", "barrier"))
    asked = replace(asked, profile=profile(messages_small=0.5, collectives_small=0.5))
    _, [one] = judged(asked, judgements.SCRIPT, name="profile", facts=judgements.FACTS).lenses[
        "profiles"
    ]
    parts: tuple[Weighed, ...] = one.parts
    assert len({kind for part in parts for kind in part.kinds}) == 2
    assert one.level == pytest.approx(1 - 2 * 0.05)


def cut_off_arm(launch: Launch, attempt: int) -> Twist:
    """Return the launch of one arm in 14 blocks that its time limit cuts off."""
    late = launch.arm in ("virtual", "bridge") and launch.block % 14 == 3
    return Twist(state=State.TIMEOUT, error="late") if late else Twist()


def test_a_size_that_is_withheld_is_in_no_ranking() -> None:
    arms = tuple(Arm(name, transport="tcp") for name in ("shared", "loop", "bridge"))
    limited = (judgements.selection("barrier", timeout_s=60.0),)
    asked = judgements.study((), arms, factor="transport", benchmarks=limited)
    ratios = {"barrier": {"loop": 1.1, "bridge": 1.3}}
    judgement = judged(asked, Script(ratios, cut_off_arm, growth=0), name="cut")
    known = {one.arm: one.verdict.size_known for one in judgement.headlines}
    assert known == {"loop": True, "bridge": False}
    assert len(judgement.pairs) == 3
    for pair in judgement.pairs:
        assert pair.verdict.size_known == ("bridge" not in (pair.arm, pair.reference))
    assert wording.SIZE_WITHHELD in judgements.printed(judgement)
    table = re.sub(r"<[^>]+>", "", page(judgement, ""))
    for pair in judgement.pairs:
        assert pair.comparison
        is_there = wording.estimate(pair.comparison) in table
        assert is_there == pair.verdict.size_known


def test_a_size_that_is_withheld_stands_beside_nothing_published(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text(
        'title = "Old"\nyear = 2021\nurl = "https://x"\nfactor = "network"\n'
        '[arms]\nhost = "a"\nbridged = "b"\n[[figures]]\nbenchmark = "barrier"\n'
        'arm = "bridged"\nreference = "host"\noverhead = 8\n'
    )
    [row] = beside(judgements.censored(), [load_publication(file)]).lenses["published"]
    assert row.finding
    assert here(row) == wording.SIZE_WITHHELD


def test_a_size_that_is_withheld_is_in_no_table_of_scaling() -> None:
    base = judgements.scaling()
    rows = [one for one in base.lenses["scaling"] if one.against]
    first = rows[-1]
    shown = wording.estimate(first.against.comparison)
    assert shown in judgements.printed(base)
    withheld = replace(first.against.verdict, size_known=False)
    other = replace(first, against=replace(first.against, verdict=withheld))
    changed = tuple(other if one is first else one for one in base.lenses["scaling"])
    judgement = replace(base, lenses={**base.lenses, "scaling": changed})
    assert shown not in judgements.printed(judgement)
    assert not any(
        shown in cell for table in details(judgement) for of in table.rows for cell in of
    )
