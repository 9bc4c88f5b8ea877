"""Reading the rows of a damaged launches.db that are whole, and listing those that are lost."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from paribus.border import data_in, data_of, open_regular
from paribus.core import StoreError
from paribus.store.bounded import Bounded, connect
from paribus.store.count import Count, read_count
from paribus.store.damage import Lost, passed_over
from paribus.store.reading import Reader
from paribus.store.rows import ID, SAMPLE, UNREADABLE, VOID, Row, gathered, stored

_HEADER = 100
"""Bytes of the header of a database: sqlite.org/fileformat2.html, section 1.3."""

_MOST_MISSING = 1 << 32
"""The most bytes of zeros, which take no space, that a damaged header can demand."""

_LEAST_ROW = 32
"""Bytes that any row takes at least; this bounds the number of rows that damage can claim."""

_STEP = 1 << 20


def open_copy(path: Path, folder: Path) -> Bounded:
    """Return a connection to a copy in `folder` of the database `path`; raises OSError.

    SQLite refuses a database that is shorter than its header says, so the copy is filled up with
    zeros.
    """
    copy = folder / path.name
    for original in (path, path.with_name(f"{path.name}-wal")):
        if original is path or original.exists():
            _copied(original, folder / original.name)
    with copy.open("r+b") as file:
        header = file.read(_HEADER)
        page = int.from_bytes(header[16:18], "big")
        # 1 stands for 65536, which has no place in two bytes.
        wanted = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
        size = copy.stat().st_size
        if size < wanted <= size + _MOST_MISSING:
            file.truncate(wanted)
    return connect(copy)


def _copied(original: Path, copy: Path) -> None:
    """Copy a file with its holes, which may be of any size."""
    source = open_regular(original)
    try:
        with copy.open("xb") as target:
            target.truncate(os.fstat(source).st_size)
            for begin, end in data_in(source):
                target.seek(begin)
                for at in range(begin, end, _STEP):
                    target.write(os.pread(source, min(_STEP, end - at), at))
    finally:
        os.close(source)


def _counted(directory: Path) -> Count:
    """Return the counts; zeros where they cannot be read, so that this does not stop a salvage."""
    try:
        return read_count(directory)
    except StoreError:
        return Count()


class Salvager(Reader):
    """A Reader that leaves out rows that are not whole, and lists them in `lost`."""

    def __init__(self, db: Bounded, path: Path) -> None:
        super().__init__(db, path)
        counted = _counted(path.parent)
        self.lost = Lost(counted=counted.launches > 0)
        self.whole_launches: list[int] = []
        self.whole_gathered: list[int] = []
        void = 0
        for number in range(1, self._last("launches", counted.launches) + 1):
            row = self._whole_launch(number)
            if row is None:
                self.lost.launches[number] = self._planned_number(number)
            else:
                self.whole_launches.append(number)
                void += row[VOID] is not None
        for number in range(1, self._last("gathered", counted.gathered) + 1):
            whole = self._whole_gathered(number)
            (self.whole_gathered if whole else self.lost.gathered).append(number)
        self.lost.whole = len(self.whole_launches)
        self.lost.unvoided = max(0, counted.void - void)

    def launches(self) -> Iterator[Row]:
        for number in self.whole_launches:
            if row := self._row("launches", self.launch, number):
                yield row

    def gathered(self) -> Iterator[Row]:
        for number in self.whole_gathered:
            if row := self._row("gathered", self.node, number):
                yield row

    def samples(self, launch: Row) -> list[Row]:
        try:
            return super().samples(launch)
        except StoreError:
            # Perhaps only the index of samples is damaged: read the rows without it.
            query = f"SELECT {SAMPLE} FROM samples WHERE rowid = ?"
            rows = [self.db.execute(query, (n,)).fetchone() for n in self._samples_of[launch[ID]]]
            return self.demand_samples(launch, rows)

    def _whole_launch(self, number: int) -> Row | None:
        with passed_over(*UNREADABLE, StoreError):
            row = self._row("launches", self.launch, number)
            if row is not None:
                stored(row, self.samples(row))
            return row
        return None

    def _whole_gathered(self, number: int) -> bool:
        with passed_over(*UNREADABLE):
            row = self._row("gathered", self.node, number)
            return row is not None and bool(gathered(row))
        return False

    def _row(self, table: str, columns: str, number: int) -> Row | None:
        """Return a row if it is there and whole; raises one of FAILS."""
        query = f"SELECT {columns} FROM {table} WHERE id = ?"
        row: Row | None = self.db.execute(query, (number,)).fetchone()
        return row if row is not None and row[ID] == number and self.is_whole(table, row) else None

    def _planned_number(self, row: int) -> int | None:
        """Return the number in the plan of the launch of a damaged row, None if unreadable."""
        with passed_over():
            found = self.db.execute("SELECT number FROM launches WHERE id = ?", (row,)).fetchone()
            return found[0] if found and isinstance(found[0], int) else None
        return None

    def _last(self, table: str, counted: int) -> int:
        """Return the largest plausible id of a row that `table` has, or had (`counted`)."""
        size = sum(
            data_of(log)
            for log in (self.path, self.path.with_name(f"{self.path.name}-wal"))
            if log.exists()
        )
        found = []
        for query in (f"SELECT max(rowid) FROM {table}", f"SELECT count(*) FROM {table}"):
            with passed_over():
                found += self.db.execute(query).fetchone()
        likely = (n for n in found if isinstance(n, int) and 0 <= n <= size // _LEAST_ROW)
        return max([counted, *likely])

    @cached_property
    def _samples_of(self) -> dict[int, list[int]]:
        """The rowids of the rows of samples that can be read, by id of their launch."""
        found: dict[int, list[int]] = defaultdict(list)
        for number in range(1, self._last("samples", 0) + 1):
            with passed_over():
                query = "SELECT launch FROM samples WHERE rowid = ?"
                for (launch,) in self.db.execute(query, (number,)):
                    found[launch].append(number)
        return found
