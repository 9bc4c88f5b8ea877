"""`paribus new`, and the recipes: files to edit that load, and studies that run as they ship."""

from __future__ import annotations

import re
from pathlib import Path

from paribus.core import StudyError
from paribus.studyfile.load import load_study
from paribus.studyfile.shipping import shipped_studies
from studies import paribus

RECIPES = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text()
NAMES = re.findall(r"^\|[^|]+\| `([a-z-]+)` \|", RECIPES, re.M)
COMMENTED = re.compile(r"# (\w+ +=|\[\[).*")


def test_a_new_study_loads_and_takes_the_next_free_name(tmp_path: Path) -> None:
    for name in ("study.toml", "study-2.toml"):
        said = paribus("new", cwd=tmp_path)
        assert said.returncode == 0, said.stderr
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
    said = paribus("new", "memory", cwd=tmp_path)
    assert said.returncode == 0
    assert (tmp_path / "memory.toml").read_text() == shipped_studies()["memory"].read_text()
    (tmp_path / "notes.txt").write_bytes(b"\xff")
    fixes = {"memorry": "did you mean 'memory'?", "notes.txt": "those that ship: "}
    for name, fix in fixes.items():
        said = paribus("new", name, cwd=tmp_path)
        assert said.returncode == 2
        assert said.stderr.startswith(f"paribus: {name}: no study of this name ships\n")
        assert fix in said.stderr
    assert len(list(tmp_path.iterdir())) == 2


def test_the_source_that_a_study_builds_comes_along(tmp_path: Path) -> None:
    assert paribus("new", "compiler-flags", cwd=tmp_path).returncode == 0
    arms = load_study(tmp_path / "compiler-flags.toml").arms
    assert {arm.source for arm in arms} == {str(tmp_path / "stencil.c")}
    (tmp_path / "stencil.c").write_text("mine")
    said = paribus("new", "compiler-flags", cwd=tmp_path)
    assert said.returncode == 2
    assert "stencil.c: is there already" in said.stderr
    assert (tmp_path / "stencil.c").read_text() == "mine"


def test_the_recipes_are_seven_studies_that_ship() -> None:
    assert len(NAMES) == 7
    assert set(NAMES) <= set(shipped_studies())


def test_a_recipe_launches_both_arms(tmp_path: Path) -> None:
    """Other tests run the studies of networks, transports, variables and wrappers."""
    said = paribus("run", "python-start", "--dry-run", "--out", "out", cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "pilot" in said.stdout
