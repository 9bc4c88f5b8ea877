"""SQLite statements on a launches.db that may come from anybody: with a time limit, interruptible.

A forged database can hold views or corrupt pages on which SQLite computes without end.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

MOST_S = 60.0
"""The most CPU seconds until the next row of a statement; in them SQLite checks some GB."""

_STEPS = 10_000
"""Instructions of SQLite's virtual machine, a millisecond or less, between two looks at the clock.

Python handles signals only then: without a progress handler a statement cannot be interrupted.
"""

_last = threading.local()


class Bounded(sqlite3.Connection):
    """A connection whose statements are interrupted after MOST_S seconds; see `was_late`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clock = _Clock()
        self.set_progress_handler(self._clock.is_late, _STEPS)

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """Run a statement; its time begins now."""
        self.renew()
        return super().execute(*args)

    def renew(self) -> None:
        """Give the running statement MOST_S seconds again, as it returned a row."""
        self._clock.until = time.thread_time() + MOST_S


class _Clock:
    until = 0.0

    def is_late(self) -> bool:
        _last.late = time.thread_time() > self.until
        return bool(_last.late)


def was_late() -> bool:
    """Return whether the statement that SQLite interrupted last in this thread took too long.

    If not, a signal arrived: the module sqlite3 drops the exception that its handler raised.
    """
    return bool(getattr(_last, "late", False))


def connect(database: str | Path, *, uri: bool = False) -> Bounded:
    """Return a connection in autocommit mode; raises sqlite3.Error."""
    return sqlite3.connect(database, uri=uri, isolation_level=None, factory=Bounded)


def foreign(db: sqlite3.Connection) -> str:
    """Return the name of a view, trigger, virtual table or generated column in `db`, "" if none.

    No study has one, and it may compute without end. The text of a definition is checked, because
    SQLite goes by it, and not by the type that stands beside it.
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
