"""The one table that every reader ends in: a row per value, checked, names as codes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from paribus.errors import UserError
from paribus.model import Case
from paribus.tables.cases import read_case

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.int32]
    Floats = NDArray[np.float64]

REQUIRED = ("arm", "benchmark", "metric", "value")
OPTIONAL = ("block", "time", "launch", "sample", "case", "unit", "better")
COLUMNS = REQUIRED + OPTIONAL
ALSO_CALLED = {"iteration": "sample"}
"""Other names of columns."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input before it is checked: its columns as Arrow arrays of equal length.

    `name` is its path, `arm` what its arm is called if it has no column of that name; `place`
    returns where a row (counted from 0) stands in the input, for an error message.
    """

    name: str
    arm: str
    columns: Mapping[str, Any]
    place: Callable[[int], str]
    ignored: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.columns["value"])


@dataclass(frozen=True, slots=True)
class Labels:
    """A column of names: row i holds `names[codes[i]]`, or nothing where the code is -1."""

    codes: Codes
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Values of named metrics, a row each; every value is finite and above zero.

    `cases` are those that the codes of `case` count. Columns that the input does not have are
    None. `times` are in seconds, from an origin of their own unless `dated`. `place` returns
    where a row (from 0) stands in the input, `ignored` are columns that mean nothing to Paribus.
    """

    sources: tuple[str, ...]
    arm: Labels
    benchmark: Labels
    metric: Labels
    case: Labels
    cases: tuple[Case, ...]
    values: Floats
    place: Callable[[int], str]
    block: Labels | None = None
    times: Floats | None = None
    dated: bool = False
    launch: Labels | None = None
    sample: Labels | None = None
    unit: Labels | None = None
    better: Labels | None = None
    ignored: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.values)


def shown(text: object) -> str:
    """Return a cell's text in quotes, cut to 60 characters, with nothing that a terminal obeys."""
    whole = str(text)
    return repr(whole if len(whole) <= 60 else f"{whole[:60]}...")


def build(sources: Sequence[Source]) -> Table:
    """Return the table of all `sources`, one below the other.

    Raises UserError, naming file, row and column, for a column that is missing, a cell that is
    empty where it must not be, a value that is no measurement, and units or directions that
    change within a metric.
    """
    import numpy as np

    _check_columns(sources)
    starts = np.cumsum([0, *(source.rows for source in sources)])

    def place(row: int) -> str:
        index = int(np.searchsorted(starts, row, side="right")) - 1
        return sources[index].place(row - int(starts[index]))

    values = np.concatenate([_values(source) for source in sources])
    columns: dict[str, Labels] = {}
    for name in COLUMNS:
        if name in ("value", "time") or not any(name in s.columns for s in sources):
            continue
        columns[name] = _labels(sources, name)
        missing = np.flatnonzero(columns[name].codes < 0)
        if name != "case" and len(missing):
            refuse("is empty", place(int(missing[0])), name, "fill it in, or take the row out")
    if "arm" not in columns or any("arm" not in s.columns for s in sources):
        columns["arm"] = _labels(sources, "arm")
    case, cases = _cases(columns.pop("case", None), len(values))
    times, dated = _times(sources)
    table = Table(
        sources=tuple(source.name for source in sources),
        case=case,
        cases=cases,
        values=values,
        place=place,
        times=times,
        dated=dated,
        ignored=tuple(dict.fromkeys(name for s in sources for name in s.ignored)),
        **columns,
    )
    _check_better(table)
    for name in ("unit", "better"):
        _check_constant(table, name)
    return table


def refuse(cause: str, place: str, column: str, fix: str) -> NoReturn:
    """Raise the UserError of one cell."""
    raise UserError(cause, place=f"{place}, column {column}", fix=fix)


def _check_columns(sources: Sequence[Source]) -> None:
    for source in sources:
        for name in REQUIRED:
            if name in source.columns or (name == "arm" and len(sources) > 1):
                continue
            close = difflib.get_close_matches(name, [i.lower() for i in source.ignored], n=1)
            meant = [i for i in source.ignored if close and i.lower() == close[0]]
            hint = f"did you mean {shown(meant[0])}? Call it {name!r}" if meant else _needed(name)
            raise UserError(f"has no column {name!r}", place=source.name, fix=hint)
        for name in OPTIONAL:
            here, there = (name in one.columns for one in (source, sources[0]))
            if here != there:
                has = f"has a column {name!r}, but {sources[0].name} has none"
                lacks = f"has no column {name!r}, but {sources[0].name} has one"
                fix = "give all files the same columns"
                raise UserError(has if here else lacks, place=source.name, fix=fix)
        if not source.rows:
            raise UserError("has no rows", place=source.name, fix="nothing can be compared")


def _needed(name: str) -> str:
    if name == "arm":
        return "add one that says which platform a row is of, or give each arm a file of its own"
    return f"a table has the columns {', '.join(REQUIRED)}, and may have {', '.join(OPTIONAL)}"


def _values(source: Source) -> Floats:
    """Return the values; raises UserError at the first that is not a measurement."""
    import numpy as np

    column = source.columns["value"]
    empty = np.asarray(column.is_null())
    values: Floats = np.asarray(column.fill_null(1.0), dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)) | empty)
    if not len(bad):
        return values
    row = int(bad[0])
    value = values[row]
    if empty[row]:
        cause, fix = "is empty", "give the value, or take the row out: a gap is not a number"
    elif np.isnan(value):
        cause, fix = "NaN is not a measurement", "take the row out if the launch gave nothing"
    elif np.isinf(value):
        cause, fix = "an infinite value is not a measurement", "take the row out"
    else:
        cause = f"{value:g} is not above zero, so it has no ratio"
        fix = "take the row out if the launch gave nothing; give raw values, not differences"
    refuse(cause, source.place(row), "value", fix)


def _labels(sources: Sequence[Source], name: str) -> Labels:
    """Return one column of all sources, with one numbering of its names."""
    import numpy as np

    names: dict[str, int] = {}
    parts = []
    for source in sources:
        if name in source.columns:
            codes, texts = _encoded(source.columns[name], source, name)
        else:
            codes, texts = np.zeros(source.rows, dtype=np.int32), [source.arm]
        # One more at the end, for code -1; an empty text is no name either.
        known = [names.setdefault(t, len(names)) if t else -1 for t in texts]
        parts.append(np.array([*known, -1], dtype=np.int32)[codes])
    return Labels(np.concatenate(parts), tuple(names))


def _encoded(column: Any, source: Source, name: str) -> tuple[Codes, list[str]]:
    """Return codes and names of an Arrow column; -1 where it is null."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_struct(column.type) and name == "case":
        column = _texts(column, source)
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        refuse(f"holds {shown(kind)}, not names", source.place(0), name, "write it as text")
    if not pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    column = column.unify_dictionaries()
    chunks = [np.asarray(c.indices.fill_null(-1), dtype=np.int32) for c in column.chunks]
    names = column.chunk(0).dictionary.to_pylist() if chunks else []
    return np.concatenate(chunks), [_name(value) for value in names]


def _texts(column: Any, source: Source) -> Any:
    """Return a column of objects as texts: "bytes=8, ranks=2"."""
    import pyarrow as pa

    if nested := [field.type for field in column.type if pa.types.is_nested(field.type)]:
        cause = f"has a parameter that holds {shown(nested[0])}, not names"
        refuse(cause, source.place(0), "case", "write it as text")
    texts = [
        case and ", ".join(f"{k}={_name(v)}" for k, v in case.items() if v is not None)
        for case in column.to_pylist()
    ]
    return pa.chunked_array([texts], pa.string())


def _name(value: object) -> str:
    """Return a name as text; a whole number is written without a fraction."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)


def _cases(column: Labels | None, rows: int) -> tuple[Labels, tuple[Case, ...]]:
    """Return the codes of the cases and the cases; a row without one is of the only case."""
    import numpy as np

    if column is None:
        return Labels(np.zeros(rows, dtype=np.int32), ("",)), (Case(),)
    cases: dict[Case, int] = {}
    read = [read_case(name) for name in column.names]
    known = [cases.setdefault(case, len(cases)) for case in read]
    if (column.codes < 0).any():
        known.append(cases.setdefault(Case(), len(cases)))
    codes = np.array(known, dtype=np.int32)[column.codes]
    return Labels(codes, tuple(map(str, cases))), tuple(cases)


def _times(sources: Sequence[Source]) -> tuple[Floats | None, bool]:
    """Return the times in seconds, and whether they are counted from the epoch."""
    import numpy as np

    if "time" not in sources[0].columns:
        return None, False
    parts, dated = [], []
    for source in sources:
        column = source.columns["time"]
        missing = np.flatnonzero(np.asarray(column.is_null()))
        if len(missing):
            refuse("is empty", source.place(int(missing[0])), "time", "fill it in")
        seconds, is_date = _seconds(column)
        if seconds is None:
            row = _first_without_time(column)
            text = shown(column[row].as_py())
            refuse(f"{text} is not a time like those of the other rows", source.place(row), *_TIME)
        bad = np.flatnonzero(~np.isfinite(seconds))
        if len(bad):
            refuse("is not finite", source.place(int(bad[0])), *_TIME)
        parts.append(seconds)
        dated.append(is_date)
    if len(set(dated)) > 1:
        raise UserError("some files have dates and some have numbers", fix=_TIME[1])
    return np.concatenate(parts), dated[0]


_TIME = ("time", "write seconds in all rows, or 2026-11-21T08:30:00Z in all rows")


def _seconds(column: Any) -> tuple[Floats | None, bool]:
    """Return a column of numbers, or of dates in ISO 8601, in seconds; None if it is neither."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type):
        stamps = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        return np.asarray(stamps.cast(pa.int64())) / 1e6, True
    for kind in (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            read = pc.cast(column, kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        if pa.types.is_timestamp(kind):
            return np.asarray(read.cast(pa.int64())) / 1e6, True
        return np.asarray(read, dtype=np.float64), False
    return None, False


def _first_without_time(column: Any) -> int:
    """Return the first row that is not a time of the kind of the first row."""
    first = _seconds(column.slice(0, 1))
    if first[0] is None:
        return 0
    low, high = 1, len(column)  # the first `low` rows are good, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        good = _seconds(column.slice(0, middle))[0] is not None
        low, high = (middle, high) if good else (low, middle)
    return high - 1


def _check_better(table: Table) -> None:
    import numpy as np

    for code, name in enumerate(table.better.names if table.better else ()):
        if name not in ("lower", "higher"):
            assert table.better is not None
            row = int(np.flatnonzero(table.better.codes == code)[0])
            close = difflib.get_close_matches(name.lower(), ("lower", "higher"), n=1)
            fix = f"did you mean {close[0]!r}?" if close else "write lower or higher"
            refuse(f"{shown(name)} is no direction", table.place(row), "better", fix)


def _check_constant(table: Table, name: str) -> None:
    """Raise UserError where a metric of a benchmark has a second unit or direction."""
    import numpy as np

    column: Labels | None = getattr(table, name)
    if column is None or len(column.names) < 2:
        return
    metric = table.benchmark.codes.astype(np.int64) * len(table.metric.names) + table.metric.codes
    groups, first, inverse = np.unique(metric, return_index=True, return_inverse=True)
    del groups
    expected = column.codes[first][inverse]
    bad = np.flatnonzero(column.codes != expected)
    if len(bad):
        row = int(bad[0])
        before = int(first[inverse[row]])
        of = f"{table.benchmark.names[table.benchmark.codes[row]]}"
        if (metric_name := table.metric.names[table.metric.codes[row]]) != of:
            of = f"{of} {metric_name}"
        refuse(
            f"{shown(column.names[column.codes[row]])}, but {shown(of)} has"
            f" {shown(column.names[column.codes[before]])} in {_row_of(table.place(before))}",
            table.place(row),
            name,
            f"convert the values so that a metric has one {_MEANS[name]}",
        )


_MEANS = {"unit": "unit", "better": "direction"}


def _row_of(place: str) -> str:
    return place.partition(", ")[2] or place
