"""values.csv and values.parquet: every figure of every launch that counts, a row each.

There may be millions of rows, so what all launches of a benchmark share is made once. `load` reads
them; docs/report.md describes it and the columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.border import csv_cell, open_anew, open_regular, printable
from paribus.core import Case, Figures, Metric, StoreError, UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

NAME = "values.parquet"
OF_LAUNCH = ("arm", "block", "launch", "time", "benchmark")
OF_CELL = ("case", "metric", "unit", "better")
COLUMNS = (*OF_LAUNCH, *OF_CELL, "value", "file")
"""The columns of numbers from elsewhere; those of a study have no `file`."""

AT_ONCE = 1000
"""Launches whose rows are in memory at a time."""


def write_values(figures: Iterable[Figures], directory: Path, *, files: bool) -> None:
    """Write values.csv and values.parquet into `directory`; raises OSError.

    With `files` they have the column `file`, where each figure was read.
    """
    from pyarrow.parquet import ParquetWriter

    names = COLUMNS if files else COLUMNS[:-1]
    table = _Table(names)
    launches = iter(figures)
    with (
        open_anew(directory / "values.csv", newline="", encoding="utf-8") as file,
        open_anew(directory / NAME, "wb") as binary,
        ParquetWriter(binary, table.schema) as parquet,
    ):
        file.write(f"{_line(names)}\n")
        while some := list(islice(launches, AT_ONCE)):
            cells = [table.cells_of(one) for one in some]
            for one, its in zip(some, cells, strict=True):
                file.write(_lines(one, its, files=files))
            parquet.write_table(table.of(some, cells))


class _Cells:
    """The cells (metric and case) of a launch, as the columns OF_CELL: in CSV, and as codes."""

    def __init__(self, keys: Sequence[tuple[str, Case]], metrics: Mapping[str, Metric]) -> None:
        self.keys = keys
        several = [(case.to_json(), metrics[name]) for name, case in keys]
        self.texts = [(case, one.name, one.unit, str(one.better)) for case, one in several]
        self.lines = [_line(texts) for texts in self.texts]
        self.codes: list[Column] = []


def _line(cells: Sequence[Any]) -> str:
    """Return a line of CSV without its end; a spreadsheet does not compute its texts."""
    file = io.StringIO(newline="")
    shown = [csv_cell(one) if isinstance(one, str) else one for one in cells]
    csv.writer(file, lineterminator="").writerow(shown)
    return file.getvalue()


def _lines(one: Figures, cells: _Cells, *, files: bool) -> str:
    """Return the lines of CSV of a launch; all of its figures share their first cells."""
    start = _line((one.arm, one.block, one.launch, one.at_s, one.benchmark))
    end = f",{_line((one.file,))}\n" if files else "\n"
    values = zip(cells.lines, one.values.values(), strict=True)
    return "".join([f"{start},{cell},{value!r}{end}" for cell, value in values])


class _Table:
    """Makes tables for Parquet, in which texts are codes: indices in a dictionary per column."""

    def __init__(self, names: Sequence[str]) -> None:
        import pyarrow as pa

        kinds: dict[str, Any] = dict.fromkeys(("block", "launch"), pa.int64())
        kinds |= dict.fromkeys(("time", "value"), pa.float64())
        coded = pa.dictionary(pa.int32(), pa.string())
        self.schema = pa.schema([(name, kinds.get(name, coded)) for name in names])
        self.codes: dict[str, dict[str, int]] = {n: {} for n in names if n not in kinds}
        self._last: dict[str, _Cells] = {}

    def cells_of(self, one: Figures) -> _Cells:
        """Return the cells of a launch: nearly always those of the launch before."""
        import numpy as np

        keys, last = list(one.values), self._last.get(one.benchmark)
        if last is None or last.keys != keys:
            last = self._last[one.benchmark] = _Cells(keys, one.metrics)
            for index, name in enumerate(OF_CELL):
                codes = [self._code(name, texts[index]) for texts in last.texts]
                last.codes.append(np.array(codes, np.int32))
        return last

    def of(self, launches: Sequence[Figures], cells: Sequence[_Cells]) -> Any:
        """Return the table of the figures of some launches."""
        import numpy as np
        import pyarrow as pa

        counts = [len(one.keys) for one in cells]
        columns: dict[str, Any] = {
            "arm": [self._code("arm", one.arm) for one in launches],
            "block": [one.block for one in launches],
            "launch": [one.launch for one in launches],
            "time": [one.at_s for one in launches],
            "benchmark": [self._code("benchmark", one.benchmark) for one in launches],
        }
        if self.codes.get("file") is not None:
            columns["file"] = [self._code("file", one.file) for one in launches]
        for name, column in columns.items():
            # By numpy: importing what pyarrow needs to repeat elements takes a tenth of a second.
            none = np.array([one is None for one in column])
            coded = name in self.codes
            kind = np.int32 if coded else self.schema.field(name).type.to_pandas_dtype()
            values = np.array([0 if one is None else one for one in column], kind)
            columns[name] = _array(np.repeat(values, counts), np.repeat(none, counts))
        for index, name in enumerate(OF_CELL):
            columns[name] = _array(np.concatenate([one.codes[index] for one in cells]))
        every = (value for one in launches for value in one.values.values())
        columns["value"] = _array(np.fromiter(every, float, sum(counts)))
        for name, codes in self.codes.items():
            columns[name] = pa.DictionaryArray.from_arrays(columns[name], _texts(list(codes)))
        return pa.Table.from_arrays([columns[one] for one in self.schema.names], schema=self.schema)

    def _code(self, name: str, text: str) -> int:
        codes = self.codes[name]
        return codes.setdefault(printable(text), len(codes))


def _array(numbers: Column, none: Column | None = None) -> Any:
    """Return an array of pyarrow of `numbers`; null where `none` is true.

    It is made of buffers: pyarrow.array would import pandas, which takes a quarter of a second.
    """
    import numpy as np
    import pyarrow as pa

    valid = None
    if none is not None and none.any():
        valid = pa.py_buffer(np.packbits(~none, bitorder="little"))
    kind = pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(numbers)])


def _texts(texts: Sequence[str]) -> Any:
    """Return an array of pyarrow of texts, made of buffers as in `_array`."""
    import numpy as np
    import pyarrow as pa

    coded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


class Values(dict[str, "Column"]):
    """Columns by name, all of one length: texts as objects, numbers as int64 or float64.

    A column of numbers with empty cells is float64, and an empty cell is NaN.
    """

    def to_pandas(self) -> Any:
        """Return the columns as a pandas.DataFrame; raises UserError where there is no pandas."""
        try:
            import pandas
        except ImportError:
            raise UserError(
                "pandas is not installed", fix="pip install pandas, or use the columns themselves"
            ) from None
        return pandas.DataFrame(dict(self))


def load(directory: str | Path) -> Values:
    """Return the figures of all launches that a study, or `paribus compare PATH --out DIR`, wrote.

    Raises StoreError where `directory` holds none, or something else.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    path = Path(directory) / NAME
    place, again = printable(str(path)), "`paribus report DIR`, or `paribus compare`, writes it"
    try:
        with open(open_regular(path), "rb") as file:  # noqa: PTH123 - of a descriptor
            table = read_table(file)
    except (OSError, ArrowException) as error:
        cause = getattr(error, "strerror", None) or "it is not whole"
        raise StoreError(f"cannot be read: {cause}", place=place, fix=again) from error
    if missing := [name for name in COLUMNS[:-1] if name not in table.column_names]:
        raise StoreError(f"has no column {missing[0]}", place=place, fix=again)
    return Values((name, _column(table[name])) for name in table.column_names)


def _column(column: Any) -> Column:
    """Return a column of a table as an array of numpy; equal texts are one object."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        numbers: Column = column.to_numpy()
        return numbers
    coded = column.unify_dictionaries().combine_chunks()
    texts = np.array([*coded.dictionary.to_pylist(), ""], dtype=object)
    found: Column = texts[coded.indices.to_numpy(zero_copy_only=False)]
    return found
