"""What is wrong with a table, and where: found by reading it again, line by line.

Only when the fast readers have refused a file, or when a row must be named, does anything here
run; it may therefore take its time.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from paribus.errors import UserError
from paribus.outside import printable
from paribus.tables.table import shown

_NUMBER = re.compile(r"\s*-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_SPECIAL = re.compile(r"\s*-?(nan|inf|infinity)\s*", re.IGNORECASE)


def name(path: Path) -> str:
    """Return a path for a message, with nothing in it that a terminal obeys."""
    return printable(str(path))


def one_line(text: str) -> str:
    """Return another program's message on one line, cut, with nothing that a terminal obeys."""
    return printable(" ".join(text.split()))[:200]


def not_utf8(path: Path, where: str) -> UserError:
    return UserError("is not UTF-8 text", place=f"{name(path)}, {where}", fix="save it as UTF-8")


def csv_place(path: Path, delimiter: str, row: int) -> str:
    """Return "FILE, row N (line M)" for the data row `row`, counted from 0."""
    with suppress(csv.Error):
        for index, line, _ in _csv_rows(path, delimiter):
            if index == row:
                return f"{name(path)}, row {row + 1} (line {line})"
    return f"{name(path)}, row {row + 1}"


def of_csv(
    path: Path, delimiter: str, header: Sequence[str], known: Mapping[str, str], said: str
) -> UserError:
    """Return the error of the first row that is not a row of this table."""
    bad_line = _first_not_utf8(path)
    if bad_line:
        return not_utf8(path, f"line {bad_line}")
    column = next((i for i, n in enumerate(header) if known.get(n) == "value"), None)
    rows = _csv_rows(path, delimiter)
    while True:
        try:
            index, line, cells = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            return UserError(f"is not CSV: {error}", place=name(path), fix="write it again")
        place = f"{name(path)}, row {index + 1} (line {line})"
        if len(cells) != len(header):
            return UserError(
                f"has {len(cells)} cells, but the header has {len(header)}",
                place=place,
                fix="give every row a cell for each column; put a cell with the separator"
                " or a line break in double quotes",
            )
        if column is not None and cells[column] and not _readable(cells[column]):
            return _not_a_number(cells[column], place)
    return UserError(f"cannot be read: {one_line(said)}", place=name(path), fix="write it again")


def _readable(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _SPECIAL.fullmatch(text))


def _not_a_number(text: object, place: str) -> UserError:
    fix = "write a plain number such as 5.12 or 3e-6, the unit in its own column"
    return UserError(f"{shown(text)} is not a number", place=f"{place}, column value", fix=fix)


def _csv_rows(path: Path, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the number of each data row (from 0), the line it begins at, and its cells."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        index, line = -2, 0
        for cells in reader:
            begins, line = line + 1, reader.line_num
            if cells:
                index += 1
                if index >= 0:
                    yield index, begins, cells


def _first_not_utf8(path: Path) -> int:
    """Return the number of the first line that is not UTF-8, or 0."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return 0


# --- JSON Lines ---


def json_place(path: Path, row: int) -> str:
    """Return "FILE, row N (line M)" for the record `row`, counted from 0."""
    for index, (number, _) in enumerate(_json_rows(path)):
        if index == row:
            return f"{name(path)}, row {row + 1} (line {number})"
    return f"{name(path)}, row {row + 1}"


def record(path: Path, line: bytes, number: int, row: int) -> dict[str, Any]:
    """Return the object on one line; raises UserError, naming row and line, if it is none."""
    place = f"{name(path)}, row {row} (line {number})"
    try:
        found = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_once)
    except UnicodeDecodeError as error:
        raise not_utf8(path, f"row {row} (line {number})") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"is not JSON: {one_line(str(error))}",
            place=place,
            fix="write one whole object on each line",
        ) from error
    if not isinstance(found, dict):
        raise UserError(
            f"holds {_kind(found)}, not an object", place=place, fix='write {"arm": ..., ...}'
        )
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raises ValueError if a key stands in it twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(twice)} stands in it twice")
    return found


def of_json(path: Path, known: Mapping[str, str], said: str) -> UserError:
    """Return the error of the first record that is not a row of this table."""
    kinds: dict[str, tuple[str, int]] = {}
    for index, (number, line) in enumerate(_json_rows(path), 1):
        place = f"{name(path)}, row {index} (line {number})"
        try:
            found = record(path, line, number, index)
        except UserError as error:
            return error
        for key, value in found.items():
            column, kind = known.get(key), _kind(value)
            if column == "value" and kind != "a number" and value is not None:
                return _not_a_number(value, place)
            if column == "value" and kind == "a number" and not _is_finite(value):
                return UserError(
                    "an infinite value is not a measurement",
                    place=f"{place}, column value",
                    fix="take the row out",
                )
            if column is None or value is None:
                continue
            before, where = kinds.setdefault(column, (kind, index))
            expected = "a text" if column in _TEXTS else before
            if kind != expected:
                cause = f"{shown(value)} is {kind}"
                cause += "" if column in _TEXTS else f", but row {where} has {before}"
                return UserError(
                    cause,
                    place=f"{place}, column {column}",
                    fix="write it in quotes, as a text"
                    if column in _TEXTS
                    else "write the column in one way in all rows",
                )
    return UserError(f"cannot be read: {one_line(said)}", place=name(path), fix="write it again")


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


_TEXTS = ("arm", "benchmark", "metric", "unit", "better")


def _json_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    kinds = {str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "a value")
