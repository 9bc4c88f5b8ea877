"""`paribus run --against DIR`: a new arm against a stored one, each by the reference of its day."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from paribus.core import StudyError, UnequalError, UserError
from paribus.designs.calibrate import alone
from paribus.logs.against import check, others, stored
from paribus.logs.alone import days_of, row, title
from paribus.plan import read_plan
from studies import paribus, write_study
from study_directories import FACTS, write_directory
from test_compare_studies import SCHEMA
from test_report_export import faults

ALONE = json.loads((Path(__file__).parent.parent / "docs" / "alone-schema.json").read_text())
OLD = {"host": 1.0, "bridged": 1.05}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_directory(tmp_path / "old", OLD)


def test_only_what_concerns_the_reference_and_matters_is_refused(old: Path, tmp_path: Path) -> None:
    now = read_plan(write_directory(tmp_path / "now", OLD, seed=2))
    then = stored(old, now.study, {})
    compare = check(then)
    same = {arm: {"n7": {**FACTS, "load.running": 9}} for arm in OLD}
    compare(now, same, {})
    # The arm is what is asked about: it may be anything.
    compare(now, {**same, "bridged": {"n7": {**FACTS, "os.release": "6.6"}}}, {})
    other = {**same, "host": {"n7": {**FACTS, "os.release": "6.6", "cpu.model": "Xeon"}}}
    with pytest.raises(UnequalError) as refused:
        compare(now, other, {})
    said = str(refused.value)
    assert "host is not the reference that old measured (2 differences)" in said
    assert "os.release: 6.1 -> 6.6" in said
    assert "cpu.model: EPYC -> Xeon" in said
    compare(now, other, {"os.release": "an update of security", "cpu.model": "as fast"})


def test_what_the_study_file_says_otherwise_is_refused_before_any_launch(
    old: Path, tmp_path: Path
) -> None:
    env = {"host": {"OMP_NUM_THREADS": "4"}}
    other = read_plan(write_directory(tmp_path / "env", OLD, env=env)).study
    with pytest.raises(UnequalError, match="OMP_NUM_THREADS: not given -> 4"):
        stored(old, other, {})
    stored(old, other, {"arm.env.OMP_NUM_THREADS": "it has one thread"})
    free = read_plan(write_directory(tmp_path / "arm", OLD, env={"bridged": env["host"]})).study
    then = stored(old, free, {})
    assert others(then, then, {}, "host") == []
    for name, made in (
        ("factor", {"factor": "container"}),
        ("sizes", {"sizes": (8, 4096)}),
        ("label", {"labels": ("bandwidth",)}),
    ):
        study = read_plan(write_directory(tmp_path / name, OLD, **made)).study
        with pytest.raises(UserError, match="are not studies of the same question"):
            stored(old, study, {})


def test_an_arm_of_another_name_is_the_same_where_each_study_has_one(
    old: Path, tmp_path: Path
) -> None:
    renamed = read_plan(write_directory(tmp_path / "one", {"host": 1.0, "macvlan": 1.2})).study
    stored(old, renamed, {})
    several = {"host": 1.0, "macvlan": 1.2, "ipvlan": 1.3}
    two = read_plan(write_directory(tmp_path / "two", several)).study
    with pytest.raises(UserError, match="the arm bridged is only in old"):
        stored(old, two, {})
    with pytest.raises(UserError, match="is no study directory"):
        stored(tmp_path, renamed, {})


# --- an arm alone ----------------------------------------------------------------------------


def test_the_range_holds_another_day_in_95_of_100_cases() -> None:
    """Of normal days; the facts of the range: 2.8 standard deviations of 6 days, 2.1 of 20."""
    rng, inside = np.random.default_rng(45), {6: 0, 20: 0}
    histories = 2000
    for n in inside:
        for _ in range(histories):
            *days, today = rng.normal(3, 0.05, n + 1).tolist()
            one = row("latency", "us", math.exp(today), days)
            inside[n] += one.low <= one.ratio <= one.high
        assert abs(inside[n] / histories - 0.95) < 0.015  # three standard errors
    for n, reach in ((6, 2.78), (20, 2.15)):
        days = rng.normal(3, 0.05, n).tolist()
        one = row("latency", "us", 20.0, days)
        assert math.log(one.high) == pytest.approx(reach * float(np.std(days, ddof=1)), rel=0.01)
        assert one.low * one.high == pytest.approx(1)


def test_the_days_of_an_arm_are_all_alike_or_refused(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    study = alone(read_plan(write_directory(tmp_path / "now", OLD, seed=99)).study, "bridged")
    assert [arm.name for arm in study.arms] == ["bridged", "bridged-again"]
    for n in range(6):
        with pytest.raises(UserError, match=f"holds {n} stud"):
            days_of(folder, study, {})
        write_directory(folder / f"day-{n}", OLD, seed=n + 1, started=1.7e9 + n * 86_400)
    (folder / "notes.txt").write_text("no study")
    days = days_of(folder, study, {})
    assert [one.name for one in days] == [f"day-{n}" for n in range(6)]
    other = {"bridged": {"os.release": "6.6"}}
    write_directory(folder / "day-6", OLD, seed=7, started=1.8e9, facts=other)
    with pytest.raises(UnequalError, match=r"bridged is not what day-0 measured \(1 difference"):
        days_of(folder, study, {})
    assert len(days_of(folder, study, {"os.release": "an update"})) == 7
    assert title(days[0], days).endswith(" alone against 6 stored days (no verdict)")
    assert "against 7 stored studies of 6 days (no verdict)" in title(days[0], (*days, days[0]))
    with pytest.raises(StudyError, match="has no arm 'macvlan'"):
        alone(study, "macvlan")


# --- live ------------------------------------------------------------------------------------


def asked(folder: Path, name: str, level: int, *, seed: int, more: str = "") -> str:
    """Write a study whose arm takes `level` where its reference takes 100; return its file."""
    path = write_study(
        folder,
        script="echo $((LEVEL * ${PARIBUS_TEST_DAY:-1} + PARIBUS_SEED % 2))",
        arms=f'[arms.a]\nenv = {{ LEVEL = "100"{more} }}\n'
        f'[arms.{name}]\nenv = {{ LEVEL = "{level}" }}\n',
        plan="blocks = 8\nmargin = 0.05",
    )
    text = path.read_text().replace("seed = 1\n", f"seed = {seed}\n")
    (folder / f"{name}-{seed}.toml").write_text(text)
    return f"{name}-{seed}.toml"


@pytest.mark.slow
def test_live_days_cancel_and_the_known_change_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the second day all is three times as slow; the new arm is a fifth slower than the old."""
    first = asked(tmp_path, "old-mpi", 110, seed=1)
    paribus("run", first, "--out", "june", cwd=tmp_path, code=0)
    monkeypatch.setenv("PARIBUS_TEST_DAY", "3")
    second = asked(tmp_path, "new-mpi", 132, seed=2)
    words = ("run", second, "--out", "july", "--against", "june")
    done = paribus(*words, "--fail-on", "slower:5%", cwd=tmp_path, code=1)
    said = " ".join(done.stdout.split())
    change = "From june (old-mpi) to july (new-mpi): new-mpi worsened against arm a in steady"
    assert f"{change} (1." in said
    assert "new-mpi in steady: worsened" in done.stderr
    assert (tmp_path / "july" / "against.html").read_text().count("<section") > 0
    stored_text = (tmp_path / "july" / "change.json").read_text()
    again = paribus(*words, "--resume", "--json", cwd=tmp_path, code=0)
    found = json.loads(again.stdout)
    assert found == json.loads(stored_text)
    assert faults(found, SCHEMA) == []
    change = found["steps"][0]["headlines"][0]["comparison"]
    assert change["low"] < 1.2 < change["high"]
    # The same arm as in June: nothing changed, however slow the day.
    third = asked(tmp_path, "old-mpi", 110, seed=3)
    done = paribus("run", third, "--out", "august", "--against", "june", "--json", cwd=tmp_path)
    head = json.loads(done.stdout)["steps"][0]["headlines"][0]
    assert head["verdict"]["word"] == "unchanged"


@pytest.mark.slow
def test_live_an_arm_alone_beside_six_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days scatter by known factors; today it takes half as long again as on their mean."""
    days = (0.9, 0.95, 1.0, 1.0, 1.05, 1.1)
    for n, level in enumerate(days):
        monkeypatch.setenv("PARIBUS_TEST_DAY", str(round(10 * level * 2)))
        study = asked(tmp_path, "b", 110, seed=n + 1)
        done = paribus("run", study, "--out", f"days/day-{n}", cwd=tmp_path, code=0)
    monkeypatch.setenv("PARIBUS_TEST_DAY", "30")
    words = ("run", study, "--out", "today", "--against", "days", "--alone", "b")
    done = paribus(*words, "--json", cwd=tmp_path, code=0)
    found = json.loads(done.stdout)
    assert faults(found, ALONE) == []
    (one,) = found["rows"]
    assert one["ratio"] == pytest.approx(1.5 / math.prod(days) ** (1 / 6), rel=0.01)
    assert one["high"] == pytest.approx(math.exp(2.78 * np.std(np.log(days), ddof=1)), rel=0.02)
    assert "range of another day" in (tmp_path / "today" / "alone.html").read_text().lower()
    for more in (("--fail-on", "slower"), ("--monitor",)):
        paribus(*words[:2], *words[4:], *more, cwd=tmp_path, code=2)


@pytest.mark.slow
def test_live_another_reference_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    first = asked(tmp_path, "b", 110, seed=1)
    assert paribus("run", first, "--out", "june", cwd=tmp_path).returncode == 0
    other = asked(tmp_path, "b", 110, seed=2, more=', EXTRA = "1"')
    done = paribus("run", other, "--out", "july", "--against", "june", cwd=tmp_path, code=3)
    assert "a is not the reference that june measured" in done.stderr
    assert "arm.env.EXTRA: not given ->" in done.stderr
    assert not (tmp_path / "july").exists()
    done = paribus(
        "run", first, "--against", "june", "--fail-on", "less-steady", cwd=tmp_path, code=2
    )
    assert "is about one study, not about a change" in done.stderr
