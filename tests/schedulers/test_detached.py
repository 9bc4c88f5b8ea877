"""`paribus run --detach`: the study is a job of its own, which submits those of its arms."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import indent

import pytest

from paribus.core import UserError
from paribus.schedulers.detached import check, script
from paribus.store.watched import read_standing
from paribus.studyfile.load import load_study
from processes import ran
from schedulers.slurm import Site, missing
from schedulers.test_slurm import check_whole, run, shared, site, stored, study
from studies import write_arms

__all__ = ["shared", "site"]  # fixtures

# Pocket hosts share out cores, and the arms' nodes need not be alike: --anyway.
DETACH = ("--anyway", "--detach", "--detach-option=--partition=p")


def watch(folder: Path) -> tuple[int, str]:
    argv = [sys.executable, "-m", "paribus", "watch", "out"]
    done = ran(argv, cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_detached_study_runs_to_its_end(site: Site, shared: Path) -> None:
    study(shared, nodes=1)
    said = run(site, shared, "run", "study.toml", "--out", "out", *DETACH, code=0)
    assert "to watch it: paribus watch out" in said
    [job] = [line.split() for line in site.jobs()]
    refused = run(site, shared, "run", "study.toml", "--out", "out", *DETACH, code=2)
    assert f"is job {job[0]}" in refused or "at work" in refused
    code, said = watch(shared)
    log = (shared / "out.log").read_text()
    assert code in (0, 3), said + log
    assert "ended" in said
    assert "blocks 8 of at most 8" in log
    assert log.count("submitted job") == 2
    check_whole(shared / "out")
    site.until(lambda: site.jobs() == [])


@pytest.mark.slow
def test_the_job_of_a_study_is_ended_like_any_other(site: Site, shared: Path) -> None:
    study(shared, 'name = "command"\nargv = ["sleep", "0.5"]\ndirectory = "{scratch}"', nodes=1)
    said = run(site, shared, "run", "study.toml", "--out", "out", *DETACH, code=0)
    job = site.jobs()[0].split()[0]
    site.until(lambda: stored(shared / "out") >= 2)
    site.ask("scancel", "--batch", "--signal=INT", job)
    code, said = watch(shared)
    assert code == 130, said
    assert "interrupted" in said
    site.until(lambda: site.jobs() == [])


def test_a_job_that_never_began_is_said(site: Site, shared: Path) -> None:
    """It was cancelled while it waited, as is one whose node does not see the directory."""
    study(shared, nodes=1)
    held = (*DETACH, "--detach-option=--hold")
    said = run(site, shared, "run", "study.toml", "--out", "out", *held, code=0)
    job = site.jobs()[0].split()[0]
    site.ask("scancel", job)
    site.until(lambda: site.jobs() == [])
    said = run(site, shared, "watch", "out", code=2)
    assert f"job {job} has ended, and the study did not begin" in said


def test_what_cannot_be_a_job_is_refused_and_leaves_nothing(site: Site, shared: Path) -> None:
    study(shared, nodes=1)
    words = ("run", "study.toml", "--out", "out", "--detach", "--detach-option=--partition=nope")
    said = run(site, shared, *words, code=2)
    assert "Slurm refused the job of the study" in said
    assert not (shared / "out").exists()
    write_arms(shared, factor="f")
    said = run(site, shared, "run", "study.toml", "--out", "out", "--detach", code=2)
    assert "no arm of this study has a scheduler" in said
    assert read_standing(shared / "out") is None


def test_a_dry_run_prints_the_job_that_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lack := missing():
        pytest.skip(f"Slurm is not installed: no {', '.join(lack)}")
    study(tmp_path, nodes=1)
    words = ("run", "study.toml", "--out", "out", *DETACH)
    argv = [sys.executable, "-m", "paribus", *words, "--dry-run"]
    done = ran(argv, cwd=tmp_path, code=0)
    monkeypatch.chdir(tmp_path)
    whole = script(Path("out"), [sys.executable, "-m", "paribus", *words], ["--partition=p"])
    assert f"the job that the study is (sbatch):\n{indent(whole, '  ')}" in done.stdout
    assert [one.name for one in tmp_path.iterdir()] == ["study.toml"]


def test_only_slurm_takes_a_study_as_a_job(tmp_path: Path) -> None:
    asked = 'scheduler = { name = "flux", nodes = 1, time = "5 min" }'
    with pytest.raises(UserError, match="its scheduler is flux: only Slurm runs a study"):
        check(load_study(write_arms(tmp_path, asked, asked, factor="f")))
