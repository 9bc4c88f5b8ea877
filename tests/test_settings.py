"""Nothing that a tool prints is skipped: each word and number of it is a figure or a setting.

The test knows no reader. In every recorded output each word and number of every line is changed,
one at a time. A line is a row of results if one of these changes, or its loss, changes a sample.
Of every other line each change makes another key, another fact, a refusal or a warning; or a row of
settings.toml says why the line does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paribus.core import ParseError
from paribus.readers import settings
from paribus.readers.harness import Measured
from paribus.readers.known import HARNESSES, TOOLS, file_of, harnesses, readers
from paribus.readers.text import plain

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = [*(name for names in TOOLS.values() for name in names), *HARNESSES]
"""Our own kernels are not among them: they print what their reader asks for, and nothing else."""

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[.][0-9]+)?")
WIDE = 400
"""Characters of a line in which words are changed: more are lists of features and addresses."""


class Said(NamedTuple):
    """What is read of an output: what the figures are, and all else that is known of it."""

    samples: object
    settings: object


def outputs(name: str) -> list[Path]:
    found = sorted((FIXTURES / name).glob("good-*"))
    return [path for path in found if path.suffix != ".json" or not _beside(path)]


def _beside(path: Path) -> bool:
    return path.with_suffix(".out").exists() or path.with_suffix(".err").exists()


OUTPUTS = [(name, path) for name in NAMES for path in outputs(name)]


def said(name: str, text: str) -> Said | None:
    """Return what is read of a text, None where it is refused."""
    try:
        if name in HARNESSES:
            launches = harnesses()[name].read_clean(text)
            measured = [one for one in launches if isinstance(one, Measured)]
            failed = [one for one in launches if not isinstance(one, Measured)]
            readings: list[Any] = [one.reading for one in measured]
            more: Any = failed, [(one.metrics, one.arm) for one in measured]
        else:
            readings, more = [readers()[name].read_clean(text)], None
    except ParseError:
        return None
    shown = settings.printed(file_of(name), text)
    rest = [(one.version, one.parameters, one.ranks, one.facts, one.guards) for one in readings]
    return Said([one.samples for one in readings], (rest, shown, more))


def changed(token: str) -> str:
    """Return another word, or another number of as many digits."""
    if token[0].isdigit():
        return f"{int(token[0]) % 9 + 1}{token[1:]}"
    return f"{token}x"


def mutants(line: str) -> Iterator[str]:
    for token in _TOKEN.finditer(line[:WIDE]):
        yield line[: token.start()] + changed(token[0]) + line[token.end() :]


def passed_over(name: str, text: str, at: int, lines: list[str]) -> list[str]:
    """Return the changes of a line that nothing says, none for a row of results."""
    whole = known(name, text)
    without = said(name, "\n".join([*lines[:at], *lines[at + 1 :]]))
    if whole and without and without.samples != whole.samples:
        return []
    found = []
    for line in mutants(lines[at]):
        other = "\n".join([*lines[:at], line, *lines[at + 1 :]])
        now = said(name, other)
        if now is None or whole is None:
            continue
        if now.samples != whole.samples:
            return []
        if now.settings == whole.settings and not _settled(name, text, other):
            found.append(f"{lines[at].strip()!r} -> {line.strip()!r}")
    return found


def _settled(name: str, text: str, other: str) -> bool:
    """Return whether a row of the table says why the lines that are no more did not matter."""
    before, after = (settings.what_matters(file_of(name), one).split("\n") for one in (text, other))
    return {*before} <= {*after}


known = lru_cache(maxsize=64)(said)


@cache
def of(path: Path) -> str:
    return plain(path.read_text())


@cache
def lines_of(path: Path) -> list[str]:
    return of(path).split("\n")


def test_every_tool_has_a_table() -> None:
    assert {*TOOLS, *HARNESSES} == {*settings.tables()}
    assert all(one.why for table in settings.tables().values() for one in table.nothing)
    assert len(OUTPUTS) > 250
    assert all(said(name, of(path)) is not None for name, path in OUTPUTS)


@pytest.mark.parametrize("file", [*TOOLS, *HARNESSES])
def test_nothing_is_passed_over(file: str, sample: Any) -> None:
    places = [
        (name, path, at)
        for name, path in OUTPUTS
        if file_of(name) == file
        for at, line in enumerate(lines_of(path))
        if _TOKEN.search(line)
    ]
    found = {
        f"{path.stem}, line {at + 1}: {one}"
        for name, path, at in sample(places)
        for one in passed_over(name, of(path), at, lines_of(path))
    }
    assert found == set()
