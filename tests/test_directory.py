"""Which directory a study is written to, and that nothing measured or foreign is ever removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paribus.cli.directory import claimed, clear, discard
from paribus.core import StoreError
from paribus.store import AtWorkError, Store
from paribus.store.journal import Journal
from studies import paribus, write_study

PLAN = "blocks = 8"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study, study.toml, that was run twice."""
    folder = tmp_path_factory.mktemp("measured")
    study = write_study(folder, plan=PLAN)
    for said in ("", "paribus: writing to study-2.study: study.study holds launches"):
        done = paribus("run", study, cwd=folder, code=0)
        assert said in done.stderr
    return folder


def chosen(out: Path | None, *, resume: bool = False, replace: bool = False) -> Path:
    """Return the directory that `paribus run` would write to; its lock is let go."""
    with claimed("study", out, resume=resume, replace=replace) as directory:
        if out is None and not resume and not replace:
            (directory / "lock").unlink()
        return directory


@contextmanager
def chosen_still(out: Path) -> Iterator[None]:
    """Be a `paribus run` at work in `out`, which ends with an interrupt."""
    with claimed("study", out, resume=False, replace=False):
        yield
        raise KeyboardInterrupt


def plan_of(directory: Path) -> str:
    return (directory / "plan.json").read_text()


def test_resume_and_replace_take_the_last_directory(
    measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(measured)
    last = Path("study-2.study")
    assert chosen(None, resume=True) == last
    assert "continuing study-2.study, the last of 2" in capsys.readouterr().err
    assert chosen(None, replace=True) == last
    assert "overwriting study-2.study, the last of 2" in capsys.readouterr().err
    assert chosen(None) == Path("study-3.study")
    assert "give --out study-2.study with --resume or --replace" in capsys.readouterr().err
    with pytest.raises(StoreError, match="already exists"):
        chosen(last)
    (measured / "study-3.study").rmdir()


def test_what_is_written_on_request_goes_with_its_study(tmp_path: Path) -> None:
    """Figures of the study that was there would stand beside those of the next one."""
    ours = ("plan.json", "table.csv", "parts.csv", "scaling.csv", "series.csv")
    others = ("against.html", "change.json", "alone.html", "alone.json")
    for name in (*ours, *others, "notes.txt"):
        (tmp_path / name).write_text("of before")
    clear(tmp_path, replace=True)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.slow
def test_replace_overwrites_a_study_and_leaves_other_files(tmp_path: Path) -> None:
    study = write_study(tmp_path, plan=PLAN)
    assert paribus("run", study, "--out", "out", cwd=tmp_path).returncode == 0
    (tmp_path / "out" / "notes.txt").write_text("mine")
    before = (tmp_path / "out" / "launches.db").read_bytes()
    again = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "--replace" in again.stderr
    assert (tmp_path / "out" / "launches.db").read_bytes() == before
    study.write_text(study.read_text().replace("Which?", "Which one?"))
    paribus("run", study, "--out", "out", "--replace", cwd=tmp_path, code=0)
    assert "Which one?" in plan_of(tmp_path / "out")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


@pytest.mark.slow
def test_a_directory_without_a_good_launch_is_used_again(tmp_path: Path) -> None:
    study = write_study(tmp_path, script="echo nothing to see", plan=PLAN)
    assert paribus("run", study, cwd=tmp_path).returncode == 4
    study.write_text(study.read_text().replace("echo nothing to see", "echo 2.50013"))
    paribus("run", study, cwd=tmp_path, code=0)
    assert [path.name for path in tmp_path.glob("*.study")] == ["study.study"]
    for path in (tmp_path / "study.study" / "logs").glob("*.out"):
        assert "nothing to see" not in path.read_text()


@pytest.mark.parametrize("name", ["notes.txt", "plan.txt"])
def test_a_directory_of_other_things_is_never_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    for replace in (False, True):
        with pytest.raises(StoreError, match="already exists"):
            chosen(tmp_path, replace=replace)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("how", ["", "resume", "replace"])
def test_a_study_that_is_at_work_is_left_alone(tmp_path: Path, how: str) -> None:
    out = tmp_path / "out"
    again = {how: True} if how else {}
    with claimed("study", out, resume=False, replace=False):
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        with pytest.raises(AtWorkError, match="another Paribus is at work"):
            chosen(out, **again)
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


@pytest.mark.parametrize("made", [True, False], ids=["made", "there"])
def test_a_start_that_fails_before_its_plan_removes_what_it_made(
    tmp_path: Path, made: bool
) -> None:
    out = tmp_path / "out"
    if not made:
        out.mkdir()
    with pytest.raises(KeyboardInterrupt), chosen_still(out):
        (out / "progress.json").write_text("{}")
    assert out.exists() is not made
    with pytest.raises(KeyboardInterrupt), chosen_still(out):
        (out / "notes.txt").write_text("mine")
    assert (out / "notes.txt").read_text() == "mine"


def test_a_platform_that_is_still_switched_is_switched_back_first(tmp_path: Path) -> None:
    with Store(tmp_path, write=True) as store:
        Journal(store).switch("b")
    with pytest.raises(StoreError, match="left the platform switched"):
        clear(tmp_path, replace=True)
    with Store(tmp_path, write=True) as store:
        Journal(store).revert("b")
    clear(tmp_path, replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    discard(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.slow
def test_a_study_that_was_finished_meanwhile_is_not_removed(measured: Path) -> None:
    """Two runs may choose one directory while they compile; the second one must not win."""
    with pytest.raises(StoreError, match="already exists"):
        clear(measured / "study.study", replace=False)
    with Store(measured / "study.study") as store:
        assert len(store.counting()) == 18
