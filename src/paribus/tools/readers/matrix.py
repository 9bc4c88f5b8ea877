"""Matrices between devices, as GPU tools print them: a heading of numbers, then rows, such as

D\\D     0      1
  0 1500.00  25.31
  1   25.29 N/A
"""

from __future__ import annotations

import re
from functools import lru_cache

from paribus.readers.text import line_at, line_of, refuse

Cells = list[float | None]
"""The figures of a matrix, row after row; None stands for N/A."""

_HEADING = re.compile(r"[ \t]*(?:(?:D\\D|GPU|CPU)[ \t]*)?(\d+(?:[ \t]+\d+)*)[ \t]*\n")


def matrix(text: str, at: int, rows: int | None = None) -> tuple[Cells, int, int]:
    """Return the cells of the matrix whose heading begins at `at`, its columns, and its end.

    Without `rows` it has as many as follow each other. Raises ParseError unless columns and rows
    are numbered from 0 and every row has as many figures as the heading.
    """
    start = text.find("\n", at) + 1
    columns = _columns(text[at:start])
    if not columns:
        refuse(
            f"expected the numbers of devices from 0, got {line_at(text, at)[:60]!r}",
            line_of(text, at),
        )
    block = _rows(columns).match(text, start)
    words = block[0].split() if block else []
    numbers = words[:: columns + 1]
    if block is None or numbers != [str(number) for number in range(rows or len(numbers))]:
        refuse(f"expected rows from 0 on, of {columns} figures each", line_of(text, start))
    del words[:: columns + 1]
    cells = [None if word == "N/A" else float(word) for word in words]
    return cells, columns, block.end()


# Headings are few, and met again in each matrix of an output and in each output.
@lru_cache(maxsize=64)
def _columns(heading: str) -> int:
    """Return the number of columns that a heading numbers from 0; 0 if it does not."""
    match = _HEADING.fullmatch(heading)
    numbers = match[1].split() if match else []
    return len(numbers) if numbers == [str(number) for number in range(len(numbers))] else 0


@lru_cache(maxsize=64)
def _rows(columns: int) -> re.Pattern[str]:
    """Return the pattern of rows of so many figures, all that follow each other."""
    cell = r"[ \t]++(?:[0-9]++[.][0-9][0-9]|N/A)"
    return re.compile(rf"(?:[ \t]*+[0-9]++(?:{cell}){{{columns}}}+[ \t]*+(?:\n|\Z))++")
