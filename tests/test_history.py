"""`paribus history`: when an effect changed over many studies, and how rarely that is false."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paribus.__main__ import main
from paribus.logs import stages as history
from paribus.logs.stages import LEAST_STUDIES, fewest, stages, step
from paribus.stats.betting import ConfidenceSequence
from paribus.stats.student import p_value, quantile
from studies import paribus, write_study
from study_directories import write_directory
from test_report_export import faults

SCHEMA = json.loads((Path(__file__).parent.parent / "docs" / "history-schema.json").read_text())


# --- the procedure ---------------------------------------------------------------------------


def test_student_has_the_values_of_tables() -> None:
    for t, freedom in ((12.7062, 1), (4.3027, 2), (3.1824, 3), (2.5706, 5), (2.0423, 30)):
        assert p_value(t, freedom) == pytest.approx(0.05, rel=1e-4)
    assert p_value(quantile(0.001, 11), 11) == pytest.approx(0.002, rel=1e-3)
    assert p_value(0.0, 4) == 1
    assert p_value(20.0, 40) < 1e-15


DAYS = {
    "equal": lambda rng, n: np.zeros(n),
    "normal": lambda rng, n: rng.normal(0, 0.03, n),
    "heavy": lambda rng, n: 0.03 * rng.standard_t(3, n),
    "two kinds": lambda rng, n: 0.08 * rng.integers(0, 2, n),
    "few of a kind": lambda rng, n: 0.08 * (rng.random(n) < 0.15),
    "skew": lambda rng, n: 0.03 * rng.exponential(size=n),
}


def drawn(rng: Any, effects: Any) -> tuple[list[list[float]], list[float]]:
    """Return the blocks of studies with these effects, and the median of each study."""
    blocks = [
        list(one + rng.normal(0, 0.015, n))
        for one, n in zip(effects, rng.choice([8, 12, 18], len(effects)), strict=True)
    ]
    return blocks, [float(np.median(one)) for one in blocks]


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAYS)
def test_a_history_without_a_change_ever_shows_one_in_at_most_5_percent(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks are taken to have agreed from the start: the other tests alone hold the level."""
    seen = ConfidenceSequence(1, 0.0, -1.0, 1.0, 1)
    monkeypatch.setattr(history, "confidence_sequence", lambda blocks, confidence: seen)
    rng = np.random.default_rng([45, list(DAYS).index(kind)])
    histories, false = 300, 0
    for _ in range(histories):
        false += len(stages(*drawn(rng, 0.1 + DAYS[kind](rng, 30)))) > 1
    assert false <= 0.05 * histories


@pytest.mark.slow
def test_blocks_of_an_effect_that_stays_show_no_change() -> None:
    rng = np.random.default_rng(46)
    assert sum(len(stages(*drawn(rng, np.full(25, 0.1)))) > 1 for _ in range(40)) <= 2


def test_control_days_that_resemble_their_neighbours_break_it() -> None:
    """What the docs say breaks it does: wandering days are called changes."""
    rng = np.random.default_rng(47)
    false = 0
    for _ in range(12):
        effects = np.cumsum(rng.normal(0, 0.03, 30))
        false += len(stages(*drawn(rng, effects))) > 1
    assert false > 6


@pytest.mark.parametrize("before", [5, 9, 20])
def test_a_change_is_dated_to_the_study_and_noticed_after_three(before: int) -> None:
    rng = np.random.default_rng(before)
    effects = np.r_[np.full(before, 0.02), np.full(8, 0.15)] + rng.normal(0, 0.005, before + 8)
    blocks, values = drawn(rng, effects)
    first, second = stages(blocks, values)
    assert (first.first, first.last, second.first) == (0, before - 1, before)
    assert first.noticed == max(before + 3, LEAST_STUDIES) - 1
    shift, low, high = step(values[:before], values[before:], 0.95)
    assert low < 0.13 < high
    assert shift == pytest.approx(second.mean - first.mean)
    # A later study does not move it.
    until = stages(blocks[: first.noticed + 1], values[: first.noticed + 1])
    assert until[0] == first


def test_several_changes_and_too_few_studies() -> None:
    rng = np.random.default_rng(5)
    effects = np.r_[np.full(9, 0.0), np.full(9, 0.2), np.full(9, -0.1)]
    assert [one.first for one in stages(*drawn(rng, effects))] == [0, 9, 18]
    assert len(stages(*drawn(rng, np.r_[np.zeros(4), np.ones(3)]))) == 1


@pytest.mark.parametrize("effects", [1, 2, 3, 8])
def test_with_fewer_studies_no_change_however_large_is_shown(effects: int) -> None:
    """Several effects share the error, which ranks of few studies do not go below."""
    error = 0.05 / effects
    least = fewest(error)

    def seen(studies: int, since: int) -> bool:
        blocks = [[2.0 * (n >= studies - since) + 1e-3 * n] * 12 for n in range(studies)]
        return len(stages(blocks, [of[0] for of in blocks], error)) > 1

    assert least >= LEAST_STUDIES
    assert any(seen(least, since) for since in range(3, least - 2))
    assert not any(seen(least - 1, since) for since in range(3, least - 3))


# --- the verb --------------------------------------------------------------------------------

CALM, SLOW = {"host": 1.0, "bridged": 1.05}, {"host": 1.0, "bridged": 1.19}
DAY = 86_400.0


@pytest.fixture
def nightly(tmp_path: Path) -> list[Path]:
    """Return eleven studies, of which the last four have another kernel and a larger effect."""
    found = []
    for n in range(11):
        facts = {arm: {"os.release": "6.1" if n < 7 else "6.6"} for arm in CALM}
        found.append(
            write_directory(
                *(tmp_path / f"night-{n}", CALM if n < 7 else SLOW),
                seed=n + 1,
                started=1.7e9 + n * DAY,
                facts=facts,
            )
        )
    return found


def shown(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main(["history", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_history_names_the_date_and_what_changed_with_it(
    nightly: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, _ = shown(capsys, *reversed(nightly), "--out", tmp_path / "out")
    assert code == 0
    lines = " ".join(text.split())
    assert "2023-11-24 22:13: the effect changed of bridged in latency by +13." in lines
    assert "after night-6 (2023-11-20 22:13) and before night-7 (2023-11-21 22:13)" in lines
    assert "noticed with night-9" in lines
    assert "os.release (bridged, host): 6.1 -> 6.6" in lines
    found = json.loads((tmp_path / "out" / "history.json").read_text())
    assert faults(found, SCHEMA) == []
    (line,) = found["lines"]
    (change,) = line["changes"]
    assert change["low"] < 1.19 / 1.05 < change["high"]
    assert [one["ratio"] for one in line["levels"]] == pytest.approx([1.05, 1.19], rel=0.01)
    page = (tmp_path / "out" / "history.html").read_text()
    assert page.count('class="mark"') == 11
    assert page.count('class="change"') == 1
    assert page.count('class="level"') == 2
    assert "6.1 -&gt; 6.6" in page
    for number, said in ((8, "no change is shown"), (7, "too few to show a change")):
        code, text, _ = shown(capsys, *nightly[:number], "--json")
        assert json.loads(text)["lines"][0]["changes"] == []
        assert said in json.loads(text)["sentence"]


def test_another_question_a_copy_and_one_study_are_refused(
    nightly: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_directory(tmp_path / "other", CALM, factor="container", started=1.8e9)
    code, _, error = shown(capsys, nightly[0], other)
    assert code == 2
    assert "the factor is another: network in one study, container in the other" in error
    code, _, error = shown(capsys, nightly[0])
    assert code == 2
    assert "two or more" in error
    twin = write_directory(tmp_path / "twin", CALM, seed=1, started=1.7e9)
    code, _, error = shown(capsys, *nightly, twin)
    assert code == 2
    assert "holds the same launches as night-0" in error
    code, _, error = shown(capsys, *nightly, "--out", nightly[0])
    assert code == 2


def test_a_study_without_an_effect_is_left_out_by_name(
    nightly: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = write_directory(tmp_path / "failed", CALM, failing="bridged", started=1.75e9)
    code, text, _ = shown(capsys, *nightly, failed, "--json")
    assert code == 0
    (line,) = json.loads(text)["lines"]
    assert line["left_out"] == [{"study": "failed", "word": "reliability differs"}]
    assert len(line["effects"]) == 11


@pytest.mark.slow
def test_live_a_planted_step_is_found_where_it_is(tmp_path: Path) -> None:
    """Nine studies that are run; from the sixth on the program of one arm takes a fifth longer."""
    for n in range(9):
        level = 105 if n < 5 else 126
        write_study(
            tmp_path,
            script="echo $((LEVEL + PARIBUS_SEED % 5))",
            arms=f'[arms.a]\nenv = {{ LEVEL = "100" }}\n[arms.b]\nenv = {{ LEVEL = "{level}" }}\n',
            plan="blocks = 8",
        )
        text = (tmp_path / "study.toml").read_text()
        (tmp_path / "study.toml").write_text(text.replace("seed = 1\n", f"seed = {n + 1}\n"))
        done = paribus("run", "study.toml", "--out", f"day-{n}", cwd=tmp_path, code=0)
    days = [f"day-{n}" for n in range(9)]
    done = paribus("history", *days, "--json", cwd=tmp_path)
    (line,) = json.loads(done.stdout)["lines"]
    (change,) = line["changes"]
    assert (change["before"], change["since"]) == ("day-4", "day-5")
    assert math.log(change["low"]) < math.log(1.2) < math.log(change["high"])
    assert ("arm.env.LEVEL", "b") in [(one["key"], one["arm"]) for one in change["facts"]]
