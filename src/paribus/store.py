"""The study directory, and the only code that writes launches.

    plan.json      frozen before the first launch (study/plan.py)
    launches.db    SQLite, WAL, full sync; one transaction per launch; facts of the nodes
    logs/          NNNN-attempt-arm-benchmark.{out,err}, as printed
    verdict.json, report.html, ...   computed from the above, and only from it

A launch is stored before anything is computed from it. Of each planned launch at most one stored
attempt counts (`void` is NULL): the database itself enforces that.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from paribus.errors import StoreError
from paribus.model import Case, Facts, Launch, Outcome, Sample, State

SCHEMA_VERSION = 3

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
  facts TEXT NOT NULL
);
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """A launch as it stands in the store. `void` says why an attempt does not count."""

    launch: Launch
    attempt: int
    outcome: Outcome
    void: str | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts of one node of an arm, `at` seconds since the epoch, seen from inside the arm."""

    arm: str
    node: str
    at: float
    facts: Facts


def pack(values: tuple[float, ...]) -> bytes:
    """Return `values` as zlib-compressed little-endian doubles."""
    numbers = array.array("d", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return zlib.compress(numbers.tobytes(), 1)


def unpack(data: bytes) -> tuple[float, ...]:
    """Return what `pack` packed."""
    numbers = array.array("d", zlib.decompress(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


class Store:
    """One study directory, open. Use as a context manager.

    `write=True` takes the directory's lock: a second `paribus run` on it is refused.
    """

    def __init__(self, directory: Path, *, write: bool = False) -> None:
        self.directory = directory
        self.write = write
        self._db: sqlite3.Connection | None = None
        self._lock: int | None = None

    def __enter__(self) -> Store:
        path = self.directory / "launches.db"
        try:
            if self.write:
                self._take_lock()
                self._db = sqlite3.connect(path, isolation_level=None)
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                self._create_or_check(path)
            else:
                if not path.exists():
                    raise StoreError(
                        "no launches are stored here",
                        place=str(self.directory),
                        mend="give the directory of a study that `paribus run` made",
                    )
                self._db = _open_for_reading(path)
                _check_version(self._db, path)
        except sqlite3.Error as error:
            self.__exit__(None, None, None)
            raise _store_error(error, path) from error
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, launch: Launch, outcome: Outcome, *, void: str | None = None) -> None:
        """Store one attempt of `launch` durably, in one transaction.

        `void` is why it does not count, None if it does. Raises StoreError (disk full, read-only);
        then nothing of it is stored.
        """
        db = self._open()
        try:
            with _transaction(db):
                attempt = self.attempts(launch.number)
                cursor = db.execute(
                    "INSERT INTO launches(number, attempt, block, benchmark, arm, place, seed,"
                    " state, started, wall_s, exit_code, argv, facts, error, void)"
                    " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    (
                        launch.number,
                        attempt,
                        launch.block,
                        launch.benchmark,
                        launch.arm,
                        launch.place,
                        launch.seed,
                        outcome.state.value,
                        outcome.started,
                        outcome.wall_s,
                        outcome.exit_code,
                        json.dumps(outcome.argv),
                        json.dumps(outcome.facts),
                        outcome.error,
                        void,
                    ),
                )
                db.executemany(
                    "INSERT INTO samples VALUES (?,?,?,?,?,?)",
                    [
                        (
                            cursor.lastrowid,
                            s.metric,
                            s.case.to_json(),
                            s.batch,
                            len(s.values),
                            pack(s.values),
                        )
                        for s in outcome.samples
                    ],
                )
        except sqlite3.Error as error:
            raise _store_error(error, self.directory / "launches.db") from error

    def void(self, numbers: list[int], reason: str) -> None:
        """Make the counting attempts of these launches not count, keeping them on record."""
        db = self._open()
        try:
            with _transaction(db):
                db.executemany(
                    "UPDATE launches SET void = ? WHERE number = ? AND void IS NULL",
                    [(reason, number) for number in numbers],
                )
        except sqlite3.Error as error:
            raise _store_error(error, self.directory / "launches.db") from error

    def attempts(self, number: int) -> int:
        """Return how many attempts of the launch `number` are stored."""
        row = self._open().execute("SELECT count(*) FROM launches WHERE number = ?", (number,))
        return int(row.fetchone()[0])

    def launches_s(self) -> float:
        """Return the seconds spent in all stored launches, those that do not count included."""
        row = self._open().execute("SELECT coalesce(sum(wall_s), 0) FROM launches").fetchone()
        return float(row[0])

    def counting(self) -> set[int]:
        """Return the numbers of the launches that have an attempt that counts."""
        rows = self._open().execute("SELECT number FROM launches WHERE void IS NULL")
        return {row[0] for row in rows}

    def launches(self, *, samples: bool = True, void: bool = False) -> Iterator[Stored]:
        """Yield the stored launches in the order in which they were started.

        Without `void`, only attempts that count. Without `samples`, their samples are left out.
        """
        db = self._open()
        where = "" if void else "WHERE void IS NULL"
        rows = db.execute(
            "SELECT id, number, attempt, block, benchmark, arm, place, seed, state, started,"
            f" wall_s, exit_code, argv, facts, error, void FROM launches {where} ORDER BY id"
        )
        for row in rows:
            found: tuple[Sample, ...] = ()
            if samples:
                found = tuple(
                    Sample(metric, Case.from_json(parameters), unpack(data), batch)
                    for metric, parameters, batch, data in db.execute(
                        "SELECT metric, parameters, batch, data FROM samples"
                        " WHERE launch = ? ORDER BY rowid",
                        (row[0],),
                    )
                )
            yield Stored(
                Launch(row[1], row[3], row[4], row[5], row[7], row[6]),
                row[2],
                Outcome(
                    State(row[8]),
                    row[9],
                    row[10],
                    row[11],
                    tuple(json.loads(row[12])),
                    found,
                    json.loads(row[13]),
                    row[14],
                ),
                row[15],
            )

    def keep_gathered(self, several: Sequence[Gathered]) -> None:
        """Store the facts of nodes durably, all of them or none; raises StoreError as `append`."""
        db = self._open()
        rows = [(one.arm, one.node, one.at, json.dumps(one.facts)) for one in several]
        try:
            with _transaction(db):
                db.executemany("INSERT INTO gathered(arm, node, at, facts) VALUES (?,?,?,?)", rows)
        except sqlite3.Error as error:
            raise _store_error(error, self.directory / "launches.db") from error

    def gathered(self) -> list[Gathered]:
        """Return the facts of nodes in the order in which they were gathered."""
        rows = self._open().execute("SELECT arm, node, at, facts FROM gathered ORDER BY id")
        return [Gathered(arm, node, at, json.loads(facts)) for arm, node, at, facts in rows]

    def bind_plan(self, plan_sha256: str) -> None:
        """Tie this database to one plan; raise StoreError if it belongs to another."""
        db = self._open()
        row = db.execute("SELECT value FROM meta WHERE key = 'plan'").fetchone()
        if row is None:
            db.execute("INSERT INTO meta VALUES ('plan', ?)", (plan_sha256,))
        elif row[0] != plan_sha256:
            raise StoreError(
                f"the launches stored here are of plan {row[0][:12]}, not {plan_sha256[:12]}",
                place=str(self.directory),
                mend="put the original plan.json back, or start anew in another directory",
            )

    def change(self, statement: str, values: Sequence[object] = ()) -> None:
        """Carry out one statement of the journal durably; raises StoreError as `append`."""
        db = self._open()
        try:
            with _transaction(db):
                db.execute(statement, values)
        except sqlite3.Error as error:
            raise _store_error(error, self.directory / "launches.db") from error

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows that a statement of the journal finds; raises StoreError as `append`."""
        try:
            return self._open().execute(statement).fetchall()
        except sqlite3.Error as error:
            raise _store_error(error, self.directory / "launches.db") from error

    def log_paths(self, launch: Launch) -> tuple[Path, Path]:
        """Return where the next attempt's stdout and stderr go; makes the logs folder."""
        logs = self.directory / "logs"
        logs.mkdir(exist_ok=True)
        attempt = self.attempts(launch.number)
        name = f"{launch.number:04d}-{attempt}-{_plain(launch.arm)}-{_plain(launch.benchmark)}"
        return logs / f"{name}.out", logs / f"{name}.err"

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            raise StoreError("the store is not open", place=str(self.directory))
        return self._db

    def _take_lock(self) -> None:
        try:
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                "another `paribus run` is at work in this directory",
                place=str(self.directory),
                mend="wait for it, or end it, then use --resume",
            ) from None
        except OSError as error:
            raise StoreError(
                f"cannot write here: {error.strerror}",
                place=str(self.directory),
                mend="choose another directory with --out",
            ) from error

    def _create_or_check(self, path: Path) -> None:
        db = self._open()
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:
            db.executescript(f"BEGIN;{_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        _check_version(db, path)


class _transaction:  # noqa: N801 -- reads as a statement
    """BEGIN IMMEDIATE ... COMMIT, or ROLLBACK when the body raises."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.db.execute("COMMIT")
        elif self.db.in_transaction:
            self.db.execute("ROLLBACK")


def _open_for_reading(path: Path) -> sqlite3.Connection:
    """Open `path` without writing; a read-only medium needs SQLite's `immutable`."""
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    options = "mode=ro" if writable else "mode=ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        raise StoreError(
            f"has schema version {version}; this Paribus reads version {SCHEMA_VERSION}",
            place=str(path),
            mend="update Paribus" if newer else "this is not a Paribus database",
        )


def _store_error(error: sqlite3.Error, path: Path) -> StoreError:
    text = str(error)
    if "full" in text:
        return _no_space(path.parent)
    if "readonly" in text or "unable to open" in text:
        return StoreError(
            f"cannot be used: {text}",
            place=str(path),
            mend="check the permissions of the directory, or choose another with --out",
        )
    return StoreError(
        f"cannot be used: {text}", place=str(path), mend="is it a Paribus study directory?"
    )


def _no_space(directory: Path) -> StoreError:
    return StoreError(
        "no space is left for the launches",
        place=str(directory),
        mend="free some space, then continue with --resume: every stored launch is kept",
    )


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)
