"""The wheel holds everything that a study needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import yaml

import paribus

ROOT = Path(__file__).parent.parent


def test_the_wheel_holds_sources_scripts_page_and_studies(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
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


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == paribus.__version__
    assert citation["license"] == "Apache-2.0"
