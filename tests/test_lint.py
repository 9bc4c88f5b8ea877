"""`./dev lint` reads every shell script of Paribus, also those inside Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import lint_shell
from native import COMMON, NATIVE, PROGRAMS, compiled

SOURCES = [*PROGRAMS, *(f"common/{name}" for name in COMMON)]


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_compiles_without_a_warning(source: str, tmp_path: Path) -> None:
    """Warnings are those of the syntax: the optimiser's would take as long as compiling does."""
    assert compiled(NATIVE / f"{source}.cpp", tmp_path / "none", "-fsyntax-only") == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++")
def test_clang_warns_of_nothing(tmp_path: Path) -> None:
    flags = ("-fsyntax-only", "-Qunused-arguments")
    said = {
        source: compiled(NATIVE / f"{source}.cpp", tmp_path / "none", *flags, cxx="clang++")
        for source in SOURCES
    }
    assert {source: text for source, text in said.items() if text} == {}


def test_a_session_starts_mpi_when_it_is_asked_to(tmp_path: Path) -> None:
    source = tmp_path / "made.cpp"
    source.write_text(
        "".join(f'#include "{NATIVE}/common/{name}.cpp"\n' for name in COMMON) + "int main() {\n"
        "    paribus::Session session{paribus::Spec()};\n"
        "    int started = 1;\n"
        "    MPI_Initialized(&started);\n"
        "    return started;\n"
        "}\n"
    )
    assert compiled(source, tmp_path / "made", "-O0") == ""
    assert subprocess.run([tmp_path / "made"], check=False).returncode == 0


ROOT = Path(__file__).parent.parent
MODULE = '''\
"""A module with two scripts."""

_SCRIPT = """\\
word=$1
sleep %d $word
"""
DATA = "sed is no script: echo $word"


def command(tries):
    text = _SCRIPT % tries
    return ("/bin/sh", "-c", text, "name"), ["sh", "-c", "ls *.txt | cat"]
'''


def test_scripts_are_found_where_they_are() -> None:
    found = list(lint_shell.scripts(ROOT))
    names = {str(one.path.relative_to(ROOT)) for one in found}
    assert {"dev", ".ci/run"} <= names
    assert {str(p.relative_to(ROOT)) for p in (ROOT / "src").rglob("*.sh")} <= names
    assert {
        "src/paribus/launch/launchers/serving.py",
        "src/paribus/tools/incast.py",
        "src/paribus/launch/asking.py",
    } <= names


def test_a_fault_inside_python_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    said = "".join(lint_shell.check(one) for one in lint_shell.embedded(path))
    assert {line.rsplit(":", 3)[0] for line in said.splitlines()} == {f"{path}:5", f"{path}:12"}
    assert "[SC2086]" in said


def test_every_script_is_clean() -> None:
    assert [line for one in lint_shell.scripts(ROOT) for line in lint_shell.check(one)] == []
