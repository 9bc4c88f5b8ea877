"""Text from outside on its way to a terminal or into a table: shown, never obeyed.

Study files, host names, logs and what programs print may hold escape sequences, which a terminal
runs, and cells that a spreadsheet computes. Whatever a verb prints passes `screened` or the
console of report/printing.py; whatever goes into a CSV file passes `csv_cell`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_UNSEEN = re.compile(r"[^\x20-\x7e]")
"""Characters that may be unprintable; `str.isprintable` decides on each."""

FORMULA = frozenset("=+-@\t\r")
"""The first characters of cells that a spreadsheet computes instead of showing."""


def printable(text: str, *, keep: str = "") -> str:
    r"""Return `text` with each control character written as \xNN, except those in `keep`.

    These are C0, DEL, C1, the bidirectional controls and whatever else has no shape of its own,
    lone surrogates included; spaces of any width stay.

    >>> printable("\x1b[31mred\n"), printable("a\nb", keep="\n") == "a\nb"
    ('\\x1b[31mred\\n', True)
    """

    def visible(match: re.Match[str]) -> str:
        sign = match[0]
        if sign in keep or sign.isprintable() or sign in _SPACES:
            return sign
        return sign.encode("unicode_escape").decode("ascii")

    return _UNSEEN.sub(visible, text)


_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))


def csv_cell(text: str) -> str:
    """Return a text as a cell of a CSV file that a spreadsheet shows and does not compute.

    A text that begins as a formula does gets an apostrophe before it. Numbers need no such care.

    >>> csv_cell("=1+1"), csv_cell("host")
    ("'=1+1", 'host')
    """
    shown = printable(text)
    return f"'{shown}" if text.lstrip(" ")[:1] in FORMULA else shown


class Screen:
    """A stream that shows escape sequences instead of passing them on; lines and tabs stay.

    `under` is the stream below, for whoever writes colours of its own (report/printing.py).
    """

    def __init__(self, under: TextIO) -> None:
        self.under = under

    def write(self, text: str) -> int:
        return self.under.write(printable(text, keep="\n\t"))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        """Return False: callers ask before they send escape sequences, and none would arrive."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


@contextmanager
def screened() -> Iterator[None]:
    """Screen standard output and standard error while the context lasts."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, Screen(out)), cast(TextIO, Screen(err))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def under(stream: TextIO) -> TextIO:
    """Return the stream below the screen, or `stream` itself where there is none."""
    return stream.under if isinstance(stream, Screen) else stream
