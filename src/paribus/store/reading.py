"""Reading launches.db: every row in order and whole, or a StoreError that names what is not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from paribus.border import check_regular, printable
from paribus.core import StoreError
from paribus.store.bounded import Bounded, connect, foreign
from paribus.store.count import read_count
from paribus.store.damage import ABSENT, FAILS, converted, damaged, store_error, unreadable
from paribus.store.rows import (
    CONTENT,
    GATHERED,
    ID,
    LAUNCH,
    SAMPLE,
    UNREADABLE,
    VOID,
    Row,
    content,
    is_sealed,
)

SCHEMA_VERSION = 4
UNSEALED_VERSION = 3
"""The version before, without checksums: its studies can be reported on, but not continued."""


class Reader:
    """The rows of an open database, each checked by its checksum before it is returned.

    Rows are numbered from 1 without a gap, because none is ever deleted: a gap is damage. All
    methods raise StoreError where the database is damaged.
    """

    def __init__(self, db: Bounded, path: Path) -> None:
        self.db = db
        self.path = path
        self.sealed = _version(db, path) == SCHEMA_VERSION
        self.launch = LAUNCH if self.sealed else LAUNCH.replace("content, checksum", "NULL, NULL")
        self._checked: dict[tuple[str, int], int] = {}
        self.node = GATHERED if self.sealed else GATHERED.replace("checksum", "NULL")

    def launches(self) -> Iterator[Row]:
        """Yield the rows of launches (columns LAUNCH) in the order in which they were started."""
        # Read before the rows: while a study goes on, the count must not be newer than the rows.
        counted = read_count(self.path.parent)
        rows = void = 0
        for row in self._scan("launches", self.launch):
            rows += 1
            void += row[VOID] is not None
            yield row
        self._demand("launches", rows, counted.launches)
        self._demand("launches that do not count", void, counted.void)

    def launch_at(self, place: int) -> list[Row]:
        """Return the row of launches (columns LAUNCH) with this id, in a list; [] without one."""
        query = f"SELECT {self.launch} FROM launches WHERE id = ?"
        try:
            rows = self.db.execute(query, (place,)).fetchall()
        except FAILS as error:
            raise store_error(error, self.path, f"row {place} of launches") from error
        if not all(self.is_whole("launches", row) for row in rows):
            raise damaged(self.path, f"row {place} of launches")
        return rows

    def samples(self, launch: Row) -> list[Row]:
        """Return the rows of samples (columns SAMPLE) of a row of launches."""
        query = f"SELECT {SAMPLE} FROM samples WHERE launch = ? ORDER BY rowid"
        try:
            rows = self.db.execute(query, (launch[ID],)).fetchall()
        except FAILS as error:
            raise store_error(error, self.path, f"row {launch[ID]} of launches") from error
        return self.demand_samples(launch, rows)

    def demand_samples(self, launch: Row, rows: list[Row]) -> list[Row]:
        """Return `rows` if their checksum is the one stored with the launch; else StoreError."""
        try:
            whole = not self.sealed or content(rows) == launch[CONTENT]
        except UNREADABLE:
            whole = False
        if not whole:
            raise damaged(self.path, f"row {launch[ID]} of launches: its samples")
        return rows

    def gathered(self) -> Iterator[Row]:
        """Yield the rows of gathered (columns GATHERED) in order."""
        counted = read_count(self.path.parent)
        rows = 0
        for row in self._scan("gathered", self.node):
            rows += 1
            yield row
        self._demand("facts of nodes", rows, counted.gathered)

    def check(self) -> None:
        """Raise StoreError unless all of the database is whole, its indexes included."""
        with converted(self.path):
            (result,) = self.db.execute("PRAGMA integrity_check(1)").fetchone()
        if result != "ok":
            raise damaged(self.path, result)
        for row in self.launches():
            self.samples(row)
        for _ in self.gathered():
            pass

    def is_whole(self, table: str, row: Row) -> bool:
        """Return whether a row of launches or gathered is as it was stored, by its checksum.

        Where a row was whole and still has the same checksum, this is not computed again.
        """
        key = table, row[ID]
        if not self.sealed or self._checked.get(key) == row[-1]:
            return True
        whole = is_sealed(row)
        if whole:
            self._checked[key] = row[-1]
        return whole

    def _scan(self, table: str, columns: str) -> Iterator[Row]:
        number = 0
        try:
            for row in self.db.execute(f"SELECT {columns} FROM {table} ORDER BY id"):
                number += 1
                self.db.renew()
                if row[ID] != number or not self.is_whole(table, row):
                    raise damaged(self.path, f"row {number} of {table}")
                yield row
        except FAILS as error:
            where = f"row {number + 1} of {table}"
            raise store_error(error, self.path, where) from error

    def _demand(self, what: str, found: int, counted: int) -> None:
        if found < counted:
            raise damaged(
                self.path,
                f"it holds {found} {what}, but once held {counted}: launches.db-wal was lost or"
                " damaged, or an older copy lies in its place",
            )


def check_files(path: Path, *, links: bool = True) -> None:
    """Raise StoreError unless the files of the database `path` are regular, as far as they exist.

    They are not opened: closing one would drop the locks that SQLite has on it in this process.
    With `links`, they may be links to regular files, as in a data set of git-annex.
    """
    for end in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(f"{path.name}{end}")
        try:
            check_regular(file, links=links)
        except OSError as error:
            if error.errno not in ABSENT or file.is_symlink():
                raise unreadable(error, file) from error


def open_for_reading(path: Path) -> Bounded:
    """Open `path` without writing; raises sqlite3.Error, and StoreError as `check_files`.

    To read a database with a write-ahead log, SQLite makes a file beside it, which a read-only or
    full medium does not allow. There it is opened as `immutable`, which ignores such a log, and
    therefore only if there is none.
    """
    check_files(path)
    log, journal = (path.with_name(f"{path.name}-{end}") for end in ("wal", "journal"))
    logged, interrupted = (one.exists() and one.stat().st_size > 0 for one in (log, journal))
    if interrupted:
        raise StoreError(
            "is left of a write that was cut off",
            place=str(journal),
            fix="continue the study with --resume, which clears it up, or restore the directory",
        )
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    if not writable and not logged:
        return connect(f"{uri}&immutable=1", uri=True)
    db = connect(uri, uri=True)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if not logged and name.startswith(("SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")):
            db.close()
            return connect(f"{uri}&immutable=1", uri=True)
    return db  # the next statement meets another error again, and reports its place


def check_version(db: sqlite3.Connection, path: Path, *, write: bool) -> None:
    """Raise StoreError unless this Paribus reads, or with `write` writes, this schema version.

    It also refuses views and the like, and must come before anything is selected: see `foreign`.
    """
    if name := foreign(db):
        raise StoreError(
            f"{printable(name)} is no table of a study: whoever reads it computes it anew",
            place=str(path),
            fix="restore the directory from a copy, or ask for it anew where it comes from",
        )
    version = _version(db, path)
    if version == SCHEMA_VERSION or (version == UNSEALED_VERSION and not write):
        return
    if version == UNSEALED_VERSION:
        fix = "continue it with the Paribus that began it, or start anew in another directory"
    elif version > SCHEMA_VERSION:
        fix = "update Paribus"
    else:
        fix = "this is not a Paribus database"
    raise StoreError(
        f"has schema version {version}; this Paribus {'writes' if write else 'reads'} version"
        f" {SCHEMA_VERSION}",
        place=str(path),
        fix=fix,
    )


def _version(db: sqlite3.Connection, path: Path) -> int:
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    columns = db.execute("SELECT name FROM pragma_table_info('launches')")
    if version == UNSEALED_VERSION and ("checksum",) in columns.fetchall():
        raise damaged(path, "its beginning: checksums, and a version that has none")
    return version
