"""The console sessions of docs/tutorials: each command is executed, and prints what the page shows.

A block that begins with `# not executed: REASON` is left out. What is printed is compared loosely:
a line `[...]` stands for any lines, and a number for any number with any unit of time.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from paribus import containers
from paribus.core import Container
from paribus.launch.local import capture
from processes import on_a_terminal

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
NAMED = re.compile(r"Write [^`]*to `([\w.-]+)`")
"""What the paragraph before a block says of the file that the block is the text of."""

LEFT_OUT = re.compile(r"# not executed: \S+")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
BARS = str.maketrans("", "", "━●┊│")
NUMBER = r"[-+]?\d[\d.,]*(?: (?:k|ns|us|ms|s|min)\b)?"


def plain(text: str) -> str:
    """Return a text without bars, on one line."""
    return " ".join(text.translate(BARS).split())


def expected(shown: str) -> re.Pattern[str]:
    """Return what a command prints where the page shows `shown`."""
    parts = []
    for part in shown.split("[...]"):
        pieces = re.split(NUMBER, plain(part))
        parts.append(NUMBER.join(re.escape(one).replace(r"\ ", r"\s*") for one in pieces))
    return re.compile(".*".join(parts), re.S)


def in_a_shell(command: str, folder: Path) -> tuple[int, str]:
    """Return how a command ended that a shell starts on a terminal, and what it printed there."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    words = ["sh", "-ec", command]
    code, drawn = on_a_terminal(
        words, folder, errors=sys.stderr, PATH=path, NO_COLOR="1", COLUMNS="80"
    )
    return code, ESCAPES.sub("", drawn)


def sessions(text: str) -> list[tuple[str, str]]:
    """Return each command of a block with what is shown below it."""
    return [
        (command, shown)
        for command, _, shown in (one.partition("\n") for one in text.split("$ ")[1:])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_is_a_session(page: Path, tmp_path: Path, record_property: Any) -> None:
    text = page.read_text()
    lacking = (
        containers.check(Container("namespace"), capture)
        if "pocket:" in text or '"namespace"' in text
        else ""
    )
    if lacking:
        pytest.skip(lacking)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    ran = 0
    for block in BLOCK.finditer(text):
        kind, lines = block.groups()
        named = NAMED.search(text[: block.start()].rstrip().rpartition("\n\n")[2])
        if LEFT_OUT.match(lines):
            continue
        ran += not named
        if kind == "console":
            for command, shown in sessions(lines):
                _, printed = in_a_shell(command, tmp_path)
                wanted = expected(shown)
                assert wanted.fullmatch(plain(printed)), f"{command}:\n{printed}"
        elif named:
            (tmp_path / named[1]).write_text(lines)
        else:
            assert kind == "sh", lines
            assert in_a_shell(lines, tmp_path)[0] == 0, lines
    record_property("blocks executed", ran)


def test_what_is_not_executed_says_why(record_property: Any) -> None:
    blocks = [block for page in PAGES for block in BLOCK.findall(page.read_text())]
    wrong = [text for _, text in blocks if "not executed" in text and not LEFT_OUT.match(text)]
    assert wrong == []
    left_out = sum(bool(LEFT_OUT.match(lines)) for _, lines in blocks)
    record_property("blocks left out", left_out)
    assert left_out < len(blocks) / 3


def test_output_is_compared_loosely_but_not_the_words() -> None:
    shown = "b is faster (2.81x lower).\n[...]\n1.26 -> 20.5 us\n"
    assert expected(shown).fullmatch(plain("b is faster (12x lower).\n\nmore\n980 ns -> 1,2 ms"))
    assert not expected(shown).fullmatch(plain("b is slower (12x lower).\n\nmore\n1 -> 2 us"))
