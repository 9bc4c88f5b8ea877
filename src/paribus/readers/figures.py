"""Words of outputs as numbers: a word that is none is refused with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from paribus.core import ParseError
from paribus.readers.text import line_of, refuse

_Number = TypeVar("_Number", int, float)

_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+")


def figure(word: str, line: int = 0) -> float:
    """Return the number above zero that `word` is; raises ParseError for anything else."""
    if not (_FIGURE.fullmatch(word) and 0 < (value := float(word)) < math.inf):
        refuse(f"expected a figure above zero, got {word[:40]!r}", line)
    return value


def count(word: str, line: int = 0) -> int:
    """Return the whole number that `word` is; raises ParseError for anything else."""
    if not (word.isascii() and word.isdigit()):
        refuse(f"expected a whole number, got {word[:40]!r}", line)
    return int(word)


def counts(words: Sequence[str]) -> list[int]:
    """Return the whole numbers that `words` are; raises ParseError for anything else."""
    return list(map(count, words))


def figures(words: Sequence[str]) -> list[float]:
    """Return the numbers above zero that `words` are; raises ParseError for anything else."""
    return list(map(figure, words))


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields that lines of `text` hold, such as "HPL_N=1000": `words` by name.

    `begin` is how such a line begins, behind the end of the line before, where {} is the name;
    `where` ends the sentence on a missing name. All methods raise ParseError with the field's line.
    """

    text: str
    words: Mapping[str, str]
    begin: str = "\n{}="
    where: str = ""

    def refuse(self, cause: str, name: str) -> NoReturn:
        """Raise ParseError with the line of `name`."""
        refuse(cause, line_of(self.text, self.text.rfind(self.begin.format(name)) + 1))

    def word(self, name: str) -> str:
        """Return what the output says of `name`."""
        if name not in self.words:
            refuse(f"{name!r} is missing{self.where}")
        return self.words[name]

    def figure(self, name: str) -> float:
        """Return the number above zero of that name."""
        return self._number(figure, name)

    def count(self, name: str) -> int:
        """Return the whole number of that name."""
        return self._number(count, name)

    def _number(self, read: Callable[[str], _Number], name: str) -> _Number:
        word = self.word(name)
        try:
            return read(word)
        except ParseError as error:
            self.refuse(error.cause, name)


def near(one: float, other: float, share: float) -> bool:
    """Return whether two figures differ by at most `share` of the second."""
    return abs(one - other) <= share * abs(other)


def inverse(ns_per_day: float, hours_per_ns: float) -> bool:
    """Return whether two printed speeds are the same: their product is 24; both have 3 decimals."""
    slack = 24 * 1e-3 + 6e-4 * (ns_per_day + hours_per_ns)
    return abs(ns_per_day * hours_per_ns - 24) <= slack
