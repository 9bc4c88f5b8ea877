"""What a user reads is plain technical English: one style of words, percent and plural."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from parsed import parsed
from processes import ran

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "paribus"

PAGES = (
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "dev")),
    *sorted(SOURCE.rglob("*.toml")),
    *sorted((ROOT / "studies").rglob("*.toml")),
)

WORDS = (
    r"told",
    r"tells?",
    r"words? of",
    r"mend(s|ed|ing)?",
    r"for want of",
    r"done again",
    r"verdict withheld in",
    r"as of now",
    r"what differs is",
    r"times (less|more)",
    r"see to that",
    r"spoil",
    r"carr(y|ied|ies|ying)( \w+)? out",
    r"(is|are|be) said",
    r"pass(es|ed|ing) over",
    r"(a|no|its|stronger) word(?= (takes|rests)|s? for|[.,;:] the next)",
    r"made counters",
    r"(?<=, )for (it|they)",
)
"""Phrases that engineers stumble over, each with a plain one: "not given", "rerun", "3.21x"."""

REFUSED = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)

IN_CODE = [one for one in WORDS if one not in (r"words? of", r"(?<=, )for (it|they)")]
"""Of comments and docstrings, where "the words of a command" are its arguments."""

NOT_IN_PROSE = re.compile(rf"\b(?:{'|'.join(IN_CODE)})\b", re.IGNORECASE)
NOT_IN_NAMES = re.compile(r"(?<![^\W_])(told|tells?|mend(s|ed)?|carr(y|ied|ies)_out)(?![^\W_])")

ALLOWED = ("twelve ways to tell the masses",)
"""A title of a paper."""

COUNTED = re.compile(r" (ranks|launches|blocks|cores|lines|cases|sessions|threads|more blocks)\b")
"""What follows a number is made by units.count, or "1 ranks" is printed."""

NEVER_ONE = (
    "are not detectable in {} blocks ({} pairs",
    " of {} threads",
    "{} of {} launches failed",
    "after {} blocks",
    "a verdict takes about {} blocks",
    "a verdict takes at least {} blocks",
    "{} launches are too many",
    "{} launches.csv lists them all",
    "others used {} cores",
    "would need up to {} launches",
    "{} values at {} cases",
    "has more than {} blocks of one benchmark",
    "{} of {} cases of {}",
)
"""Sentences whose number is never 1, has decimals, or is a list."""


PROGRAMS = (SOURCE / "benchmarks" / "inputs" / "training.py",)
"""What launches start: stored studies know their sources by hash."""


@cache
def files() -> dict[Path, list[ast.AST]]:
    """Return the Python files of Paribus, each with all its nodes."""
    found = {path: parsed(path)[1] for path in SOURCE.rglob("*.py")}
    assert len(found) > 100
    return found


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Return line and text of every string of a file but docstrings; `{}` stands for a value."""
    nodes = files()[path]
    found, skipped = [], set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            found.append((node.lineno, "".join(map(str, parts))))
        elif id(node) not in skipped and isinstance(node, ast.Constant):
            found.append((node.lineno, str(node.value)))
    return found


def refused(text: str) -> list[str]:
    """Return the phrases of a text that a user should not read."""
    for title in ALLOWED:
        text = text.replace(title, "")
    plain = " ".join(text.split())
    return [m[0] for m in REFUSED.finditer(plain)]


@pytest.mark.parametrize(
    "text",
    [
        *("Factor: not told", "the block was\ndone again", "14.2 times less", "a word of it"),
        *("it is\nsaid", "lost, for it", "carried\nout", "carry it out"),
    ],
)
def test_the_list_of_phrases_finds_what_it_should(text: str) -> None:
    assert refused(text)
    assert not refused("Factor: not given; the block was rerun; 14.2x lower")


def test_words_are_spelled() -> None:
    """By a list of common errors, which finds what it should."""
    read = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "src"]
    for words, code in ((["-"], 65), (read, 0)):
        ran(
            [sys.executable, "-m", "codespell_lib", *words],
            cwd=ROOT,
            input="An occured error",
            code=code,
        )


def test_strings_of_the_code_are_plain() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase}"
        for path in files()
        for line, text in texts(path)
        if " " in text
        for phrase in refused(text)
    ]
    assert found == []


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment and docstring of a file."""
    with path.open("rb") as file:
        comments = [t for t in tokenize.tokenize(file.readline) if t.type == tokenize.COMMENT]
    yield from ((one.start[0], one.string) for one in comments)
    for node in parsed(path)[1]:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of what a file defines."""
    for node in parsed(path)[1]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_comments_docstrings_and_names_are_plain() -> None:
    found = []
    for path in (one for room in ("src", "tests", "tools") for one in (ROOT / room).rglob("*.py")):
        text = path.read_text()
        if path == Path(__file__) or path in PROGRAMS:
            continue
        if NOT_IN_PROSE.search(" ".join(text.split())):
            for line, said in prose(path):
                found += [(path, line, m[0]) for m in NOT_IN_PROSE.finditer(" ".join(said.split()))]
        if NOT_IN_NAMES.search(text):
            found += [(path, line, one) for line, one in names(path) if NOT_IN_NAMES.search(one)]
    assert not found, "\n".join(
        f"{path.relative_to(ROOT)}:{line}: {it}" for path, line, it in found
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_plain(page: Path) -> None:
    assert refused(page.read_text()) == []


def test_numbers_agree_with_their_nouns() -> None:
    """A value before a plural noun comes from units.count, which knows the singular."""
    found = []
    for path in files():
        if {"readers", "harnesses", "benchmarks", "tools", "probes"} & {*path.parts}:
            continue  # errors about outputs: what a tool printed, most of them above 1
        for line, text in texts(path):
            known = any(phrase in text for phrase in NEVER_ONE)
            if not known and any(COUNTED.match(rest) for rest in text.split("{}")[1:]):
                found.append(f"{path.relative_to(ROOT)}:{line}: {text}")
    assert found == []


def test_percent_has_one_style() -> None:
    """`2 %`, as units.percent writes it: never a format of Python's own, which says 2%."""
    found = []
    for path, nodes in files().items():
        for node in nodes:
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec)
                if "%" in spec and "probes" not in path.parts:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {spec}")
    assert found == []
