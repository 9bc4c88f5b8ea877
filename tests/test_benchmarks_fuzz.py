"""Readers of tools meet text that nobody has seen: an answer or a ParseError, and soon.

A regular expression whose time grows faster than the text is found by lines, words and runs of one
character repeated thousands of times; anything else than a ParseError by seeded random damage.
PARIBUS_FUZZ_S is how many seconds each reader gets (`./dev fuzz` damages fixtures instead).
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.benchmarks import BENCHMARKS
from paribus.errors import ParseError

FIXTURES = Path(__file__).parent / "fixtures"
READERS = [name for name, benchmark in BENCHMARKS.items() if benchmark.read is not None]
SECONDS = float(os.environ.get("PARIBUS_FUZZ_S", "0.15"))
REPEATED = 20_000
SLOWEST_S = 1.0
"""For texts of at most a few hundred kB: 1,000 times what a reader may take."""
TOKENS = (
    *("NaN", "inf", "-0.0", "1e309", "0", "9" * 400, "\0", "\x1b[0m", "\r", "é"),
    *(" ", "\t", "#", '"', "{", "]", "%"),
)


def texts(name: str) -> list[str]:
    """Return the captured outputs of a benchmark, failures included."""
    paths = sorted((FIXTURES / name).glob("*.out"))
    return [path.read_text(errors="replace") for path in paths]


def seconds(name: str, text: str) -> float:
    """Return how long the reader of `name` took; raises what it must not raise."""
    read, recognise = BENCHMARKS[name].read, BENCHMARKS[name].recognise
    assert read is not None
    assert recognise is not None
    begun = time.process_time()
    recognise(text)
    with contextlib.suppress(ParseError):
        read(text)
    return time.process_time() - begun


def swollen(text: str) -> Iterator[str]:
    """Yield `text` with one of its lines, or a word or gap on it, repeated very often."""
    lines = text.split("\n")
    forms: set[str] = set()
    for i, line in enumerate(lines):
        form = re.sub(r"\d+", "0", line)
        if form in forms:
            continue
        forms.add(form)
        before, after = "\n".join([*lines[:i], ""]), "\n".join(["", *lines[i + 1 :]])
        times = REPEATED // (len(line) + 1) + 1
        yield before + (line + "\n") * times + after
        yield before + line + line[-1:] * REPEATED + after
        for gap in list(re.finditer(r"\s+|\d+|\w+", line))[: 1 + i % 3]:
            yield before + line[: gap.end()] + gap[0][-1:] * REPEATED + line[gap.end() :] + after


def damaged(text: str, draw: random.Random) -> str:
    """Return `text` with a few pieces of it moved, doubled, lost or replaced."""
    for _ in range(draw.randint(1, 4)):
        a, b, c = sorted(draw.randrange(len(text) + 1) for _ in range(3))
        text = draw.choice(
            (
                text[:a] + text[b:],
                text[:a] + text[b:c] + text[a:],
                text[:a] + draw.choice(TOKENS) + text[a:],
                text[:a] + text[b:c] + text[a:b] + text[c:],
                text[:a] + text[a:b].swapcase() + text[b:],
            )
        )
    return text


@pytest.mark.parametrize("name", READERS)
def test_no_text_takes_a_reader_long(name: str) -> None:
    draw = random.Random(name)
    hard = [swelling for text in texts(name)[:3] for swelling in swollen(text)]
    hard += ["", "\n" * REPEATED, " " * REPEATED, "9" * REPEATED, "# " * REPEATED, "{" * REPEATED]
    draw.shuffle(hard)
    until = time.monotonic() + SECONDS
    for count, text in enumerate(hard):
        assert seconds(name, text) < SLOWEST_S, text[:2000]
        if count > 20 and time.monotonic() > until:
            break


@pytest.mark.parametrize("name", READERS)
def test_whatever_is_read_gives_samples_or_a_parse_error(name: str) -> None:
    draw = random.Random(name)
    until = time.monotonic() + SECONDS
    sources = texts(name)
    while time.monotonic() < until:
        text = damaged(draw.choice(sources), draw)
        assert seconds(name, text) < SLOWEST_S, text[:2000]
