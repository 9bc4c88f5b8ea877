"""How an output begins: by what a file of several is divided into its outputs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

FIRST = 4
"""Characters by which the line of a title is found: those of `first` that count, at least."""

BRACES = {"{": "}", "[": "]"}
"""What a document may begin with, and with what it then ends."""

_RULE = re.compile(r"[-=#*+~_ ]{8,}")


class Head(NamedTuple):
    """How the title of an output looks, and what else of it stands above.

    `first` is how its line begins, blanks aside: four characters at least, or a brace
    `form` is a pattern of the text from there on, of a document from what stands behind the brace;
    without it, `first` is enough. `above` is a pattern of lines that may stand above the title and
    belong to it. `indent` are the blanks that the tool itself puts before the title, None where the
    title is centred. `block` is a pattern of a part of an output that begins like one, its groups
    what distinguishes it: parts that follow each other without anything else between them are one
    output, as long as no two are the same. `holds` is how titles begin of another tool's output
    that is a part of this one. `names` stands before the name of a benchmark where several have one
    title.
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
        """Return whether the output is a document in braces: nothing in it is another's title."""
        return self.first in BRACES

    def begins(self, text: str, at: int) -> bool:
        """Return whether a title begins at `at`, the first character of its line but blanks."""
        if not text.startswith(self.first, at):
            return False
        form = rf"\{self.first}\s*(?:{self.form})" if self.document else self.form
        return not form or _compiled(form).match(text, at) is not None

    def same(self, text: str, at: int) -> tuple[int, str] | None:
        """Return where the part of an output that begins at `at` ends, and what marks it."""
        found = _compiled(self.block).match(text, at) if self.block else None
        if found is None:
            return None
        return found.end(), " ".join(filter(None, found.groups())) or found[0]

    def start(self, text: str, at: int, least: int) -> int:
        """Return where the output begins whose title's line begins at `at`: not before `least`.

        A line that only rules off is taken once: the other is the end of the output before.
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
"""Titles of programs that no reader reads, each with its family: there another output begins."""
