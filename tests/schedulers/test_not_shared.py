"""A real Slurm whose nodes do not see the home directory of the login node: they have their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpis import any_mpi
from schedulers.slurm import Site
from schedulers.test_slurm import LATENCY, check_whole, run, site, study

__all__ = ["site"]  # the fixture

# Hosts of a pocket have a /tmp of their own, in which tmp_path is.


def alone(home: Path) -> dict[str, str]:
    """Return the variables of a user with this home."""
    return {"HOME": str(home), "PARIBUS_CACHE": "", "XDG_CACHE_HOME": ""}


@pytest.mark.slow
def test_a_study_needs_no_home_on_its_nodes(site: Site, tmp_path: Path) -> None:
    mpi = Path(any_mpi().mpicxx).parents[1]
    study(tmp_path, LATENCY, mpi=f'mpi = "{mpi}"\nranks_per_host = 1\n')
    code, said = run(site, tmp_path, "run", "study.toml", "--out", "out", **alone(tmp_path))
    assert code in (0, 3), said  # on a busy machine a verdict may be withheld
    check_whole(tmp_path / "out")


@pytest.mark.parametrize("what", ["program", "directory"])
def test_what_only_the_login_node_sees_is_named_with_the_fix(
    site: Site, tmp_path: Path, what: str
) -> None:
    (tmp_path / "app.sh").write_text("#!/bin/sh\n")
    (tmp_path / "app.sh").chmod(0o755)
    program = f"{tmp_path}/app.sh"
    argv, there = (program, "{scratch}") if what == "program" else ("true", str(tmp_path))
    study(tmp_path, f'name = "command"\nargv = ["{argv}"]\ndirectory = "{there}"', nodes=1)
    code, said = run(site, tmp_path, "run", "study.toml", "--out", "out", **alone(tmp_path))
    assert code == 2, said
    missing = f"no executable file {program}" if what == "program" else "no directory"
    assert f"h1: study.toml: command: {missing}" in said
    assert "it is on this machine, and not there, as where the home directory is not shared" in said
    assert not (tmp_path / "out").exists()
    site.until(lambda: site.jobs() == [])


def test_a_study_that_its_job_does_not_see_is_said_before_and_after(
    site: Site, tmp_path: Path
) -> None:
    study(tmp_path, nodes=1)
    words = ("--detach", "--detach-option=--partition=p")
    code, said = run(site, tmp_path, "run", "study.toml", "--out", "out", *words)
    assert code == 0, said
    assert "not on a network file system: " in said
    assert "the job's node must see this at the same path" in said
    code, said = run(site, tmp_path, "watch", "out")
    assert code == 2
    assert "its node does not see this directory" in said
    site.until(lambda: site.jobs() == [])
