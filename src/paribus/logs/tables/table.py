"""The one table that all inputs of numbers become: a row for each value, checked.

A row names its case as "bytes=8, ranks=2", as JSON, or by any text.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, NoReturn

from paribus.core import Case, Scalar, UserError

REQUIRED = ("arm", "benchmark", "metric", "value")
OPTIONAL = ("block", "time", "launch", "sample", "case", "unit", "better")
COLUMNS = REQUIRED + OPTIONAL
NAMES = {name: name for name in COLUMNS} | {"iteration": "sample"}
"""Names that columns may have, and the column that each means."""

EMPTY = ("", None, Case())
"""The values of empty cells."""

Clock = Literal["", "a number", "a date", "a date with a time zone"]


class Row(NamedTuple):
    """One value of a metric, finite and above zero; `place` is where it stands, for errors.

    What the input does not give is "" or None. `time` is in seconds, and `clock` says how it was
    written: dates count from 1970, numbers from any time. `others` are names and cells of columns
    whose names Paribus does not know.
    """

    place: str
    value: float
    arm: str = ""
    benchmark: str = ""
    metric: str = ""
    case: Case = Case()
    block: str = ""
    time: float | None = None
    clock: Clock = ""
    launch: str = ""
    sample: str = ""
    unit: str = ""
    better: str = ""
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of one input; `ignored` are its columns whose names Paribus does not know."""

    name: str
    rows: Sequence[Row]
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of all sources; `columns` are the optional columns that are filled.

    `tools`: of figures of logs, the benchmark of Paribus that each label stands for.
    """

    sources: tuple[str, ...]
    rows: Sequence[Row]
    columns: frozenset[str]
    ignored: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)

    @property
    def of(self) -> Literal["table", "logs"]:
        """Return what the user gave."""
        return "logs" if self.tools else "table"

    @property
    def timed(self) -> bool:
        return "time" in self.columns

    @property
    def dated(self) -> bool:
        """Return whether times count from 1970."""
        return self.rows[0].clock not in ("", "a number")


def shown(text: object) -> str:
    """Return a cell's text in quotes, cut to 60 characters, and fit to be printed."""
    whole = str(text)
    return repr(whole if len(whole) <= 60 else f"{whole[:60]}...")


def refuse(cause: str, place: str, column: str, fix: str) -> NoReturn:
    """Raise UserError for one cell, at `place` in a column."""
    raise UserError(cause, place=f"{place}, column {column}", fix=fix)


def build(sources: Sequence[Source]) -> Table:
    """Return the table of all `sources`, one below the other.

    Raises UserError, naming file, row and column, for files whose columns differ, a cell that is
    empty where it must not be, and units, directions or forms of time that change.
    """
    filled = [_filled(source) for source in sources]
    for source, columns in zip(sources, filled, strict=True):
        for name in sorted(columns ^ filled[0]):
            other = sources[0].name
            has = f"has a column {name!r}, but {other} has none"
            lacks = f"has no column {name!r}, but {other} has one"
            fix = "give all files the same columns"
            raise UserError(has if name in columns else lacks, place=source.name, fix=fix)
    rows = [row for source in sources for row in source.rows]
    needed = [name for name in COLUMNS if name in {*REQUIRED, *filled[0]} - {"case"}]
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        for name in needed:
            if getattr(row, name) in EMPTY:
                refuse("is empty", row.place, name, "fill it in, or remove the row")
        if row.clock != rows[0].clock:
            cause = f"is {row.clock}, but {rows[0].place} has {rows[0].clock}"
            refuse(cause, row.place, "time", TIME_FIX)
        _check_metric(row, first.setdefault((row.benchmark, row.metric), row))
    return Table(
        sources=tuple(source.name for source in sources),
        rows=rows,
        columns=frozenset(filled[0]),
        ignored=tuple(dict.fromkeys(name for source in sources for name in source.ignored)),
    )


TIME_FIX = "write seconds in all rows, or 2026-11-21T08:30:00Z in all rows"


def _filled(source: Source) -> set[str]:
    """Return the optional columns with a value in any row; raises UserError without rows."""
    if not source.rows:
        raise UserError("has no rows", place=source.name, fix="give a file with rows")
    return {
        name for name in OPTIONAL if any(getattr(row, name) not in EMPTY for row in source.rows)
    }


def _check_metric(row: Row, first: Row) -> None:
    """Raise UserError for no direction, and where a metric has another unit than at `first`."""
    if row.better not in ("", "lower", "higher"):
        close = difflib.get_close_matches(row.better.lower(), ("lower", "higher"), n=1)
        fix = f"did you mean {close[0]!r}?" if close else "write lower or higher"
        refuse(f"{shown(row.better)} is not a direction", row.place, "better", fix)
    for name, means in (("unit", "unit"), ("better", "direction")):
        here, there = getattr(row, name), getattr(first, name)
        if here != there:
            of = dict.fromkeys((row.benchmark, row.metric))
            refuse(
                f"{shown(here)}, but {shown(' '.join(of))} has {shown(there)} in {first.place}",
                row.place,
                name,
                f"convert the values so that a metric has one {means}",
            )


# --- cases -----------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)")
_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def read_case(text: str) -> Case:
    """Return the case that a cell names.

    "bytes=4096, ranks=2" and {"bytes": 4096, "ranks": 2} give parameters with their values;
    anything else is kept whole, as the parameter `case`.

    >>> read_case("bytes=8"), read_case("large"), read_case("")
    (Case(items=(('bytes', 8),)), Case(items=(('case', 'large'),)), Case(items=()))
    """
    if not text.strip():
        return Case()
    found = _from_json(text) if text.lstrip().startswith("{") else _from_pairs(text)
    return in_order({"case": scalar(text)} if found is None else found)


def in_order(parameters: Mapping[str, Scalar]) -> Case:
    """Return the case with its parameters sorted by name: their order makes no second case."""
    return Case(tuple(sorted(parameters.items())))


def _from_pairs(text: str) -> dict[str, Scalar] | None:
    """Return the parameters of "bytes=8, ranks=2", None for another text or a name twice."""
    parts = [part.partition("=") for part in re.split("[,;]", text)]
    found = {name.strip(): scalar(value.strip()) for name, _, value in parts}
    named = all(equals and _NAME.fullmatch(name.strip()) for name, equals, _ in parts)
    return found if named and len(found) == len(parts) else None


def _from_json(text: str) -> dict[str, Scalar] | None:
    """Return the parameters of a JSON object of scalars, None for any other text."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    flat = isinstance(found, dict) and all(
        isinstance(value, str | int | float | bool) for value in found.values()
    )
    return found if flat else None


def scalar(text: str) -> Scalar:
    """Return a whole number as int, any other text as it is."""
    return int(text) if _NUMBER.fullmatch(text) and len(text) < 19 else text


def case_key(case: Case) -> tuple[tuple[str, bool, float, str], ...]:
    """Return a key that sorts cases by their parameters, numbers by size and before texts."""
    return tuple(
        (name, False, float(value), "")
        if isinstance(value, int | float)
        else (name, True, 0.0, value)
        for name, value in case.items
    )
