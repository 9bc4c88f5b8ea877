"""Read files as rows: CSV, Parquet and JSON Lines, distinguished by what they begin with.

Files may hold anything: sizes are bounded, and an error names file, row, line and column.
"""

from __future__ import annotations

import csv
import difflib
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from paribus.border import not_plain, open_regular, printable
from paribus.core import Case, UserError, format_bytes
from paribus.logs.tables.table import (
    COLUMNS,
    NAMES,
    REQUIRED,
    TIME_FIX,
    Clock,
    Row,
    Source,
    Table,
    build,
    read_case,
    refuse,
    shown,
)

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


LEAST = 1e-100
"""No value is so small, or its inverse so large: any ratio of two is a number."""


def number(text: str) -> float | str:
    """Return the number that a cell of text holds, or the text where it holds none.

    >>> number("5.12"), number("1_000"), number("5 us")
    (5.12, '1_000', '5 us')
    """
    return float(text) if _NUMBER.fullmatch(text) else text


def row_of(cells: Mapping[str, Any], place: str) -> Row:
    """Return the row of `cells`, which are by the names of `table.COLUMNS`.

    `place` is where they stand, for errors. Raises UserError for a value that is no measurement,
    and for a cell that is no name or time.
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
    if not LEAST < value < 1 / LEAST:
        refuse(f"{value:g} is beyond what can be measured", place, "value", fix)
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


MOST_BYTES = 256 << 20
"""Bytes of a table; of Parquet, of its columns once unpacked as well."""

MOST_ROWS = 1_000_000
"""Rows of a file; each takes some 700 B of memory until it is judged."""

MOST_COLUMNS = 1000
"""Columns of a table; one that is tidy has eleven."""

MOST_CELL = 200
"""Characters of a cell that are kept of a column whose name Paribus does not know."""

MOST_LINE = 1 << 20
"""Characters of a line."""

ENDINGS = frozenset((".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson"))
"""How the names of tables end, whatever is in them."""

_ARRAY = re.compile(r"\[\s*[\[{\]]")
"""How an array of JSON begins, and no line of a log: "[ INFO", "[2026-11-22 ..."."""

LOOKED_AT = 1000
"""Lines of JSON from which the columns are taken before the rows are read."""

_FORMATS = "give a table as CSV, Parquet or JSON Lines"
_PARTS = "compare parts of it, such as a benchmark at a time"

Records = Iterator[tuple[str, Mapping[str, Any]]]
"""For each row where it is, such as ", row 3 (line 5)", and its cells by the file's columns."""


def is_table(path: Path) -> bool:
    """Return whether a file is to be read as a table: by its ending, or a column in its first line.

    True also for a file that cannot be read, of which `read` then says why.
    """
    if path.suffix.lower() in ENDINGS:
        return True
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            start = file.read(65536)
    except OSError:
        return True
    text = start.decode("utf-8-sig", errors="replace").lstrip()
    first = text.partition("\n")[0]
    if not text or start.startswith(b"PAR1") or not_plain(start) or _ARRAY.match(text):
        return True
    if text.startswith("{"):
        names = re.findall(r'"([^"\n]*)"\s*:', first)
    else:
        names = [name for delimiter in ",\t;" for name in _header(first, delimiter)]
    return any(_bare(name) in NAMES for name in names)


def _bare(name: str) -> str:
    """Return the name of a column in small letters, without its unit: "Value [us]" is "value"."""
    return re.split(r"[\[(/]", name.lower(), maxsplit=1)[0].strip()


def read_tables(paths: Sequence[Path]) -> Table:
    """Return one checked table of all files.

    Of several files, one without a column `arm` is an arm, whose name is that of the file, without
    folder and ending if that is unique. Raises UserError as `read` and `table.build` do.
    """
    stems = [path.stem for path in paths]
    names = [s if stems.count(s) == 1 else str(p) for s, p in zip(stems, paths, strict=True)]
    arms = names if len(paths) > 1 else [""]
    return build([read(path, arm) for path, arm in zip(paths, arms, strict=True)])


def read(path: Path, arm: str = "") -> Source:
    """Return the rows of the table at `path`; `arm` names its arm if no column does.

    Raises UserError for a file that cannot be read, is in none of the three formats, lacks a
    column, or is damaged, with the row and line at fault where there is one.
    """
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            size = os.fstat(file.fileno()).st_size
            start = file.read(65536)
    except OSError as error:
        fix = f"{_FORMATS}, or for each arm a file or folder of logs"
        raise _fault(path, f"cannot be read: {error.strerror}", fix) from error
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if size > MOST_BYTES:
        raise _fault(path, f"is larger than {format_bytes(MOST_BYTES)}", _PARTS)
    if not text:
        raise _fault(path, "is empty", _FORMATS)
    if start.startswith(b"PAR1"):
        return _source(path, arm, *_parquet(path))
    if other := not_plain(start):
        raise _fault(path, f"is {other[0]}", other[1])
    if path.suffix.lower() in (".parquet", ".pq"):
        raise _fault(path, "is not Parquet: it does not begin with PAR1", _FORMATS)
    if _ARRAY.match(text.decode(errors="replace")):
        fix = "write JSON Lines instead: one object per line, no commas between them"
        raise _fault(path, "is one JSON array", fix)
    return _source(path, arm, *(_json(path) if text.startswith(b"{") else _csv(path)))


def of_columns(columns: Mapping[str, Any]) -> Table:
    """Return the checked table of columns in memory: lists, arrays, or columns of a data frame.

    NaN in a column of texts, which is how pandas writes a gap, is an empty cell. Raises UserError
    as `read` and `table.build` do, and for columns of unlike length.
    """
    here = Path("table")
    lists = {
        str(name): [
            one.item() if hasattr(one, "item") else one
            for one in (of.tolist() if hasattr(of, "tolist") else of)
        ]
        for name, of in columns.items()
    }
    if len(lengths := {len(one) for one in lists.values()}) > 1:
        raise _fault(here, f"has columns of {sorted(lengths)} rows", "give columns of one length")
    if sum(lengths) > MOST_ROWS:
        raise _fault(here, f"has more than {MOST_ROWS:,} rows", _PARTS)
    rows = zip(*lists.values(), strict=True)
    records = (
        (f", row {n}", {k: v for k, v in zip(lists, row, strict=True) if k == "value" or v == v})
        for n, row in enumerate(rows, 1)
    )
    return build([_source(here, "", list(lists), records)])


def _fault(path: Path, cause: str, fix: str, where: str = "") -> UserError:
    """Return the error of a file, `where` is a place in it."""
    return UserError(cause, place=printable(str(path)) + where, fix=fix)


def _one_line(error: Exception) -> str:
    """Return another program's message on one line, cut, and fit to be printed."""
    return printable(" ".join(str(error).split()))[:200]


def _source(path: Path, arm: str, names: Sequence[str], records: Records) -> Source:
    """Return the rows that `records` make; `names` are the columns, as far as they are known."""
    seen = dict.fromkeys(names)
    known, ignored = _known(names, path)
    for column in REQUIRED:
        if column not in known.values() and not (column == "arm" and arm):
            raise _fault(path, f"has no column {column!r}", _needed(column, ignored))
    file = printable(str(path))
    rows: list[Row] = []
    for where, record in records:
        if not seen.keys() >= record.keys():
            seen |= dict.fromkeys(record)
            known, ignored = _known(list(seen), path)
        if len(rows) == MOST_ROWS:
            raise _fault(path, f"has more than {MOST_ROWS:,} rows", _PARTS)
        cells = {column: record[name] for name, column in known.items() if name in record}
        if arm and "arm" not in known.values():
            cells["arm"] = arm
        row = row_of(cells, file + where)
        others = tuple((n, _text(record[n])) for n in ignored if n in record)
        rows.append(row._replace(others=others) if others else row)
    return Source(file, rows, ignored)


def _text(cell: object) -> str:
    """Return the cell of a column whose name Paribus does not know."""
    return str("" if cell is None else cell)[:MOST_CELL]


def _known(names: Sequence[str], path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the columns that Paribus knows, by their name in the file, and the names of others."""
    if len(names) > MOST_COLUMNS:
        fix = "give a tidy table: one row for each value, with the columns of docs/compare.md"
        raise _fault(path, f"has {len(names):,} columns, more than {MOST_COLUMNS:,}", fix)
    found = [(name, NAMES[name]) for name in names if name in NAMES]
    columns = [column for _, column in found]
    if twice := [column for column in columns if columns.count(column) > 1]:
        raise _fault(path, f"has two columns {twice[0]!r}", "remove one")
    return dict(found), tuple(name for name in names if name not in NAMES)


def _needed(column: str, others: Sequence[str]) -> str:
    """Return the fix for a missing column: which of the `others` may be meant, or what to add."""
    lower = {_bare(name): name for name in reversed(others)}
    if (name := lower.get(column)) and name.lower() == column:
        small = [shown(one.lower()) for one in others if one.lower() in NAMES]
        return f"did you mean {shown(name)}? Only the capitals differ: write {', '.join(small)}"
    if name:
        return f"did you mean {shown(name)}? Call it {column!r}, with the unit in a column 'unit'"
    if close := difflib.get_close_matches(column, lower, n=1):
        return f"did you mean {shown(lower[close[0]])}? Call it {column!r}"
    if column == "arm":
        return "add one that names the platform of each row, or give each arm a file of its own"
    return f"add it: a table has {', '.join(REQUIRED)}, and what docs/compare.md names besides"


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text; raises UserError at one that is too long, or not UTF-8."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        for count, line in enumerate(iter(lambda: file.readline(MOST_LINE + 1), ""), 1):
            where = f", line {count}"
            if len(line) > MOST_LINE:
                raise _fault(path, f"is longer than {format_bytes(MOST_LINE)}", _FORMATS, where)
            try:
                line.encode()
            except UnicodeEncodeError as error:
                raise _fault(path, "is not UTF-8 text", "save it as UTF-8", where) from error
            yield line


# --- CSV ---


def _csv(path: Path) -> tuple[list[str], Records]:
    """Return the names of columns, and the rows, split where that gives the most known names."""
    lines = _lines(path)
    above, first = next(((i, line) for i, line in enumerate(lines, 1) if line.strip()), (1, ""))
    headers = {delimiter: _header(first, delimiter) for delimiter in ",\t;"}
    delimiter = max(headers, key=lambda one: len(NAMES.keys() & headers[one]))
    header = headers[delimiter]
    if not NAMES.keys() & {*map(_bare, header)}:
        cause = f"has no header that Paribus knows; its first line is {shown(first.strip())}"
        raise _fault(path, cause, f"begin it with a line of column names: {', '.join(COLUMNS)}")
    return header, _csv_records(path, header, csv.reader(lines, delimiter=delimiter), above)


def _header(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; the whole line as one, if it is no CSV."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [""])
    except csv.Error:
        return [line]


def _csv_records(path: Path, header: Sequence[str], reader: Any, above: int) -> Records:
    """Yield the rows below the header, which is the last of the `above` lines before them."""
    row, line = 0, above
    try:
        for cells in reader:
            begins, line = line + 1, above + reader.line_num
            if not cells:
                continue
            row += 1
            where = f", row {row} (line {begins})"
            if len(cells) != len(header):
                fix = "give every row a cell for each column; put a cell with the separator or a"
                fix += " line break in double quotes"
                cause = f"has {len(cells)} cells, but the header has {len(header)}"
                raise _fault(path, cause, fix, where)
            record: dict[str, Any] = dict(zip(header, cells, strict=True))
            record["value"] = number(record["value"])
            yield where, record
    except csv.Error as error:
        where = f", line {above + reader.line_num}"
        raise _fault(path, f"is not CSV: {error}", "write the file again", where) from error


# --- Parquet ---


def _parquet(path: Path) -> tuple[list[str], Records]:
    """Return the names of columns, and the rows; raises UserError for a damaged or huge file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        columns = parquet.read_schema(path)
        texts = [one.name for one in columns if one.type == pa.string()]
        # As dictionaries, so that a long text that all rows share is in memory once.
        file = parquet.ParquetFile(path, read_dictionary=texts)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, error) from error
    sizes = file.metadata
    size = sum(sizes.row_group(i).total_byte_size for i in range(sizes.num_row_groups))
    if size > MOST_BYTES or sizes.num_rows > MOST_ROWS:
        cause = f"unpacks to {sizes.num_rows:,} rows, {size:,} B: more than {MOST_ROWS:,} rows or"
        raise _fault(path, f"{cause} {format_bytes(MOST_BYTES)}", _PARTS)
    wanted = [one.name for one in columns if one.name in NAMES or _plain(one.type)]
    return columns.names, _parquet_records(path, file, wanted)


def _plain(kind: Any) -> bool:
    """Return whether cells of a column of Parquet are texts, numbers or dates, as those of CSV."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return bool(texts or numbers or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _parquet_records(path: Path, file: Any, names: Sequence[str]) -> Records:
    import pyarrow as pa

    row = 0
    try:
        for batch in file.iter_batches(batch_size=10_000, columns=names):
            batch.validate(full=True)
            for cells in zip(*map(_python, batch.columns), strict=True):
                row += 1
                yield f", row {row}", dict(zip(batch.schema.names, cells, strict=True))
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _damaged(path, error) from error


def _python(column: Any) -> list[Any]:
    """Return the cells of a column of Parquet; equal texts of a dictionary are one object."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    if not pa.types.is_dictionary(column.type):
        return list(column.to_pylist())
    names = column.dictionary.to_pylist()
    return [None if i is None else names[i] for i in column.indices.to_pylist()]


def _damaged(path: Path, error: Exception) -> UserError:
    cause = f"is a damaged or truncated Parquet file: {_one_line(error)}"
    return _fault(path, cause, "copy or write it again")


# --- JSON Lines ---


def _json(path: Path) -> tuple[list[str], Records]:
    """Return the names of columns in the first rows, and all rows."""
    first = islice(_json_records(path), LOOKED_AT)
    return list(dict.fromkeys(name for _, record in first for name in record)), _json_records(path)


def _json_records(path: Path) -> Records:
    """Yield the objects; raises UserError at a line without one, and for a second kind of cell."""
    kinds: dict[str, tuple[str, int]] = {}
    row = 0
    for count, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        row += 1
        where = f", row {row} (line {count})"
        try:
            record = json.loads(line, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            fix = "write one whole object on each line"
            cause = f"is not JSON: {_one_line(error)}"
            if row == 1 and line.strip() in ("{", "["):
                cause = "is neither a table nor a result file of a version that is known"
                fix += "; docs/compare.md names the harnesses whose files are read"
            raise _fault(path, cause, fix, where) from error
        if not isinstance(record, dict):
            cause = f"holds {kind_of(record)}, not an object"
            raise _fault(path, cause, 'write {"arm": ..., ...}', where)
        for name, cell in record.items():
            if NAMES.get(name, "value") == "value" or cell is None:
                continue
            kind, before = kinds.setdefault(NAMES[name], (kind_of(cell), row))
            if kind_of(cell) != kind:
                cause = f"{shown(cell)} is {kind_of(cell)}, but row {before} has {kind}"
                fix = "write the column in one way in all rows"
                raise _fault(path, cause, fix, f"{where}, column {NAMES[name]}")
        yield where, record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raises ValueError if a key stands in it twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return found
