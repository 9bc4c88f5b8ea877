"""Files to columns: CSV, Parquet and JSON Lines, told apart by what they begin with."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.errors import UserError
from paribus.inputs import not_plain, open_regular
from paribus.tables import faults
from paribus.tables.table import ALSO_CALLED, COLUMNS, Source, Table, build, shown
from paribus.units import format_bytes

MOST_BYTES = 1 << 30
"""Bytes of a table; of Parquet, of its columns once unpacked as well."""

MOST_ROWS = 50_000_000
"""Rows of Parquet, which packs the same value over and over into nothing."""

MOST_COLUMNS = 1000
"""Columns of a table; one that is tidy has eleven."""

MOST_HEADER = 1 << 20
"""Bytes of the first line of a CSV file."""

SCANNED_LINES = 1000
"""Lines of JSON from which the columns and the types of their values are known."""

_NAMES = ("arm", "benchmark", "metric", "unit", "better")


def read(path: Path, arm: str = "") -> Source:
    """Return the columns of the table at `path`; `arm` names its arm if no column does.

    Raises UserError for a file that cannot be read, is none of the three formats, or is damaged,
    with the row and line at fault where there is one.
    """
    start = _start(path)
    if start.startswith(b"PAR1"):
        return _parquet(path, arm)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if other := not_plain(start):
        raise UserError(f"is {other[0]}", place=faults.name(path), fix=other[1])
    if path.suffix.lower() in (".parquet", ".pq"):
        raise UserError(
            "is not Parquet: it does not begin with PAR1", place=faults.name(path), fix=_FORMATS
        )
    if text.startswith(b"["):
        raise UserError(
            "is one JSON array",
            place=faults.name(path),
            fix="write JSON Lines instead: one object per line, no commas between them",
        )
    return _json_lines(path, arm) if text.startswith(b"{") else _csv(path, arm)


def read_tables(paths: Sequence[Path]) -> Table:
    """Return one checked table of all files; with several, a file without arms is an arm.

    Such an arm is called what its file is, without folder and ending where that is unique.
    Raises UserError as `read` and `table.build` do.
    """
    stems = [path.stem for path in paths]
    names = [s if stems.count(s) == 1 else str(p) for s, p in zip(stems, paths, strict=True)]
    sources = [read(path, arm) for path, arm in zip(paths, names, strict=True)]
    return build(sources)


_FORMATS = "give a table as CSV, Parquet or JSON Lines"


def _start(path: Path) -> bytes:
    """Return the first bytes of a file, without leading blank lines taken away."""
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            size = os.fstat(file.fileno()).st_size
            start = file.read(65536)
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", place=faults.name(path), fix=_FORMATS
        ) from error
    if size > MOST_BYTES:
        raise UserError(
            f"is larger than {format_bytes(MOST_BYTES)}",
            place=faults.name(path),
            fix="compare parts of it, such as a benchmark at a time",
        )
    if not start.strip():
        raise UserError("is empty", place=faults.name(path), fix=_FORMATS)
    return start


def _known(names: Sequence[str], path: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the columns that mean something, by their name in the file, and all others."""
    if len(names) > MOST_COLUMNS:
        raise UserError(
            f"has {len(names):,} columns, more than {MOST_COLUMNS:,}",
            place=faults.name(path),
            fix="give a tidy table: one row for each value, with the columns of docs/compare.md",
        )
    known: dict[str, str] = {}
    for name in names:
        column = ALSO_CALLED.get(name, name)
        if column not in COLUMNS:
            continue
        if name in known or column in known.values():
            raise UserError(
                f"has two columns {column!r}", place=faults.name(path), fix="take one out"
            )
        known[name] = column
    return known, tuple(name for name in names if name not in known)


def _source(
    path: Path,
    arm: str,
    known: Mapping[str, str],
    ignored: Sequence[str],
    table: Any,
    place: Any,
) -> Source:
    """Return the source of an Arrow table; columns without any value are as good as absent."""
    columns = {
        column: table.column(name)
        for name, column in known.items()
        if name in table.column_names
        and (column == "value" or table.column(name).null_count < max(1, table.num_rows))
    }
    return Source(faults.name(path), arm, columns, place, tuple(ignored))


# --- CSV ---


def _csv(path: Path, arm: str) -> Source:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    header, delimiter = _header(path)
    known, ignored = _known(header, path)
    text = pa.dictionary(pa.int32(), pa.string())
    types = dict.fromkeys(known, text) | {
        name: kind
        for name, column in known.items()
        if (kind := {"value": pa.float64(), "time": pa.string()}.get(column))
    }

    def place(row: int) -> str:
        return faults.csv_place(path, delimiter, row)

    if "value" not in known.values():
        return Source(faults.name(path), arm, dict.fromkeys(known.values(), ()), place, ignored)
    try:
        table = arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(known),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise faults.of_csv(path, delimiter, header, known, str(error)) from error
    return _source(path, arm, known, ignored, table, place)


def _header(path: Path) -> tuple[list[str], str]:
    """Return the column names of a CSV file, and the separator that yields the most we know."""
    with path.open("rb") as file:
        line = b""
        while not line.strip():
            line = file.readline(MOST_HEADER + 1)
    if len(line) > MOST_HEADER:
        raise UserError(
            f"has a first line of more than {format_bytes(MOST_HEADER)}",
            place=faults.name(path),
            fix=_FORMATS,
        )
    line = line.lstrip(b"\r").partition(b"\r")[0]
    try:
        text = line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        raise faults.not_utf8(path, "line 1") from error
    found = [(_cells(text, d), d) for d in ",\t;"]
    names = {*COLUMNS, *ALSO_CALLED}
    header, delimiter = max(found, key=lambda one: len(names & set(one[0])))
    if not names & set(header):
        raise UserError(
            f"has no header that Paribus knows; its first line is {shown(text)}",
            place=faults.name(path),
            fix=f"begin it with a line of column names: {', '.join(COLUMNS)}",
        )
    return header, delimiter


def _cells(text: str, delimiter: str) -> list[str]:
    """Return the cells of a line; one, if they would be larger than any cell."""
    try:
        return next(csv.reader([text], delimiter=delimiter), [""])
    except csv.Error:
        return [text]


# --- Parquet ---


def _parquet(path: Path, arm: str) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    def place(row: int) -> str:
        return f"{faults.name(path)}, row {row + 1}"

    try:
        file = parquet.ParquetFile(path)
        known, ignored = _known(file.schema_arrow.names, path)
        _check_unpacked(file.metadata, path)
        table = file.read(columns=list(known))
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"is a damaged or truncated Parquet file: {faults.one_line(str(error))}",
            place=faults.name(path),
            fix="copy or write it again",
        ) from error
    for name, column in known.items():
        if column == "value":
            kind = table.column(name).type
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            if not number and not pa.types.is_decimal(kind):
                raise UserError(
                    f"holds {kind}, not numbers",
                    place=f"{place(0)}, column value",
                    fix="write the column as numbers",
                )
            table = table.set_column(
                table.column_names.index(name), name, table.column(name).cast(pa.float64())
            )
    return _source(path, arm, known, ignored, table, place)


def _check_unpacked(metadata: Any, path: Path) -> None:
    """Refuse a Parquet file that says that it unpacks to more than a table may have."""
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if size > MOST_BYTES or metadata.num_rows > MOST_ROWS:
        raise UserError(
            f"unpacks to {metadata.num_rows:,} rows, {size:,} B: more than {MOST_ROWS:,} rows or"
            f" {format_bytes(MOST_BYTES)}",
            place=faults.name(path),
            fix="compare parts of it, such as a benchmark at a time",
        )


# --- JSON Lines ---


def _json_lines(path: Path, arm: str) -> Source:
    import pyarrow as pa
    import pyarrow.json as arrow_json

    first = _scan(path)
    names = list(dict.fromkeys(name for record in first for name in record))
    _, ignored = _known(names, path)
    known = {name: ALSO_CALLED.get(name, name) for name in (*COLUMNS, *ALSO_CALLED)}
    examples = {n: [r[n] for r in first if r.get(n) is not None] for n in known}
    nested = any(isinstance(example, dict) for example in examples["case"][:1])
    schema = [
        (name, _arrow_type(name, examples[name])) for name in known if name != "case" or not nested
    ]

    def place(row: int) -> str:
        return faults.json_place(path, row)

    try:
        table = arrow_json.read_json(
            path,
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema(schema),
                unexpected_field_behavior="infer" if nested else "ignore",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise faults.of_json(path, known, str(error)) from error
    # A column may begin below the lines that were looked at.
    filled = [n for n in table.column_names if table.column(n).null_count < table.num_rows]
    known, _ = _known([n for n in known if n in filled or n in names], path)
    return _source(path, arm, known, ignored, table, place)


def _arrow_type(name: str, examples: Sequence[Any]) -> Any:
    """Return the type of a column, of which these are the first cells."""
    import pyarrow as pa

    kinds = set(map(type, examples))
    if name == "value" or (name == "time" and kinds and kinds <= {int, float}):
        return pa.float64()
    if name in _NAMES or not kinds or not kinds <= {int, float}:
        return pa.string()
    return pa.int64() if kinds == {int} else pa.float64()


def _scan(path: Path) -> list[dict[str, Any]]:
    """Return the first records; raises UserError at a line that is not a JSON object."""
    found: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            found.append(faults.record(path, line, number, len(found) + 1))
            if len(found) == SCANNED_LINES:
                break
    return found
