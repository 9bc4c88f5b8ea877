"""Texts of outputs: made plain, searched by mark and pattern, and refused with a line number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import NoReturn

from paribus.core import ParseError
from paribus.readers.tags import undated, untagged

HEAD = 1 << 16
"""Characters at the beginning of a text in which a tool must show itself, behind any banner."""

WINDOW = 4096
"""Characters that are searched at a time, or behind a place."""

LONGEST = 240
"""Characters of a cause: a damaged line may be of any length."""

_RETURNS = re.compile(r"\r+\n")
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.M)
"""From the beginning of a line: a long line without one is not searched from each of its places."""

_OF_PAGES = re.compile(
    r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});|[\xa0\u202f]"
)
"""What a page has in place of a character: its name, and blanks at which no line is broken."""

_BLANKS = {0xA0: " ", 0x202F: " "}

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")

_STEP_OF_NODE = re.compile(r"^slurmstepd-[\w.-]+(?=: )", re.M)
"""How Slurm begins its messages where it can run several daemons on a node, as Debian's can."""

_LOST_ESCAPE = re.compile(r"(?:\^\[|\u241b)?\[\d{1,3}(?:;\d{1,3})*m")
"""A colour code as a page, `cat -v` or a copy from a terminal shows it."""


def plain(text: str) -> str:
    """Return `text` without tags of ranks, and otherwise `cleaned`."""
    return untagged(cleaned(text))


def cleaned(text: str) -> str:
    """Return `text` without colour codes, times before lines, carriage returns, zeros and a BOM.

    Of a line that was written over, as that of a progress bar, the last form is left. What was
    copied from a page has its characters again; XML keeps their names, which are its own.
    """
    text = text.removeprefix("\ufeff").replace("\0", "")
    if ("&" in text or not text.isascii()) and not text.startswith("<?xml"):
        text = _OF_PAGES.sub(lambda one: unescape(one[0]).translate(_BLANKS), text)
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "[0m" in text or "[39m" in text:
        text = _LOST_ESCAPE.sub("", text)
    if "\r" in text:
        text = _RETURNS.sub("\n", text)
        text = _OVERWRITTEN.sub("", text) if "\n" in text else text.replace("\r", "\n")
    if "slurmstepd-" in text:
        text = _STEP_OF_NODE.sub("slurmstepd", text)
    return undated(text)


def unpadded(text: str) -> str:
    """Return a text without blanks at the ends of lines, which a terminal or an editor put there.

    What stands before each line may end with a blank: it must be removed before.
    """
    if " \n" in text or "\t\n" in text:
        return "\n".join(map(str.rstrip, text.split("\n")))
    return text


def once(text: str, mark: str, what: str = "") -> int:
    """Return where `mark` stands; raises ParseError if it is missing or there twice.

    Called for the first line of a tool it refuses two outputs in one text. `what` is the name of
    the mark in the error.
    """
    at = text.find(mark)
    what = what or repr(mark)
    if at < 0:
        raise ParseError(f"{what} is missing")
    if (again := text.find(mark, at + len(mark))) >= 0:
        refuse(f"{what} is there twice: two outputs in one", line_of(text, again), alone=True)
    return at


def begin(text: str, mark: str, what: str, who: str, complaints: Sequence[str]) -> int:
    """Return where `mark` stands, of which every output of a tool has one; as `once`.

    Raises ParseError also, with its line, for one of the `complaints` of the tool, whose name is
    `who`. In a text of many outputs that costs little: none is searched far behind a second mark.
    """
    again = text.find(mark, text.find(mark) + 1)
    end = again + WINDOW if again >= 0 else len(text)
    refuse_said(text, complaints, f"{who} says", end)
    return once(text, mark, what)


def found(text: str, mark: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the matches of `pattern` at the beginning of lines that hold `mark`."""
    return list(_matches(text, mark, pattern, 0))


def first(text: str, mark: str, pattern: re.Pattern[str], at: int = 0) -> re.Match[str] | None:
    """Return the first match of `pattern` at the beginning of a line with `mark`, from `at` on."""
    return next(_matches(text, mark, pattern, at), None)


def _matches(text: str, mark: str, pattern: re.Pattern[str], at: int) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` at the beginning of lines that hold `mark`, from `at` on.

    Ten times as fast as to search for the pattern itself, for most lines do not hold the mark.
    """
    at = text.find(mark, at)
    while at >= 0:
        if match := pattern.match(text, text.rfind("\n", 0, at) + 1):
            yield match
        end = text.find("\n", at)
        at = text.find(mark, end) if end >= 0 else -1


def columns(text: str, pattern: re.Pattern[str]) -> dict[str, list[str]]:
    r"""Return what each named group of a pattern of lines matched, in the order of the lines.

    Lines of many kinds cost little more than those of one: the pattern has the form `\n(?:A|B|C)`,
    so that the next character shows that a line is of no kind. It has two groups or more, all with
    names, and none is ever empty.
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
    """Raise ParseError, which quotes its line, if one of `marks` is in `text` before `end`.

    `cause` stands before the quotation, such as "ucx_perftest says".
    """
    for mark in marks:
        if (at := text.find(mark, 0, end)) >= 0:
            refuse(f"{cause} {line_at(text, at).strip()[:160]!r}", line_of(text, at))


def refuse(cause: str, line: int = 0, *, alone: bool = False, form: bool = False) -> NoReturn:
    """Raise ParseError with a line, 0 for none; a long cause is cut.

    `alone`: ranks that each ran alone, in one text, would cause it. `form`: the launch did what it
    was asked for, and printed it in a form that is not read.
    """
    cause = cause if len(cause) <= LONGEST else f"{cause[:LONGEST]} ..."
    raise ParseError(cause, line=line, alone=alone, form=form)
