"""What a sitting must undo at its end, stored before it is done: scratch directories and switches.

A sitting is one `paribus run` of a study. One that is killed undoes nothing; the next one finds
here what it left, so that nothing has to be guessed from names in shared directories.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from paribus.store.store import Store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sittings(
  id INTEGER PRIMARY KEY,
  scratch TEXT NOT NULL,
  begun REAL NOT NULL,
  ended REAL
);
CREATE TABLE IF NOT EXISTS switches(
  id INTEGER PRIMARY KEY,
  arm TEXT NOT NULL,
  begun REAL NOT NULL,
  reverted REAL
);
"""


class Journal:
    """The journal of a study, in two tables of its store, which is open for writing."""

    def __init__(self, store: Store) -> None:
        self.store = store
        for statement in _SCHEMA.split(";"):
            if statement.strip():
                store.change(statement)

    def begin(self, scratches: Iterable[str]) -> None:
        """Note the scratch directories of a sitting that begins."""
        for scratch in scratches:
            self.store.change(
                "INSERT INTO sittings(scratch, begun) VALUES (?,?)", (scratch, time.time())
            )

    def left(self) -> list[str]:
        """Return the scratch directories of sittings that did not come to their end."""
        rows = self.store.ask("SELECT scratch FROM sittings WHERE ended IS NULL")
        return [row[0] for row in rows]

    def end(self) -> None:
        """Note that the scratch directories of all sittings have been removed."""
        self.store.change("UPDATE sittings SET ended = ? WHERE ended IS NULL", (time.time(),))

    def switch(self, arm: str) -> None:
        """Note that the platform is about to be switched to `arm`."""
        self.store.change("INSERT INTO switches(arm, begun) VALUES (?,?)", (arm, time.time()))

    def revert(self, arm: str) -> None:
        """Note that the platform was switched back from `arm`."""
        self.store.change(
            "UPDATE switches SET reverted = ? WHERE arm = ? AND reverted IS NULL",
            (time.time(), arm),
        )

    def switched(self) -> list[str]:
        """Return the arms from which the platform was not switched back, the last first."""
        rows = self.store.ask("SELECT arm FROM switches WHERE reverted IS NULL ORDER BY id DESC")
        return list(dict.fromkeys(row[0] for row in rows))
