"""Captured outputs, by "tool/stem" of their files in tests/fixtures, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paribus.core import ParseError, Reading
from paribus.readers.known import reader_of

FIXTURES = Path(__file__).parent / "fixtures"


def text_of(path: str) -> str:
    return (FIXTURES / f"{path}.out").read_text()


def read(tool: str, text: str) -> Reading:
    return reader_of(tool).read(text)


def reading(path: str) -> Reading:
    return read(path.partition("/")[0], text_of(path))


def refusal(
    path: str, old: str, new: str, cause: str | None = None, *, times: int = -1
) -> ParseError:
    """Return how an output is refused in which `new` stands for `old`, all `times` or the first."""
    text = text_of(path)
    assert old in text
    with pytest.raises(ParseError, match=cause) as caught:
        read(path.partition("/")[0], text.replace(old, new, times))
    return caught.value
