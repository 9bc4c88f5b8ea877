"""Arms in an order: where a figure steps, when the study ends, and how rarely a step is false."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgements
from paribus.core import Arm, Judgement, Settings, State, StudyError, Word
from paribus.designs import design_of
from paribus.lenses.series.lens import Rows, said
from paribus.plan import frozen as plans
from paribus.report.advice import next_steps
from paribus.report.export import to_json
from paribus.report.html import page
from paribus.report.printing import console_on
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.report.terminal import print_report
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import schedule
from paribus.studyfile.load import load_study
from stored import Script, Twist, judged
from studies import paribus, write_study
from test_report_export import faults

STEADY = tuple(Arm(f"2.{n}", env={"RELEASE": str(n)}) for n in range(20, 26))


def asked(arms: tuple[Arm, ...] = STEADY, **settings: Any) -> Any:
    of = Settings(**{"seed": 7, "blocks": 60, "design": "series", **settings})
    study = judgements.study(("barrier",), arms, settings=of)
    return replace(study, factor="env", asked={"series": {"over": ["env"]}})


def found(ratios: dict[str, float], *, usual: float = 0.005, **settings: Any) -> Judgement:
    script = Script({"barrier": ratios}, usual=usual, machine=0.05)
    return judged(asked(**settings), script, name="series")


def rows_of(judgement: Judgement) -> Rows:
    rows: Rows = judgement.lenses["series"]
    return rows


# --- the procedure ---------------------------------------------------------------------------


def noise(kind: str, rng: Any, shape: tuple[int, ...]) -> Any:
    if kind == "outliers":
        return rng.normal(0, 0.01, shape) + (rng.random(shape) < 0.1) * rng.exponential(0.3, shape)
    if kind == "two states":
        return 0.06 * (rng.random(shape) < 0.3) + rng.normal(0, 0.01, shape)
    return rng.normal(0, 0.015, shape)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "outliers", "two states"])
@pytest.mark.parametrize("arms", [4, 20])
def test_equal_arms_show_a_step_at_any_look_in_at_most_5_percent(kind: str, arms: int) -> None:
    """An interval of neighbours, or of the ends, that excludes 1 at any look, whatever stops it."""
    rng = np.random.default_rng([45, arms, len(kind)])
    looks, studies = schedule(60, 0.95, arms), 1500
    assert looks == design_of(asked(tuple(Arm(str(n)) for n in range(arms)))).looks()
    false = np.zeros((studies, arms), dtype=bool)
    for some in np.array_split(np.arange(studies), 30):
        drift = np.cumsum(rng.normal(0, 0.01, (len(some), 1, 60)), axis=-1)
        logs = drift + noise(kind, rng, (len(some), arms, 60))
        whole = (logs[:, -1] - logs[:, 0])[:, None]
        ratios = np.concatenate([np.diff(logs, axis=1), whole], axis=1)
        for look in looks.at:
            _, low, high = hodges_lehmann(ratios[..., :look].reshape(-1, look), looks.level)
            false[some] |= ((low > 0) | (high < 0)).reshape(len(some), arms)
    assert false.any(axis=1).mean() <= 0.057  # 5 %, and what 1,500 studies may err by: 0.6


def test_two_steps_are_found_where_they_are_and_the_ends_compared() -> None:
    ratios = {"2.22": 1.2, "2.23": 1.2, "2.24": 0.95, "2.25": 0.95}
    judgement = found(ratios)
    (of,) = rows_of(judgement)
    words = [one.word for one in of.steps]
    same = Word.EQUIVALENT
    assert words == [same, Word.SLOWER, same, Word.FASTER, same]
    for one, ratio in ((of.steps[1], 1.2), (of.steps[3], 0.95 / 1.2), (of.whole, 0.95)):
        assert one.low < ratio < one.high
    assert said(of).startswith("two steps: 2.21 -> 2.22, +19.")
    assert "none elsewhere beyond 5 %" in said(of)
    assert said(of).endswith("from end to end")
    assert said(of) in judgement.sentence
    assert judgement.pairs == ()


def test_no_step_although_the_ends_differ() -> None:
    """Steps that are each within the margin add up."""
    slowly = {arm.name: 1.015**n for n, arm in enumerate(STEADY)}
    (of,) = rows_of(found(slowly, margin=0.03))
    assert {one.word for one in of.steps} == {Word.EQUIVALENT}
    assert of.whole.word is Word.SLOWER
    assert said(of).startswith("no step beyond 3 %; +7.")


def test_an_undecided_step_leaves_something_to_do() -> None:
    """Also where each arm is decided against the first, about which alone headlines are."""
    ratios = {arm.name: 2.0 for arm in STEADY[1:]}
    for usual, left in ((0.04, True), (0.005, False)):
        judgement = found(ratios, usual=usual, margin=0.03, blocks=12)
        assert {one.verdict.word for one in judgement.headlines} == {Word.SLOWER}
        (of,) = rows_of(judgement)
        assert left is any(one.word is Word.UNDECIDED for one in of.steps)
        assert left is any("steps to" in one for one in next_steps(judgement))
        assert left is not ("Nothing left to do" in page(judgement, ""))


def test_a_study_goes_on_until_its_steps_are_decided() -> None:
    """Far beyond the margin an arm is slower soon; whether it is as its neighbour takes longer."""
    ratios = {"2.20": 1, **{arm.name: 2.0 for arm in STEADY[1:]}}
    series = found(ratios, usual=0.012, margin=0.02)
    plain = replace(asked(margin=0.02), asked={}, settings=Settings(seed=7, margin=0.02))
    other = judged(plain, Script({"barrier": ratios}, usual=0.012, machine=0.05), name="plain")
    blocks = [
        max(h.comparison.blocks for h in j.headlines if h.comparison) for j in (series, other)
    ]
    assert blocks[0] > blocks[1]
    (of,) = rows_of(series)
    assert [one.word for one in of.steps] == [Word.SLOWER, *[Word.EQUIVALENT] * 4]


def test_it_is_in_all_outputs(tmp_path: Path) -> None:
    judgement = found({"2.22": 1.2, "2.23": 1.2, "2.24": 1.2, "2.25": 1.2})
    table = to_json(judgement)
    assert faults(table) == []
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert read_report(tmp_path / "verdict.json").lenses["series"] == rows_of(judgement)
    text = page(judgement, "")
    assert text.count('class="mark"') == len(STEADY)
    assert text.count('class="change"') == 1
    for show in (print_short, print_report):
        file = io.StringIO()
        show(judgement, console_on(file, 80))
        lines = file.getvalue().splitlines()
        assert max(map(len, lines)) <= 80
        assert "one step: 2.21 -> 2.22, +19." in " ".join(" ".join(lines).split())


def test_an_arm_without_a_verdict_withholds_both_of_its_steps() -> None:
    def twist(launch: Any, attempt: int) -> Twist:
        bad = launch.arm == "2.22" and launch.block % 3 == 1
        return Twist(state=State.FAILED, error="exit code 1") if bad else Twist()

    script = Script({"barrier": {}}, twist=twist)
    (of,) = rows_of(judged(asked(blocks=18), script, name="failing"))
    words = [one.word for one in of.steps]
    assert words[1] is words[2] is Word.WITHHELD
    assert words[0] is not Word.WITHHELD
    assert said(of).startswith("no step; not decided: 2.21 -> 2.22, 2.22 -> 2.23;")


def test_a_size_that_is_withheld_is_that_of_no_step() -> None:
    def twist(launch: Any, attempt: int) -> Twist:
        late = launch.arm == "2.22" and launch.block == 4
        return Twist(state=State.TIMEOUT, error="still busy") if late else Twist()

    script = Script({"barrier": {}}, twist=twist)
    judgement = judged(asked(blocks=18), script, name="late")
    (of,) = rows_of(judgement)
    assert [one.ratio is None for one in of.steps] == [False, True, True, False, False]
    file = io.StringIO()
    print_report(judgement, console_on(file, 80))
    assert len(re.findall("size withheld +withheld", file.getvalue())) == 2


def test_an_arm_that_always_fails_is_to_be_left_out() -> None:
    def twist(launch: Any, attempt: int) -> Twist:
        bad = launch.arm == "2.22"
        return Twist(state=State.FAILED, error="exit code 3") if bad else Twist()

    judgement = judged(asked(), Script({"barrier": {}}, twist=twist), name="stuck")
    (of,) = rows_of(judgement)
    assert {one.word for one in of.steps} == {Word.NO_DATA}
    assert said(of).startswith("not decided: 2.20 -> 2.21, 2.21 -> 2.22,")
    steps = next_steps(judgement)
    assert "Remove [arms.2.22] to compare the others, and use a new directory." in steps
    assert faults(json.loads(json.dumps(to_json(judgement), allow_nan=False))) == []


# --- the study file --------------------------------------------------------------------------

ORDER = "".join(
    f'[arms.v{n}]\nenv = {{ LEVEL = "{1000 + n // 3 * 150}", V = "{n}" }}\n' for n in range(6)
)


def test_what_is_no_series_is_refused(tmp_path: Path) -> None:
    series = '[series]\nover = "env"'
    study = load_study(write_study(tmp_path, arms=ORDER, more=series))
    assert study.settings.design == "series"
    assert plans.freeze(plans.seeded(study), {}).looks == schedule(60, 0.95, 6)
    two = "".join(ORDER.splitlines(keepends=True)[:4])
    for arms, more, plan, cause in (
        (ORDER, '[series]\nover = "mpi"', "", "differs from v0 in env.V too"),
        (ORDER, "[series]", "", "over"),
        (ORDER, series, 'design = "few"', "is not that of a series"),
        (two, series, "", "is of several arms, not of 2"),
        (ORDER, "", 'design = "series"', "is of a study with a table [series]"),
        (ORDER, series, "monitor = true", "is of launches with an end"),
        (f'{ORDER}[arms.v6]\nenv = {{ LEVEL = "1150", V = "5" }}\n', series, "", "in nothing"),
    ):
        with pytest.raises(StudyError) as refused:
            load_study(write_study(tmp_path, arms=arms, more=more, plan=plan))
        assert cause in str(refused.value)


@pytest.mark.slow
def test_live_two_planted_steps_between_ten_programs(tmp_path: Path) -> None:
    levels = [1000] * 3 + [1150] * 4 + [1300] * 3
    arms = (
        f'[arms.v{number}]\nenv = {{ LEVEL = "{level}", V = "{number}" }}\n'
        for number, level in enumerate(levels)
    )
    write_study(
        tmp_path,
        arms="".join(arms),
        script="echo $((LEVEL + PARIBUS_SEED % 7))",
        more='[series]\nover = "env"',
        plan="blocks = 18",
    )
    done = paribus("run", "study.toml", "--out", "out", "--json", cwd=tmp_path, code=0)
    (of,) = json.loads(done.stdout)["series"]
    slower = [at for at, one in enumerate(of["steps"]) if one["word"] == "slower"]
    assert slower == [2, 6]
    assert {one["word"] for one in of["steps"]} == {"slower", "equivalent"}
    assert of["text"].startswith("two steps: v2 -> v3, +1")
    for at, ratio in ((2, 1.15), (6, 1300 / 1150)):
        assert of["steps"][at]["low"] < ratio < of["steps"][at]["high"]
    assert math.isclose(of["whole"]["ratio"], 1.3, rel_tol=0.01)
    paribus("report", "out", "--to", "csv", cwd=tmp_path, code=0)
    assert len((tmp_path / "out" / "series.csv").read_text().splitlines()) == 11
