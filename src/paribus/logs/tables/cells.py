"""Cells of a table, as they are in a file, made values of a row."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

from paribus.core import Case
from paribus.logs.tables.cases import read_case
from paribus.logs.tables.table import TIME_FIX, Clock, Row, refuse, shown

_NUMBER = re.compile(
    r"\s*-?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.ASCII | re.I
)

_KINDS: dict[type, str] = dict.fromkeys((int, float, Decimal), "a number")
_KINDS |= {bool: "true or false", str: "a text", bytes: "binary data"}
_KINDS |= {list: "a list", dict: "an object"}
_NESTED = ("binary data", "a list", "an object")


def kind_of(cell: object) -> str:
    """Return in words what a cell holds."""
    return _KINDS.get(type(cell), "a value")


def number(text: str) -> float | str:
    """Return the number that a cell of text holds, or the text where it holds none.

    >>> number("5.12"), number("1_000"), number("5 us")
    (5.12, '1_000', '5 us')
    """
    return float(text) if _NUMBER.fullmatch(text) else text


def row_of(cells: Mapping[str, Any], place: str) -> Row:
    """Return the row that `cells` make, by the names of `table.COLUMNS`.

    Raises UserError for a value that is no measurement, and for a cell that is no name or time.
    """
    others = cells.keys() - {"value", "case", "time"}
    names: dict[str, Any] = {name: _name(cells[name], place, name) for name in others}
    value, case = _value(cells.get("value"), place), _case(cells.get("case"), place)
    seconds, clock = _time(cells.get("time"), place)
    return Row(place, value=value, case=case, time=seconds, clock=clock, **names)


def _value(cell: object, place: str) -> float:
    """Return a measurement: a number that is finite and above zero."""
    if cell is None or cell == "":
        fix = "give the value, or remove the row: a gap is not a number"
        refuse("is empty", place, "value", fix)
    if kind_of(cell) != "a number":
        fix = "write a plain number such as 5.12 or 3e-6, without quotes, the unit in its column"
        refuse(f"{shown(cell)} is not a number", place, "value", fix)
    value = _float(cell)
    fix = "remove the row if the launch gave nothing"
    if math.isnan(value):
        refuse("NaN is not a measurement", place, "value", fix)
    if math.isinf(value):
        refuse("an infinite value is not a measurement", place, "value", fix)
    if value <= 0:
        cause = f"{value:g} is not above zero, so it has no ratio"
        refuse(cause, place, "value", f"{fix}; give raw values, not differences")
    return value


def _float(number: Any) -> float:
    """Return a number as float; one beyond any float is infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _name(cell: object, place: str, column: str) -> str:
    """Return a name as text; a whole number is written without a fraction."""
    if isinstance(cell, str):
        return sys.intern(cell)  # rows repeat their names
    if kind_of(cell) in _NESTED:
        refuse(f"holds {kind_of(cell)}, not a name", place, column, "write it as text")
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return "" if cell is None else sys.intern(str(cell))


def _case(cell: object, place: str) -> Case:
    """Return the case that a text, a number or an object names."""
    if not isinstance(cell, dict):
        return _read_case(_name(cell, place, "case"))
    for value in cell.values():
        if kind_of(value) in _NESTED:
            cause = f"has a parameter that holds {kind_of(value)}, not a name"
            refuse(cause, place, "case", "write it as text")
    pairs = (f"{k}={_name(v, place, 'case')}" for k, v in cell.items() if v is not None)
    return _read_case(", ".join(pairs))


_read_case = lru_cache(maxsize=65536)(read_case)


def _time(cell: object, place: str) -> tuple[float | None, Clock]:
    """Return a time in seconds, of a number or a date, and how it was written.

    A date without a time zone is read as UTC.
    """
    if cell is None or cell == "":
        return None, ""
    found = number(cell) if isinstance(cell, str) else cell
    if kind_of(found) == "a number":
        if not math.isfinite(seconds := _float(found)):
            refuse("is not finite", place, "time", TIME_FIX)
        return seconds, "a number"
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found.strip())
        except ValueError:
            refuse(f"{shown(cell)} is not a time", place, "time", TIME_FIX)
    if not isinstance(found, date):
        refuse(f"holds {kind_of(found)}, not a time", place, "time", TIME_FIX)
    if not isinstance(found, datetime):
        found = datetime.combine(found, time())
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC).timestamp(), "a date"
    return found.timestamp(), "a date with a time zone"
