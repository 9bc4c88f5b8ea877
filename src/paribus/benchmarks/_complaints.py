"""What a tool prints where it failed, and the line that it prints once: they are looked for first.

No benchmark: shared by readers of tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from paribus.benchmarks._tool import line_at, line_of, once, refuse


def begin(text: str, mark: str, what: str, who: str, complaints: Sequence[str]) -> int:
    """Return where `mark` stands, of which every output of a tool has one.

    Raises ParseError where it is there twice, which costs little on a file of many outputs; where
    there is one of the `complaints` of the tool, with its line; and where `mark` is missing.
    """
    at = once(text, mark, what) if mark in text else -1
    for complaint in complaints:
        if (said := text.find(complaint)) >= 0:
            refuse(f"{who} says {line_at(text, said).strip()[:160]!r}", line_of(text, said))
    return at if at >= 0 else once(text, mark, what)
