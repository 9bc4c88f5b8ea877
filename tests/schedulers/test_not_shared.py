"""A real Slurm whose nodes do not see the home directory of the login node: they have their own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi
from paribus.launch.sharing import needed, unshared
from paribus.studyfile.load import load_study
from processes import executable, ran
from schedulers.slurm import Site
from schedulers.test_slurm import LATENCY, check_whole, one_rank_each, run, site, study

__all__ = ["site"]  # the fixture

# Hosts of a pocket have a /tmp of their own, in which tmp_path is.


def alone(home: Path) -> dict[str, Any]:
    """Return the variables of a user with this home."""
    return {"HOME": str(home), "PARIBUS_CACHE": "", "XDG_CACHE_HOME": ""}


@pytest.mark.slow
def test_a_study_needs_no_home_on_its_nodes(site: Site, tmp_path: Path) -> None:
    study(tmp_path, LATENCY, mpi=one_rank_each())
    run(site, tmp_path, "run", "study.toml", "--out", "out", **alone(tmp_path))
    check_whole(tmp_path / "out")


def only_here(folder: Path, what: str) -> Path:
    """Write a study that needs something in `folder`, and return what."""
    executable(folder / "app.sh", "")
    lies = {"program": folder / "app.sh", "directory": folder, "mpi": folder / "mpi"}[what]
    if what == "mpi":
        lies.symlink_to(Path(any_mpi().mpicxx).parents[1])
    argv = lies if what == "program" else "true"
    there = lies if what == "directory" else "{scratch}"
    mpi = f'mpi = "{lies}"\nranks_per_host = 1\n' if what == "mpi" else ""
    text = f'name = "command"\nargv = ["{argv}"]\ndirectory = "{there}"'
    study(folder, LATENCY if mpi else text, nodes=2 if mpi else 1, mpi=mpi)
    return lies


@pytest.mark.parametrize("what", ["program", "directory", "mpi"])
def test_what_only_the_login_node_sees_is_named_with_the_fix(
    site: Site, tmp_path: Path, what: str
) -> None:
    lies = only_here(tmp_path, what)
    said = run(site, tmp_path, "run", "study.toml", "--out", "out", **alone(tmp_path), code=2)
    before, _, after = said.partition("submitted job")
    assert f"not on a network file system: {lies} (" in before
    missing = {
        "program": f"h1: study.toml: command: no executable file {lies}",
        "directory": "h1: study.toml: command: no directory",
        "mpi": f"h1: {lies}: is not a directory",
    }
    assert missing[what] in after
    assert "it is on this machine, and not there, as where the home directory is not shared" in said
    assert not (tmp_path / "out").exists()
    site.until(lambda: site.jobs() == [])


@pytest.mark.parametrize("what", ["program", "directory", "mpi"])
def test_a_dry_run_names_what_nodes_may_not_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    lies = only_here(tmp_path, what)
    read = load_study(tmp_path / "study.toml")
    assert needed(read, tmp_path / "out") == [lies]
    assert unshared([lies, Path("/proc/self/status")]).keys() == {lies, Path("/proc/self/status")}
    argv = [sys.executable, "-m", "paribus", "run", "study.toml", "--dry-run"]
    done = ran(argv, cwd=tmp_path, code=0)
    assert f"not on a network file system: {lies} (" in done.stderr
    assert "each node must see this at the same path" in done.stderr
    monkeypatch.setenv("SLURM_JOB_ID", "7")  # the node itself is asked
    assert needed(read, tmp_path / "out") == []


def test_what_a_site_installs_is_on_its_nodes(tmp_path: Path) -> None:
    text = 'name = "command"\nargv = ["/bin/true"]\ndirectory = "{scratch}"'
    asked = load_study(study(tmp_path, text))
    assert needed(asked, tmp_path / "out") == []
    arms = tuple(replace(arm, build=(("make",),)) for arm in asked.arms)
    assert needed(replace(asked, arms=arms), tmp_path / "out") == [tmp_path]


def test_a_study_that_its_job_does_not_see_is_said_before_and_after(
    site: Site, tmp_path: Path
) -> None:
    study(tmp_path, nodes=1)
    words = ("--detach", "--detach-option=--partition=p")
    said = run(site, tmp_path, "run", "study.toml", "--out", "out", *words, code=0)
    assert "not on a network file system: " in said
    assert "the job's node must see this at the same path" in said
    said = run(site, tmp_path, "watch", "out", code=2)
    assert "its node does not see this directory" in said
    site.until(lambda: site.jobs() == [])
