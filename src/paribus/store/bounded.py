"""Statements on a launches.db that may be anybody's: they end by a signal, and in time."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

MOST_S = 60.0
"""CPU seconds of a statement until its next row: SQLite checks some GB of a database in them."""

_STEPS = 10_000
"""Instructions of SQLite's virtual machine, a millisecond or less, between two looks at the clock.

Only then do signals arrive; without a handler a statement is deaf to them.
"""

_last = threading.local()


class Bounded(sqlite3.Connection):
    """A connection whose statements end when they take too long; see `was_late`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clock = _Clock()
        self.set_progress_handler(self._clock.is_late, _STEPS)

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """Run a statement, which has its time from now on."""
        self.renew()
        return super().execute(*args)

    def renew(self) -> None:
        """Let the statement have as much time again: a row came."""
        self._clock.until = time.thread_time() + MOST_S


class _Clock:
    until = 0.0

    def is_late(self) -> bool:
        _last.late = time.thread_time() > self.until
        return bool(_last.late)


def was_late() -> bool:
    """Return whether the statement that SQLite interrupted last in this thread took too long.

    If not it was a signal: what its handler raised, the module sqlite3 does not pass on.
    """
    return bool(getattr(_last, "late", False))


def connect(database: str | Path, *, uri: bool = False) -> Bounded:
    """Return a connection in autocommit mode; raises sqlite3.Error."""
    return sqlite3.connect(database, uri=uri, isolation_level=None, factory=Bounded)


def foreign(db: sqlite3.Connection) -> str:
    """Return the name of something in `db` that no study has, and that may compute without end.

    These are views, triggers, virtual tables and generated columns; "" if there is none. SQLite
    goes by the text of a definition, not by the type that stands beside it.
    """
    ours = " AND ".join(
        f"sql NOT LIKE 'CREATE {kind} %'" for kind in ("TABLE", "INDEX", "UNIQUE INDEX")
    )
    row = db.execute(f"SELECT name FROM sqlite_master WHERE {ours}").fetchone()
    if row:
        return str(row[0])
    for table in ("launches", "samples", "gathered", "meta", "sittings", "switches"):
        for _, name, *_, hidden in db.execute(f"PRAGMA table_xinfo({table})"):
            if hidden:
                return f"{table}.{name}"
    return ""
