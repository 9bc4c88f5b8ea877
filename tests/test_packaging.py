"""Wheel and sdist hold everything that a study needs, and the version of their tag."""

from __future__ import annotations

import json
import re
import sys
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from packaging.metadata import Metadata

import paribus
from archives import unpack
from processes import ran

ROOT = Path(__file__).parent.parent
MOST = 3 << 20


def built(folder: Path, target: str) -> Path:
    """Return the wheel or sdist of this tree."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    ran(words, cwd=ROOT, code=0)
    (found,) = folder.glob("paribus-*")
    assert found.stat().st_size < MOST
    return found


def test_the_wheel_holds_sources_scripts_page_and_studies(tmp_path: Path) -> None:
    with zipfile.ZipFile(built(tmp_path, "wheel")) as archive:
        packed = set(archive.namelist())
        version = archive.read("paribus/VERSION").decode().strip()
        (about,) = [name for name in packed if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(archive.read(about), validate=True)
    package = ROOT / "src" / "paribus"
    wanted = {
        f"paribus/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    wanted |= {f"paribus/studies/{path.name}" for path in (ROOT / "studies").glob("*.toml")}
    wanted |= {"paribus/studies/stencil.c", "paribus/studies/pcie-stand-in.py"}
    assert len(wanted) > 80
    assert wanted <= packed
    assert not any("tests/" in name or name.endswith(".pyc") for name in packed)
    assert str(metadata.version) == version
    assert version.partition("+")[0] == paribus.__version__
    assert not (tmp_path / "VERSION").exists()


def test_an_sdist_builds_a_wheel_of_its_own_version(tmp_path: Path) -> None:
    unpack(built(tmp_path, "sdist"), tmp_path)
    (tree,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert not (tree / "tests").exists()
    version = (tree / "src/paribus/VERSION").read_text().strip()
    assert tree.name == f"paribus-{version}"
    assert hatch_build(tree).version() == version


# --- the version -------------------------------------------------------------------------------


def hatch_build(tree: Path) -> Any:
    spec = spec_from_file_location("hatch_build", tree / "tools" / "hatch_build.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a repository of one commit with what a version is made of."""
    for name in ("src/paribus/__init__.py", "tools/hatch_build.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    write(tmp_path, "## 1.2.0 (unreleased)")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def write(tree: Path, heading: str) -> None:
    (tree / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n## 1.1.0 (2026-01-01)\n")


def git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=me", "-c", "user.email=me@here", "-c", "tag.gpgSign=false")
    done = ran(["git", *who, *words], cwd=tree, code=0)
    return done.stdout.strip()


def commit(tree: Path) -> None:
    git(tree, "add", "-A")
    git(tree, "-c", "commit.gpgSign=false", "commit", "-q", "-m", "change")


def test_a_commit_without_a_tag_is_of_a_development_version(tree: Path) -> None:
    assert hatch_build(tree).version() == f"1.2.0.dev0+g{git(tree, 'rev-parse', 'HEAD')[:12]}"
    write(tree, "## 1.2.0 (2026-02-02)")  # as dated as a release, but not tagged
    commit(tree)
    assert hatch_build(tree).version().startswith("1.2.0.dev0+g")


def test_the_commit_of_a_tag_is_the_release(tree: Path) -> None:
    write(tree, "## 1.2.0 (2026-02-02)")
    commit(tree)
    git(tree, "tag", "-a", "v1.2.0", "-m", "1.2.0")
    assert hatch_build(tree).version() == "1.2.0"
    write(tree, "## 1.2.0 (2026-03-03)")
    assert hatch_build(tree).version().startswith("1.2.0.dev0+g")


def test_a_tag_of_another_version_is_refused(tree: Path) -> None:
    git(tree, "tag", "v1.2.0")  # the heading is not dated
    with pytest.raises(ValueError, match=r"tagged v1.2.0, but CHANGELOG.md is at 1.2.0.dev0"):
        hatch_build(tree).version()


def test_without_git_the_heading_counts(tree: Path) -> None:
    (tree / ".git").rename(tree / "elsewhere")
    assert hatch_build(tree).version() == "1.2.0.dev0"


def test_the_citation_is_valid() -> None:
    """By the schema of the Citation File Format 1.2.0 (CC BY 4.0, its authors)."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    schema = json.loads((ROOT / "tests/schemas/citation-1.2.0.json").read_text())
    jsonschema.Draft7Validator(schema).validate(citation)
    assert citation["license"] == "Apache-2.0"
    assert "version" not in citation  # it would be a second place that names one
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate(citation | {"type": "sofware"})


# --- recipes of others' package managers --------------------------------------------------------


def test_recipes_need_what_the_package_needs() -> None:
    """Names and least versions: conda's of all, Spack's of what has a recipe there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {one.lower().replace(">=", " >=") for one in project["dependencies"]}
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    assert set(recipe["requirements"]["run"]) == needed | {"python >=3.11"}
    assert project["requires-python"] == ">=3.11"
    spack = (ROOT / "packaging/spack/packages/py_paribus/package.py").read_text()
    for one in needed - {"vl-convert-python >=1.7"}:
        name, least = one.split(" >=")
        found = re.search(rf'depends_on\("py-{name}@([\d.]+):", type=\("build", "run"\)\)', spack)
        assert found, name
        assert found[1].removesuffix(".0") == least.removesuffix(".0")
    release = paribus.__version__.removesuffix(paribus.DEVELOPMENT)
    assert recipe["context"]["version"] == release
    assert f'version("{release}")' in spack
