"""The directory of a study: which one `paribus run` writes to, and what may be removed there."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

from paribus import plan as plans
from paribus.commandline import typed
from paribus.errors import StoreError
from paribus.inputs import exists, is_directory
from paribus.model import State
from paribus.platform.journal import Journal
from paribus.records import standing
from paribus.store import Store

FILES = (
    *("plan.json", plans.DRAFT, "launches.db", "launches.db-wal", "launches.db-shm"),
    *("launches.count", "lock", "accepted.json", "verdict.json", "report.html"),
    *("cases.csv", "launches.csv", "values.csv", "values.parquet", "logs", "figures"),
    *("table.md", "table.tex", "table.csv", "junit.xml", "figures.ipynb", "composite.xml"),
    *standing.FILES,
)
"""What Paribus writes into a study directory: nothing else there is ever removed."""


def directory_for(name: str, out: Path | None, *, resume: bool, replace: bool) -> Path:
    """Return the directory of a study called `name`, or `out` where the user gave one.

    Without `out` it is `name`.study; if launches of another study lie there, `name`-2.study and
    so on, which stderr names. `resume` and `replace` take the last of these. Raises StoreError for
    a directory that holds something else, is at work, or is not the user's own.
    """
    if out is None:
        series = [Path(f"{name}.study")]
        for number in count(2):
            if not exists(series[-1]):
                break
            series.append(Path(f"{name}-{number}.study"))
        *taken, free = series
        if resume or replace:
            out = taken[-1] if taken else free
            if len(taken) > 1:
                done = "continuing" if resume else "overwriting"
                print(f"paribus: {done} {out}, the last of {len(taken)}", file=sys.stderr)
        elif taken and _has_nothing(taken[-1]):
            out = taken[-1]
        else:
            out = free
            if taken:
                print(
                    f"paribus: writing to {out}: {taken[-1]} holds launches (to continue or"
                    f" overwrite that one, give {typed(('--out', taken[-1]))} with --resume or"
                    " --replace)",
                    file=sys.stderr,
                )
    _check_own(out)
    if resume:
        plans.read_plan(out)
    else:
        _check_free(out, replace=replace)
    return out


def clear(directory: Path, *, replace: bool) -> None:
    """Remove what Paribus wrote into `directory`, if it is there and may be removed.

    It is asked again whether it may: a sitting may have written there since `directory_for`. Raises
    StoreError then, while another sitting is at work there, or when one that was killed left the
    platform switched: only `--resume` knows how to switch it back.
    """
    if not is_directory(directory):
        return
    refuse_at_work(directory)
    if _switched(directory):
        raise StoreError(
            "the last sitting was killed and left the platform switched",
            place=str(directory),
            fix="switch it back with --resume first",
        )
    _check_free(directory, replace=replace)
    for name in FILES:
        path = directory / name
        if is_directory(path) and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def refuse_at_work(directory: Path) -> None:
    """Raise StoreError while another sitting is at work in `directory`."""
    if is_directory(directory) and _at_work(directory):
        raise StoreError(
            "another `paribus run` is at work in this directory",
            place=str(directory),
            fix="wait for it, or end it",
        )


def _check_free(directory: Path, *, replace: bool) -> None:
    """Raise StoreError for a directory whose content may not be removed."""
    if exists(directory) and not (replace and _is_study(directory)) and not _has_nothing(directory):
        raise StoreError(
            "already exists",
            place=str(directory),
            fix="continue it with --resume, overwrite a study with --replace, or choose another"
            " directory with --out",
        )


def _is_study(directory: Path) -> bool:
    return is_directory(directory) and any(exists(directory / name) for name in FILES[:3])


def _has_nothing(directory: Path) -> bool:
    """Return whether nothing was measured here: no launch gave a figure, and no file is foreign."""
    if not is_directory(directory) or not os.access(directory, os.R_OK | os.X_OK):
        return False
    if any(path.name not in FILES for path in directory.iterdir()) or _at_work(directory):
        return False
    if not exists(directory / "launches.db"):
        return not exists(directory / "launches.count")
    try:
        with Store(directory) as store:
            return not any(one.outcome.state is State.OK for one in store.launches(samples=False))
    except StoreError:
        return False


def _at_work(directory: Path) -> bool:
    with suppress(FileNotFoundError):
        lock = os.open(directory / "lock", os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
    return False


def _switched(directory: Path) -> bool:
    """Return whether a killed sitting left the platform switched, as far as the store can say."""
    if not exists(directory / "launches.db"):
        return False
    try:
        with Store(directory, write=True) as store:
            return bool(Journal(store).switched())
    except StoreError:
        return False


def _check_own(directory: Path) -> None:
    """Refuse a directory of somebody else, who could lead what is written there elsewhere."""
    if not exists(directory):
        return
    found = directory.stat()
    if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
        raise StoreError(
            "belongs to another user"
            if found.st_uid != os.geteuid()
            else "everyone can write to it",
            place=str(directory),
            fix="choose a directory of your own with --out, or `chown` and `chmod o-w` it",
        )
