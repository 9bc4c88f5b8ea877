"""The examples in docstrings hold: what a reader sees there is what the function returns."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src"
INPUTS = SOURCES / "paribus/benchmarks/inputs"  # programs of arms, which nothing here imports
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text(), re.MULTILINE) and INPUTS not in path.parents
]


def test_there_are_examples() -> None:
    assert len(MODULES) > 40


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted
    assert not found.failed
