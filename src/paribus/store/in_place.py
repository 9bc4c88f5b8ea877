"""Whether a study directory is still where it was while a study writes into it.

SQLite writes on into a file that was deleted, replaced or moved away, and says that all is well.
"""

from __future__ import annotations

from pathlib import Path

from paribus.core import StoreError

_WATCHED = ("launches.db", "launches.db-wal", "plan.json")


class InPlace:
    """The files of a study directory as they were when it was opened."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = {name: identity(directory / name) for name in _WATCHED}
        if self.files["plan.json"] is None:
            del self.files["plan.json"]  # a study that is not kept has none

    def check(self) -> None:
        """Raise StoreError if a file is gone or is another one."""
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
