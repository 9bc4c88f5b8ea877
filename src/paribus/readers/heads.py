"""How an output begins: a file of several outputs is divided at their titles."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

FIRST = 4
"""Characters by which the line of a title is searched: the first ones of `Head.first`."""

BRACES = {"{": "}", "[": "]"}
"""The first character of a JSON document, and its last."""

_RULE = re.compile(r"[-=#*+~_ ]{8,}")


class Block(NamedTuple):
    """A part of an output that begins as the output itself does: where it ends, and its name."""

    end: int
    mark: str


class Head(NamedTuple):
    """How the title of an output looks, and what else of it stands above.

    `first`: how its line begins behind blanks: at least four characters, or the brace of JSON.
    `form`: a pattern of the text from `first` on, or behind the brace; "" if `first` is enough.
    `above`: a pattern of lines that may stand above the title and belong to the output.
    `indent`: how many blanks the tool itself puts before the title; None if it centres it.
    `block`: a pattern of a part that begins as an output does, whose groups give its mark: parts
    with different marks, and nothing between them, are one output.
    `holds`: how the titles of other tools begin whose outputs are part of this one.
    `names`: what stands before the name of a benchmark where several benchmarks have one title.
    """

    first: str
    form: str = ""
    above: str = ""
    indent: int | None = 0
    block: str = ""
    holds: tuple[str, ...] = ()
    names: str = ""

    @property
    def document(self) -> bool:
        """Return whether the output is a JSON document: nothing in it is another's title."""
        return self.first in BRACES

    def begins(self, text: str, at: int) -> bool:
        """Return whether a title begins at `at`, the first character of a line behind blanks."""
        if not text.startswith(self.first, at):
            return False
        form = rf"\{self.first}\s*(?:{self.form})" if self.document else self.form
        return not form or _compiled(form).match(text, at) is not None

    def block_at(self, text: str, at: int) -> Block | None:
        """Return the block that begins at `at`, None if there is none."""
        found = _compiled(self.block).match(text, at) if self.block else None
        if found is None:
            return None
        return Block(found.end(), " ".join(filter(None, found.groups())) or found[0])

    def start(self, text: str, at: int, least: int) -> int:
        """Return where the output begins whose title's line begins at `at`, at `least` or later.

        A rule, such as a line of dashes, is taken once: a second one ends the output before.
        """
        if not self.above:
            return at
        form, begin, rules = _compiled(self.above), at, set[str]()
        while at > least:
            before = text.rfind("\n", least, at - 1) + 1 or least
            line = text[before : at - 1].strip()
            if line and not form.fullmatch(line):
                break
            if line and _RULE.fullmatch(line):
                if line in rules:
                    break
                rules.add(line)
            at = before
            begin = at if line else begin
        return begin


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_PERFTEST = r"\w+ [^\n]*(?:BW|Latency) Test *(?=\n|\Z)"
UNREAD = {
    Head("# OSU ", r"# OSU [^\n]* v\d"): "OSU Micro-Benchmarks",
    Head("Program ", r"Program [\w-]+ +v\.[^\n]+ starts on ", indent=5): "Quantum ESPRESSO",
    Head("#   ", r"# +Intel ?\(R\) MPI Benchmark[^\n]*"): "IMB-MPI1",
    Head("Atomic", _PERFTEST, indent=20): "perftest",
    Head("RDMA_", _PERFTEST, indent=20): "perftest",
}
"""Titles of programs that no reader reads, with the name of their family: an output begins there,
which is refused by name.
"""
