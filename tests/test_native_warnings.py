"""The compiler says nothing of the native sources; they start MPI only when they are asked to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

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
