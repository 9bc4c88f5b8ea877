"""The study directory, and the only code that writes launches.

    plan.json      frozen before the first launch (plan/frozen.py)
    launches.db    SQLite, WAL, full sync; one transaction per launch; facts of the nodes
    launches.count how many rows it has (count.py)
    logs/          NNNN-attempt-arm-benchmark.{out,err}: printed, or the ends of it (border/kept.py)
    verdict.json, report.html, ...   computed from the above, and only from it

A launch is stored before anything is computed from it. Of each planned launch at most one stored
attempt counts (`void` is NULL): the database itself enforces that.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paribus.border import as_error
from paribus.core import Launch, Outcome, StoreError
from paribus.store.bounded import Bounded, connect
from paribus.store.count import NAME as COUNT
from paribus.store.count import Count, read_count, write_count
from paribus.store.damage import Lost, converted, damaged, nothing_whole
from paribus.store.lock import Lock
from paribus.store.reading import (
    SCHEMA_VERSION,
    Reader,
    check_files,
    check_version,
    open_for_reading,
)
from paribus.store.rows import (
    CHECKSUM,
    GATHERED,
    ID,
    LAUNCH,
    NUMBER,
    UNREADABLE,
    VOID,
    WALL_S,
    Gathered,
    Row,
    Stored,
    gathered,
    gathered_row,
    is_sealed,
    launch_row,
    sample_rows,
    stored,
    voided,
)

MOST_NODES = 1000
"""The most nodes that `Store.began` returns."""

_WATCHED = ("launches.db", "launches.db-wal", "plan.json")


class InPlace:
    """Notices when files of a study directory are moved or replaced while the study runs.

    SQLite would go on writing to the moved or deleted file, and its launches would be lost.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = {name: identity(directory / name) for name in _WATCHED}
        if self.files["plan.json"] is None:
            del self.files["plan.json"]  # a study that is not kept has none

    def check(self) -> None:
        """Raise StoreError if a file is gone, or is another one than when this was made."""
        for name, was in self.files.items():
            now = identity(self.directory / name)
            if now != was:
                raise self._gone(name, replaced=now is not None)

    def _gone(self, name: str, *, replaced: bool) -> StoreError:
        if not self.directory.exists():
            return StoreError(
                "the study directory was moved, renamed or deleted while the study ran",
                place=str(self.directory),
                fix="put it back where it was, then continue with --resume: it holds every stored"
                " launch",
            )
        what = "replaced by another file" if replaced else "deleted, moved or renamed"
        return StoreError(
            f"was {what} while the study ran, so the study stops here",
            place=str(self.directory / name),
            fix="put the original back, then continue with --resume; without it, start anew in"
            " another directory (what each launch printed is in logs/)",
        )


def identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at `path`, None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE launches(
  id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  block INTEGER NOT NULL,
  benchmark TEXT NOT NULL,
  arm TEXT NOT NULL,
  place INTEGER NOT NULL,
  seed INTEGER NOT NULL,
  state TEXT NOT NULL,
  started REAL NOT NULL,
  wall_s REAL NOT NULL,
  exit_code INTEGER,
  argv TEXT NOT NULL,
  facts TEXT NOT NULL,
  error TEXT NOT NULL,
  void TEXT,
  content INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE(number, attempt)
);
CREATE UNIQUE INDEX one_attempt_counts ON launches(number) WHERE void IS NULL;
CREATE TABLE samples(
  launch INTEGER NOT NULL REFERENCES launches(id),
  metric TEXT NOT NULL,
  parameters TEXT NOT NULL,
  batch INTEGER NOT NULL,
  count INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY(launch, metric, parameters)
);
CREATE TABLE gathered(
  id INTEGER PRIMARY KEY,
  arm TEXT NOT NULL,
  node TEXT NOT NULL,
  at REAL NOT NULL,
  facts TEXT NOT NULL,
  checksum INTEGER NOT NULL
);
"""


class Store:
    """One study directory, open. Use as a context manager.

    `write=True` takes the directory's lock, unless the caller holds it (`held`), so a second
    `paribus run` on it is refused; so is a damaged database. `salvage=True` reads the rows that are
    whole, and lists the others in `lost`; without it, a damaged row raises StoreError where it is
    read.
    """

    def __init__(
        self,
        directory: Path,
        *,
        write: bool = False,
        held: bool = False,
        salvage: bool = False,
    ) -> None:
        self.directory = directory
        self.path = directory / "launches.db"
        self.write = write
        self.held = held
        self.salvage = salvage
        self.lost = Lost()
        self._db: Bounded | None = None
        self._reader: Reader | None = None
        self._copy: TemporaryDirectory[str] | None = None
        self._lock: Lock | None = None
        self._place: InPlace | None = None
        self._count = Count()

    def __enter__(self) -> Store:
        try:
            with converted(self.path):
                if self.write:
                    self._open_to_write()
                else:
                    self._open_to_read()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._db is not None:
            self._db.close()
            self._db = self._reader = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def append(self, launch: Launch, outcome: Outcome, *, void: str | None = None) -> int:
        """Store one attempt of `launch` durably, in one transaction; return its number, from 0.

        `void` is why it does not count, None if it does. Raises StoreError (disk full, read-only,
        directory moved), and then nothing of it is stored.
        """
        samples = sample_rows(outcome.samples)
        with self._writing() as db:
            number = self._next("launches")
            attempt = self.attempts(launch.number)
            row = launch_row(number, launch, attempt, outcome, samples)
            row = voided(row, void) if void else row
            _insert(db, "launches", LAUNCH, [row])
            db.executemany(
                "INSERT INTO samples VALUES (?,?,?,?,?,?)", [(number, *one) for one in samples]
            )
        self._keep_count(launches=1, void=int(bool(void)))
        return attempt

    def check_in_place(self) -> None:
        """Raise StoreError if the directory or a file in it was moved, replaced or deleted."""
        if self._place is not None:
            self._place.check()

    def void(self, numbers: list[int], reason: str) -> None:
        """Mark the attempts of these launches that count as void, for `reason`; they are kept."""
        count = 0
        with self._writing() as db:
            for number in numbers:
                query = f"SELECT {LAUNCH} FROM launches WHERE number = ? AND void IS NULL"
                for row in db.execute(query, (number,)).fetchall():
                    if not is_sealed(row):
                        raise damaged(self.path, f"row {row[ID]} of launches")
                    new = voided(row, reason)
                    db.execute(
                        "UPDATE launches SET void = ?, checksum = ? WHERE id = ?",
                        (new[VOID], new[CHECKSUM], row[ID]),
                    )
                    count += 1
        self._keep_count(void=count)

    def attempts(self, number: int) -> int:
        """Return how many attempts of the launch `number` are stored."""
        with converted(self.path):
            query = "SELECT count(*) FROM launches WHERE number = ?"
            return int(self._open().execute(query, (number,)).fetchone()[0])

    def launches_s(self) -> float:
        """Return the seconds spent in all stored launches, those that do not count included."""
        return float(sum(row[WALL_S] for row in self._rows().launches()))

    def counting(self) -> set[int]:
        """Return the numbers of the launches that have an attempt that counts."""
        return {row[NUMBER] for row in self._rows().launches() if row[VOID] is None}

    def launches(
        self, *, samples: bool = True, void: bool = False, arrays: bool = False
    ) -> Iterator[Stored]:
        """Yield the stored launches in the order in which they were started.

        Without `void`, only attempts that count. Without `samples`, their samples are left out;
        with `arrays` their values are arrays of doubles, which are read in a third of the time.
        Raises StoreError where a launch is not whole or missing.
        """
        reader = self._rows()
        for row in reader.launches():
            if row[VOID] is not None and not void:
                continue
            found = reader.samples(row) if samples else ()
            try:
                one = stored(row, found, arrays=arrays)
            except UNREADABLE as error:
                raise damaged(self.path, f"row {row[ID]} of launches: {error}") from error
            yield one

    def some(self, places: Iterable[int]) -> list[Stored]:
        """Return the launches of these rows (from 1, in the order of starting), with samples.

        Rows that are not there are left out, and other rows are not checked. Raises StoreError as
        `launches` does.
        """
        reader = self._rows()
        try:
            rows = [row for place in places for row in reader.launch_at(place)]
            return [stored(row, reader.samples(row)) for row in rows]
        except UNREADABLE as error:
            raise damaged(self.path, f"launches: {error}") from error

    def began(self) -> tuple[float | None, tuple[str, ...]]:
        """Return when the first launch was started, None without one, and the nodes of all arms.

        The time is seconds since the epoch. No checksum is checked. Raises StoreError.
        """
        (first,) = self.ask("SELECT started FROM launches ORDER BY id LIMIT 1") or [(None,)]
        nodes = self.ask(f"SELECT DISTINCT node FROM gathered ORDER BY node LIMIT {MOST_NODES}")
        began = first[0] if isinstance(first[0], float) else None
        return began, tuple(str(node) for (node,) in nodes)

    def keep_gathered(self, several: Sequence[Gathered]) -> None:
        """Store the facts of nodes durably, all of them or none; raises StoreError as `append`."""
        with self._writing() as db:
            first = self._next("gathered")
            rows = [gathered_row(first + i, one) for i, one in enumerate(several)]
            _insert(db, "gathered", GATHERED, rows)
        self._keep_count(gathered=len(several))

    def gathered(self) -> list[Gathered]:
        """Return the facts of nodes in the order in which they were gathered."""
        found = []
        for row in self._rows().gathered():
            try:
                found.append(gathered(row))
            except UNREADABLE as error:
                raise damaged(self.path, f"row {row[ID]} of gathered: {error}") from error
        return found

    def bind_plan(self, plan_sha256: str) -> None:
        """Tie this database to one plan; raise StoreError if it belongs to another."""
        if not self.check_plan(plan_sha256):
            with self._writing() as db:
                db.execute("INSERT INTO meta VALUES ('plan', ?)", (plan_sha256,))

    def check_plan(self, plan_sha256: str) -> bool:
        """Return whether the database is bound to a plan; raise StoreError if it is another plan.

        A database that is being salvaged is not refused.
        """
        with converted(self.path):
            row = self._open().execute("SELECT value FROM meta WHERE key = 'plan'").fetchone()
        if row is not None and row[0] != plan_sha256 and not self.salvage:
            raise StoreError(
                f"the launches stored here are of plan {str(row[0])[:12]}, not {plan_sha256[:12]}",
                place=str(self.directory),
                fix="put the original plan.json back, or start anew in another directory",
            )
        return row is not None

    def change(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run one statement of the journal durably; raises StoreError as `append`."""
        with self._writing() as db:
            db.execute(statement, values)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows that a statement of the journal finds; raises StoreError as `append`."""
        with converted(self.path):
            return self._open().execute(statement).fetchall()

    def log_paths(self, launch: Launch) -> tuple[Path, Path]:
        """Return where the next attempt's stdout and stderr go; makes the logs folder."""
        logs = self.directory / "logs"
        try:
            logs.mkdir(exist_ok=True)
        except OSError as error:
            self.check_in_place()
            raise StoreError(
                f"cannot be made: {error.strerror}",
                place=str(logs),
                fix="see what is in its place, then continue with --resume",
            ) from error
        name = log_name(launch, self.attempts(launch.number))
        return logs / f"{name}.out", logs / f"{name}.err"

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError("the store is not open", place=str(self.directory))
        return self._db

    def _rows(self) -> Reader:
        self._open()
        assert self._reader is not None
        return self._reader

    def _open_to_read(self) -> None:
        if not self.path.exists() and not self.path.is_symlink():
            raise StoreError(
                "no launches are stored here",
                place=str(self.directory),
                fix="give the directory of a study that `paribus run` made",
            )
        if not self.salvage:
            self._db = open_for_reading(self.path)
            check_version(self._db, self.path, write=False)
            self._reader = Reader(self._db, self.path)
            return
        from paribus.store.salvage import Salvager, open_copy

        self._copy = TemporaryDirectory(prefix="paribus-salvage-")
        try:
            with converted(self.path):
                self._db = open_copy(self.path, Path(self._copy.name))
                check_version(self._db, self.path, write=False)
                self._reader = salvager = Salvager(self._db, self.path)
        except (StoreError, OSError) as error:
            raise nothing_whole(self.path, error) from error
        self.lost = salvager.lost

    def _open_to_write(self) -> None:
        if not self.held:
            self._lock = Lock(self.directory).take()
        check_files(self.path, links=False)
        self._db = db = connect(self.path)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            if read_count(self.directory) != Count():
                raise damaged(self.path, "it is empty, and launches were stored in it")
            db.executescript(f"BEGIN;{_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        check_version(db, self.path, write=True)
        self._reader = Reader(db, self.path)
        self._reader.check()
        void = [row[VOID] is not None for row in self._reader.launches()]
        self._place = InPlace(self.directory)
        self._keep_count(len(void), sum(void), sum(1 for _ in self._reader.gathered()))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run the body in a transaction: COMMIT at its end, ROLLBACK when it raises.

        The files must be in place before, so that nothing is stored where the logs of the launch
        could not be, and after, because what went into a file that was deleted is not stored.
        """
        db = self._open()
        self.check_in_place()
        with converted(self.path):
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        self.check_in_place()

    def _next(self, table: str) -> int:
        """Return the id of the next row: ids have no gaps, so that a lost row is noticed."""
        query = f"SELECT coalesce(max(id), 0) + 1 FROM {table}"
        return int(self._open().execute(query).fetchone()[0])

    def _keep_count(self, launches: int = 0, void: int = 0, gathered: int = 0) -> None:
        """Add rows that have been stored to the counts, and write these to launches.count."""
        old = self._count
        self._count = Count(old.launches + launches, old.void + void, old.gathered + gathered)
        fix = "check the disk, then continue with --resume: every stored launch is kept"
        with as_error(StoreError, self.directory / COUNT, fix):
            write_count(self.directory, self._count)


def _insert(db: sqlite3.Connection, table: str, columns: str, rows: Sequence[Row]) -> None:
    places = ",".join("?" * (columns.count(",") + 1))
    db.executemany(f"INSERT INTO {table}({columns}) VALUES ({places})", rows)


def log_name(launch: Launch, attempt: int) -> str:
    """Return the name of the logs of an attempt, without `.out` and `.err`: 0019-0-host-latency."""
    return f"{launch.number:04d}-{attempt}-{_plain(launch.arm)}-{_plain(launch.benchmark)}"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
