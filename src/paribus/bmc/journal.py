"""The journal of a switch: what it is about to do and has done, on disk before it goes on.

One file for each BMC, of JSON lines. Whoever finds a line `sent` for a write never sends that write
again: the state of the BMC says whether it took effect. A switch leaves, for example,

    {"what": "begin", "host": .., "profile": .., "shape": .., "before": .., "writes": [..], ..}
    {"what": "way", "way": "forth"}                  "forth" to the profile, "back" to undo it
    {"what": "sent", "way": "forth", "number": 0}    then "ended" with `how` it ended
    {"what": "end", "how": "switched"}
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from paribus.bmc.profiles import Access
from paribus.border import home
from paribus.core import UserError

Line = dict[str, Any]
"""One line of the journal."""


def place_of(access: Access) -> Path:
    """Return where the journal of a BMC is: under XDG_STATE_HOME, one file for each address."""
    base = os.environ.get("XDG_STATE_HOME") or str(home() / ".local/state")
    name = access.place.replace(":", "_").replace("/", "_")
    return Path(base) / "paribus" / "topology" / f"{name}.journal"


class Journal:
    """The journal of one BMC, locked: one switch at a time. Use as a context manager.

    `lines` are those of the last switch. Raises UserError where another process holds the file,
    and where it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[Line] = []
        self._descriptor = -1

    def __enter__(self) -> Journal:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise UserError(
                "another switch of this server is under way",
                place=str(self.path),
                fix="wait until it has ended",
            ) from None
        _sync(self.path.parent)
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _read(self) -> None:
        """Read the last switch; a last line that was cut off by a kill was never acted on."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            text = file.read()
        whole, _, cut = text.rpartition(b"\n")
        if cut:
            os.ftruncate(self._descriptor, len(whole) + bool(whole))
        os.lseek(self._descriptor, 0, os.SEEK_END)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                found = json.loads(line)
                what = found["what"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UserError(
                    f"line {number} is damaged",
                    place=str(self.path),
                    fix="look at the server yourself; then remove this file",
                ) from None
            if what == "begin":
                self.lines = []
            self.lines.append(found)

    def note(self, what: str, **more: Any) -> None:
        """Write a line, and return when it is on the disk."""
        line = {"what": what, **more}
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)
        self.lines.append(line)

    def begin(self, **more: Any) -> None:
        """Begin a switch: what was noted of an earlier one is no longer needed."""
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.lines = []
        self.note("begin", **more)

    def first(self, what: str) -> Line | None:
        """Return the first line of a kind, None if there is none."""
        return next((line for line in self.lines if line["what"] == what), None)

    @property
    def unfinished(self) -> Line | None:
        """How the last switch began, None where it ended verified."""
        ends = [line["how"] for line in self.lines if line["what"] == "end"]
        return None if ends and ends[-1] != "stopped" else self.first("begin")

    def sent(self, way: str) -> set[int]:
        """Return the numbers of the writes that were sent on a way since it was last begun."""
        numbers: set[int] = set()
        for line in self.lines:
            if line["what"] == "way" and line["way"] == way:
                numbers = set()
            elif line["what"] == "sent" and line["way"] == way:
                numbers.add(line["number"])
        return numbers


def _sync(directory: Path) -> None:
    """Put a directory, with the name of a new file in it, on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
