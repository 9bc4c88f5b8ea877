"""The kernel `loader` with Python modules: imported by all ranks, wrong, and not there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from native import program_of, started
from paribus.benchmarks import get
from paribus.core import Request
from paribus.launch.loaded import modules_path
from paribus.launch.machine import HERE
from paribus.readers.kernel import read


@pytest.fixture(scope="module")
def modules() -> Path:
    """Return a folder of 3 modules of 4 functions."""
    if not shutil.which("python3"):
        pytest.skip("no python3 on the PATH")
    return modules_path(3, 4, HERE)


def arguments(folder: Path, *more: str) -> tuple[str, ...]:
    words = ("--kind", "python", "--libraries", str(folder))
    return (*words, "--count", "3", "--functions", "4", *more)


def test_modules_are_imported_by_all_ranks(modules: Path) -> None:
    ended = started(program_of("loader"), *arguments(modules), ranks=2)
    assert ended.returncode == 0, ended.stderr
    samples = {sample.metric: sample for sample in read(ended.stdout).samples}
    assert set(samples) == {"startup", "load", "first_call"}
    assert dict(samples["load"].case.items) == {"modules": 3, "functions": 4}
    assert '"checked": 24,' in ended.stdout


@pytest.mark.slow
def test_a_wrong_value_and_a_missing_module_end_the_launch(modules: Path, tmp_path: Path) -> None:
    wrong = started(program_of("loader"), *arguments(modules, "--corrupt"), ranks=2)
    assert (wrong.returncode, wrong.stdout) == (1, "")
    case = '{"modules": 3, "functions": 4}'
    assert f"loader: wrong data at {case}: rank 1, position 11 of 12" in wrong.stderr
    missing = started(program_of("loader"), *arguments(tmp_path), ranks=1)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "No module named 'paribus_0000'" in missing.stderr
    assert "loader: python3 of rank 0 gave up" in missing.stderr


def test_python_is_looked_for_before_the_launch() -> None:
    defaults = {key: one.default for key, one in get("loader").parameters.items()}
    program = get("loader").command(Request({**defaults, "kind": "python"}, 4))
    assert program.needs == ("python3",)
    assert program.libraries == (100, 50, "python")
