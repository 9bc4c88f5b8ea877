"""Square and other matrices between devices, as GPU tools print them: a heading, then rows."""

from __future__ import annotations

import re
from functools import cache

from paribus.benchmarks._tool import line_at, line_of, refuse
from paribus.model import Case, Scalar

_HEADING = re.compile(r"[ \t]*(?:(?:D\\D|GPU|CPU)[ \t]*)?(\d+(?:[ \t]+\d+)*)[ \t]*(?:\n|\Z)")
_ROW = re.compile(
    r"[ \t]*(\d+)[ \t]+((?:\d+\.\d\d|N/A)(?:[ \t]+(?:\d+\.\d\d|N/A))*)[ \t]*(?:\n|\Z)"
)


def matrix(text: str, at: int, rows: int | None = None) -> tuple[list[list[float | None]], int]:
    """Return the matrix whose heading begins at `at`, and where the text goes on.

    None stands for N/A. Without `rows` as many as follow each other. Raises ParseError unless
    columns and rows are numbered from 0 and every row has as many figures as the heading.
    """
    heading = _HEADING.match(text, at)
    if heading is None:
        refuse(
            f"expected the numbers of devices, got {line_at(text, at)[:60]!r}", line_of(text, at)
        )
    columns = heading[1].split()
    if columns != [str(number) for number in range(len(columns))]:
        refuse("the columns are not numbered from 0", line_of(text, at))
    found: list[list[float | None]] = []
    at = heading.end()
    while rows is None or len(found) < rows:
        row = _ROW.match(text, at)
        if row is None:
            break
        words = row[2].split()
        if row[1] != str(len(found)) or len(words) != len(columns):
            refuse(f"expected row {len(found)} of {len(columns)} figures", line_of(text, at))
        found.append([None if word == "N/A" else float(word) for word in words])
        at = row.end()
    if not found or (rows is not None and len(found) < rows):
        refuse(f"a matrix of {len(found)} rows is not whole", line_of(text, at))
    return found, at


@cache
def case_of(**parameters: Scalar) -> Case:
    """Return the case of one cell; the same for the same cell."""
    return Case.of(**parameters)
