"""Texts of tools: made plain, and where in them what stands, with the line of what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

from paribus.core import ParseError
from paribus.readers.tags import undated, untagged

HEAD = 1 << 16
"""Where a tool must show itself, in characters: a banner before it is shorter than that."""


WINDOW = 4096


LONGEST = 240
"""Characters of a cause: a damaged line may be of any length."""


_RETURNS = re.compile(r"\r+\n")
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.M)
"""From the beginning of a line: a long line without one is not searched from each of its places."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def plain(text: str) -> str:
    """Return `text` without tags of ranks, and otherwise `cleaned`."""
    return untagged(cleaned(text))


def cleaned(text: str) -> str:
    """Return `text` without colour codes or times, and line feeds alone between lines.

    Of a line that was written over, as that of a progress bar, the last form is left, and of the
    text no mark of the order of its bytes.
    """
    text = text.removeprefix("\ufeff")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _RETURNS.sub("\n", text)
        text = _OVERWRITTEN.sub("", text) if "\n" in text else text.replace("\r", "\n")
    return undated(text)


def once(text: str, mark: str, what: str = "") -> int:
    """Return where `mark` stands; raises ParseError if it is missing or there twice.

    The way to refuse two outputs in one: call it for the tool's first line.
    """
    at = text.find(mark)
    what = what or repr(mark)
    if at < 0:
        raise ParseError(f"{what} is missing")
    if (again := text.find(mark, at + len(mark))) >= 0:
        refuse(f"{what} is there twice: two outputs in one", line_of(text, again), alone=True)
    return at


def begin(text: str, mark: str, what: str, who: str, complaints: Sequence[str]) -> int:
    """Return where `mark` stands, of which every output of a tool has one.

    Raises ParseError where there is one of the `complaints` of the tool, with its line; where the
    mark is missing; and where it is there twice: in a file of many outputs that costs little, for
    no complaint is looked for far behind the second.
    """
    again = text.find(mark, text.find(mark) + 1)
    end = again + WINDOW if again >= 0 else len(text)
    refuse_said(text, complaints, f"{who} says", end)
    return once(text, mark, what)


def found(text: str, mark: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return how `pattern` matches the lines that hold `mark`, from their beginning."""
    return list(_matches(text, mark, pattern, 0))


def first(text: str, mark: str, pattern: re.Pattern[str], at: int = 0) -> re.Match[str] | None:
    """Return how `pattern` matches the first line from `at` on that holds `mark` and is matched."""
    return next(_matches(text, mark, pattern, at), None)


def _matches(text: str, mark: str, pattern: re.Pattern[str], at: int) -> Iterator[re.Match[str]]:
    """Yield how `pattern` matches the lines from `at` on that hold `mark`.

    Ten times as fast as to search for the pattern itself, for most lines do not hold the mark.
    """
    at = text.find(mark, at)
    while at >= 0:
        if match := pattern.match(text, text.rfind("\n", 0, at) + 1):
            yield match
        end = text.find("\n", at)
        at = text.find(mark, end) if end >= 0 else -1


def columns(text: str, pattern: re.Pattern[str]) -> dict[str, list[str]]:
    r"""Return what each named group of a pattern of lines found, from the first line to the last.

    Lines of many kinds cost little more than those of one. The pattern has the form `\n(?:A|B|C)`:
    from the end of a line it sees at the next character that this line is of no kind. It has
    two groups or more, all with names, and none is ever empty.
    """
    rows = pattern.findall("\n" + text)
    every = zip(*rows, strict=True) if rows else ((),) * pattern.groups
    return {
        name: list(filter(None, column))
        for name, column in zip(pattern.groupindex, every, strict=True)
    }


def within(phrases: Sequence[str], text: str) -> list[str]:
    """Return those of the phrases that are in `text`, in their own order."""
    return [phrase for phrase in phrases if phrase in text]


def line_of(text: str, at: int) -> int:
    """Return the number, from 1, of the line that holds position `at`."""
    return text.count("\n", 0, at) + 1


def line_with(text: str, mark: str) -> int:
    """Return the number of the first line with `mark`, from 1; 0 where none has it."""
    at = text.find(mark)
    return line_of(text, at) if at >= 0 else 0


def line_at(text: str, at: int) -> str:
    """Return the line that holds position `at`, without its end."""
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]


def refuse_said(text: str, marks: Sequence[str], cause: str, end: int | None = None) -> None:
    """Raise ParseError with the line of the first of `marks` that is in `text`, before `end`."""
    for mark in marks:
        if (at := text.find(mark, 0, end)) >= 0:
            refuse(f"{cause} {line_at(text, at).strip()[:160]!r}", line_of(text, at))


def refuse(cause: str, line: int = 0, *, alone: bool = False, form: bool = False) -> NoReturn:
    """Raise ParseError with its line; a cause that quotes too much is cut.

    `alone` if ranks that each started by themselves print the like; `form` if the launch did what
    it was asked for, and what it printed is of a form that nobody reads.
    """
    cause = cause if len(cause) <= LONGEST else f"{cause[:LONGEST]} ..."
    raise ParseError(cause, line=line, alone=alone, form=form)
