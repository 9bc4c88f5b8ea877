"""What a tool prints where it failed, and the line that it prints once: they are looked for first.

No benchmark: shared by readers of tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from paribus.benchmarks._tool import WINDOW, line_at, line_of, once, refuse


def begin(text: str, mark: str, what: str, who: str, complaints: Sequence[str]) -> int:
    """Return where `mark` stands, of which every output of a tool has one.

    Raises ParseError where there is one of the `complaints` of the tool, with its line; where the
    mark is missing; and where it is there twice: in a file of many outputs that costs little, for
    no complaint is looked for far behind the second.
    """
    again = text.find(mark, text.find(mark) + 1)
    end = again + WINDOW if again >= 0 else len(text)
    for complaint in complaints:
        if (said := text.find(complaint, 0, end)) >= 0:
            refuse(f"{who} says {line_at(text, said).strip()[:160]!r}", line_of(text, said))
    return once(text, mark, what)
