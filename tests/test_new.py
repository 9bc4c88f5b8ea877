"""`paribus new`, and the recipes: files to edit that load, and studies that run as they ship."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpis import installations
from paribus import containers
from paribus.__main__ import main
from paribus.cli import run
from paribus.core import Container, Selection, Study, StudyError, UserError
from paribus.launch import pilot
from paribus.launch.local import capture
from paribus.launch.machine import HERE, beside
from paribus.launch.toolchain import find_mpi
from paribus.studyfile.load import load_study
from paribus.studyfile.shipping import shipped_studies
from processes import ran
from studies import command, paribus

# Every study that ships starts on a machine with the README's set-up, or says what it lacks.
#
# Each is launched once in each arm, with small cases: what it needs besides shows before that,
# with the command that brings it.

OF_HARDWARE = (
    *("clusters", "gpu", "gpu-ai", "roce-ib", "vm-npb", "cpu-policy", "numa", "pcie-topology"),
)
"""Studies that need hosts, adapters, a GPU, several NUMA nodes, a governor or a BMC."""

SMALL: Mapping[str, Any] = {
    "samples": 3,
    "iterations": 1,
    "class": "S",
    "compute_ms": 2,
    "count": 5,
    "table": 1 << 20,
    "size": 1 << 20,
    "operations": 10,
    "files": 10,
}
"""Values of parameters with which a launch takes little more than its start."""

pytestmark = pytest.mark.installed


def small(one: Selection) -> Selection:
    """Return a benchmark of a study with its first case alone, and few samples."""
    known = {key: SMALL.get(key, value) for key, value in one.parameters.items()}
    if "bytes" in known:
        known["bytes"] = [min(known["bytes"][0], 1 << 22)]
    return replace(one, parameters=known)


def shortened(*arguments: Any) -> Study:
    """Return a study with its first benchmark alone, a small one."""
    study = load_study(*arguments)
    return replace(study, benchmarks=(small(study.benchmarks[0]),))


@pytest.fixture
def readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The README's set-up: an MPI, maybe beside Paribus alone; one launch of each arm is made."""
    places = [str(one) for one in beside()]
    path = [one for one in os.environ["PATH"].split(":") if one not in places]
    monkeypatch.setenv("PATH", ":".join(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "load_study", shortened)
    monkeypatch.setattr(pilot, "ROUNDS", 1)
    try:
        find_mpi(None, HERE)
    except UserError as error:
        pytest.skip(str(error))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_studies().keys() - {*OF_HARDWARE}))
def test_it_starts_or_names_the_command_that_brings_what_it_lacks(
    name: str, readme: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = load_study(shipped_studies()[name])
    bridged = any(arm.container or arm.hosts for arm in study.arms)
    if bridged and (forbidden := containers.check(Container("namespace"), capture)):
        pytest.skip(forbidden)
    code = main(["run", name, "--dry-run"])
    out, err = capsys.readouterr()
    lacking = {arm.mpi for arm in study.arms if arm.mpi} - {one.family for one in installations()}
    if lacking:
        assert code == 2
        said = [line for line in err.splitlines() if "pip install" in line]
        assert len(said) == 1
        return
    assert code == 0, out + err
    assert "pilot, seconds per launch:" in out


# --- the command that brings a second MPI --------------------------------------------------------


@pytest.mark.slow
def test_a_second_mpi_comes_by_the_command_that_is_named(tmp_path: Path) -> None:
    """It is run; without an index, what it does is: the MPI is put where it would be."""
    first, *others = installations() or pytest.skip("no MPI here")
    wanted = "mpich" if first.family == "openmpi" else "openmpi"
    arms = f'[arms.one]\nmpi = "{Path(first.mpicxx).parent.parent}"\n[arms.two]\nmpi = "{wanted}"\n'
    text = f'question = "?"\nfactor = "mpi"\n{arms}[[benchmarks]]\nname = "latency"\n'
    (tmp_path / "study.toml").write_text(text)
    # An environment that has this checkout and pip, and no MPI.
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    source = Path(__file__).parent.parent / "src"
    path = (one for one in ("/usr/bin", "/bin") if not Path(one, "mpicxx").exists())
    own = {"PYTHONPATH": f"{source}:{sysconfig.get_path('purelib')}", "PATH": ":".join(path)}

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **own}
        return ran(words, cwd=tmp_path, env=env)

    shown = [f"{place}/bin/python", *command("run", "study.toml", "--dry-run", "--no-pilot")[1:]]
    lacks = started(*shown)
    assert lacks.returncode == 2, lacks.stdout
    (named,) = re.findall(r"`(.* -m pip install .*)`", lacks.stderr)
    assert f"--prefix {place}/{wanted} " in named
    done = started(*shlex.split(named))
    if done.returncode:
        (brought, *_) = [one for one in others if one.family == wanted] or pytest.skip(done.stderr)
        (place / wanted).symlink_to(Path(brought.mpicxx).parent.parent)
    has = started(*shown)
    assert has.returncode == 0, has.stderr
    assert f"{place}/{wanted}/bin/mpi" in has.stdout


RECIPES = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text()
NAMES = re.findall(r"^\|[^|]+\| `([a-z-]+)` \|", RECIPES, re.M)
COMMENTED = re.compile(r"# (\w+ +=|\[\[).*")


def test_a_new_study_loads_and_takes_the_next_free_name(tmp_path: Path) -> None:
    for name in ("study.toml", "study-2.toml"):
        said = paribus("new", cwd=tmp_path, code=0)
        assert said.stdout.splitlines()[0] == name
        assert load_study(tmp_path / name).arms
    assert paribus("new", "mine.toml", cwd=tmp_path).returncode == 0
    assert (tmp_path / "mine.toml").read_text() == (tmp_path / "study.toml").read_text()


def test_every_key_of_a_new_study_exists(tmp_path: Path) -> None:
    """Each line that is commented out, taken in alone: its value may not do, its key must."""
    paribus("new", cwd=tmp_path)
    lines = (tmp_path / "study.toml").read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if COMMENTED.fullmatch(line)]
    assert len(keys) > 20
    command = next(n for n in keys if lines[n].startswith("# [["))
    for number in keys:
        first = command if command < number <= command + 8 else number
        text = [
            line[2:] if first <= n <= number and COMMENTED.fullmatch(line) else line
            for n, line in enumerate(lines)
        ]
        (tmp_path / "one.toml").write_text("\n".join(text))
        refused = ""
        try:
            load_study(tmp_path / "one.toml")
        except StudyError as error:
            refused = str(error)
        assert "unknown key" not in refused, lines[number]


def test_a_study_that_ships_is_copied(tmp_path: Path) -> None:
    paribus("new", "memory", cwd=tmp_path, code=0)
    assert (tmp_path / "memory.toml").read_text() == shipped_studies()["memory"].read_text()
    (tmp_path / "notes.txt").write_bytes(b"\xff")
    fixes = {"memorry": "did you mean 'memory'?", "notes.txt": "those that ship: "}
    for name, fix in fixes.items():
        said = paribus("new", name, cwd=tmp_path, code=2)
        assert said.stderr.startswith(f"paribus: {name}: no study of this name ships\n")
        assert fix in said.stderr
    assert len(list(tmp_path.iterdir())) == 2


def test_the_source_that_a_study_builds_comes_along(tmp_path: Path) -> None:
    assert paribus("new", "compiler-flags", cwd=tmp_path).returncode == 0
    arms = load_study(tmp_path / "compiler-flags.toml").arms
    assert {arm.source for arm in arms} == {str(tmp_path / "stencil.c")}
    (tmp_path / "stencil.c").write_text("mine")
    said = paribus("new", "compiler-flags", cwd=tmp_path, code=2)
    assert "stencil.c: is there already" in said.stderr
    assert (tmp_path / "stencil.c").read_text() == "mine"


def test_the_recipes_are_seven_studies_that_ship() -> None:
    assert len(NAMES) == 7
    assert set(NAMES) <= set(shipped_studies())
