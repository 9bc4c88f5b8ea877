"""The directory of a study: which one `paribus run` writes to, and what may be removed there.

A study file net.toml gets net.study, or net-2.study where that holds another study's launches. Its
lock is taken before anything is written, and held until the study ends.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from paribus.border import exists, is_directory
from paribus.core import State, StoreError, typed
from paribus.plan import frozen as plans
from paribus.store import AtWorkError, Lock, Store, at_work, lock, standing
from paribus.store.journal import Journal

HELD = (lock.NAME, *standing.FILES)
"""Files that a `paribus run` keeps open while it is at work."""

FILES = (
    *("plan.json", plans.DRAFT, "launches.db", "launches.db-wal", "launches.db-shm"),
    *("launches.count", "accepted.json", "verdict.json", "report.html"),
    *("cases.csv", "launches.csv", "values.csv", "values.parquet", "logs", "figures"),
    *("table.md", "table.tex", "table.csv", "junit.xml", "figures.ipynb", "composite.xml"),
    *("scaling.csv", "parts.csv", "series.csv"),
    *("against.html", "change.json", "alone.html", "alone.json"),
    *HELD,
)
"""Names that Paribus writes into a study directory; nothing else there is ever removed."""


@contextmanager
def claimed(
    name: str,
    out: Path | None,
    *,
    resume: bool,
    replace: bool,
    wait_s: float = 0.0,
    keep: bool = True,
) -> Iterator[Path]:
    """Yield the directory of a study called `name`, or `out` where given, made and locked.

    Without `out` it is `name`.study; if that holds launches, or a study is at work there,
    `name`-2.study and so on, and stderr says so. `resume` and `replace` take the last of these. A
    directory that was made here, and that an error leaves without a plan, is removed; without
    `keep` also one with a plan and no launch. Raises StoreError for a directory that holds
    something else, is not the user's own, or is still at work after `wait_s` seconds.
    """
    if out is None and (resume or replace):
        *taken, free = _series(name)
        out = taken[-1] if taken else free
        if len(taken) > 1:
            done = "continuing" if resume else "overwriting"
            print(f"paribus: {done} {out}, the last of {len(taken)}", file=sys.stderr)
    if out is None:
        held = _next(name)
    else:
        held = _chosen(out, resume=resume, replace=replace, wait_s=wait_s)
    try:
        yield held.directory
    except BaseException as error:
        # No Exception: after an interrupt the study may be continued.
        if not keep and isinstance(error, Exception) and not _launched(held.directory):
            with suppress(StoreError):
                clear(held.directory, replace=True)
        if not exists(held.directory / "plan.json") and (held.made or not keep):
            _remove(held.directory, FILES)
            if held.made:
                with suppress(OSError):
                    held.directory.rmdir()  # unless something else is in it
        raise
    finally:
        held.release()


def discard(directory: Path) -> None:
    """Remove the directory of a study that measured nothing; raises StoreError for any other."""
    with claimed(directory.stem, directory, resume=False, replace=False):
        clear(directory, replace=False)
        _remove(directory, FILES)
        directory.rmdir()


def _series(name: str) -> list[Path]:
    """Return the directories of studies called `name`, and last the next, which does not exist."""
    series = [Path(f"{name}.study")]
    while exists(series[-1]):
        series.append(Path(f"{name}-{len(series) + 1}.study"))
    return series


def _next(name: str) -> Lock:
    """Return the lock of the directory to use for a study called `name`.

    It is the last of its series if nothing was measured there, else a new one.
    """
    passed = ""
    for number in count(max(1, len(_series(name)) - 1)):
        directory = Path(f"{name}.study" if number == 1 else f"{name}-{number}.study")
        held = Lock(directory)
        try:
            if not exists(directory) or at_work(directory) or _has_nothing(directory):
                _check_own(directory)
                if _has_nothing(held.take().directory):
                    break
                held.release()
            passed = (
                f"{directory} holds launches (to continue or overwrite that one, give"
                f" {typed(('--out', directory))} with --resume or --replace)"
            )
        except AtWorkError:
            passed = f"a study is at work in {directory}"
    if passed:
        print(f"paribus: writing to {directory}: {passed}", file=sys.stderr)
    return held


def _chosen(directory: Path, *, resume: bool, replace: bool, wait_s: float) -> Lock:
    """Return the lock of a directory that the user chose.

    It is checked first, so that nothing is written where nothing may be, and again once it is
    locked, since another process may have been quicker.
    """

    def check() -> None:
        if resume:
            plans.read_plan(directory)
        else:
            _check_free(directory, replace=replace)

    _check_own(directory)
    if not wait_s:
        refuse_at_work(directory)
        check()
    held = Lock(directory).take(wait_s)
    try:
        check()
    except BaseException:
        held.release()
        raise
    return held


def clear(directory: Path, *, replace: bool) -> None:
    """Remove what Paribus wrote into `directory`, which the caller has locked.

    Raises StoreError if it may not be removed, and when a sitting that was killed left the platform
    switched: only `--resume` knows how to switch it back.
    """
    if _switched(directory):
        raise StoreError(
            "the last sitting was killed and left the platform switched",
            place=str(directory),
            fix="switch it back with --resume first",
        )
    _check_free(directory, replace=replace)
    _remove(directory, [name for name in FILES if name not in HELD])


def _remove(directory: Path, names: Iterable[str]) -> None:
    for name in names:
        path = directory / name
        if is_directory(path) and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def refuse_at_work(directory: Path) -> None:
    """Raise AtWorkError while a `paribus run` is at work in `directory`."""
    if at_work(directory):
        raise AtWorkError(directory)


def _check_free(directory: Path, *, replace: bool) -> None:
    """Raise StoreError for a directory whose content may not be removed."""
    if exists(directory) and not (replace and _is_study(directory)) and not _has_nothing(directory):
        raise StoreError(
            "already exists",
            place=str(directory),
            fix="choose another directory with --out; `paribus run STUDY` continues a study with"
            " --resume, and overwrites it with --replace",
        )


def _is_study(directory: Path) -> bool:
    return is_directory(directory) and any(exists(directory / name) for name in FILES[:3])


def _has_nothing(directory: Path) -> bool:
    """Return whether a directory holds no good launch, and no file that is not of Paribus."""
    if not is_directory(directory) or not os.access(directory, os.R_OK | os.X_OK):
        return False
    if any(path.name not in FILES for path in directory.iterdir()):
        return False
    if not exists(directory / "launches.db"):
        return not exists(directory / "launches.count")
    try:
        with Store(directory) as store:
            return not any(one.outcome.state is State.OK for one in store.launches(samples=False))
    except StoreError:
        return False


def _launched(directory: Path) -> bool:
    """Return whether a launch is stored; a store that cannot be read may have one."""
    if not exists(directory / "launches.db"):
        return False
    try:
        with Store(directory) as store:
            return any(True for _ in store.launches(samples=False, void=True))
    except StoreError:
        return True


def _switched(directory: Path) -> bool:
    """Return whether a killed sitting left the platform switched; False without a usable store."""
    if not exists(directory / "launches.db"):
        return False
    try:
        with Store(directory, write=True, held=True) as store:
            return bool(Journal(store).switched())
    except StoreError:
        return False


def _check_own(directory: Path) -> None:
    """Refuse a directory that others can change: they could redirect what is written there."""
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
