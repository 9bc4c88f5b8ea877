"""Find the logs of tools that ran elsewhere, and the arm of each.

In go the paths of `paribus compare logs/host logs/bridged`; out come the arms "host" and "bridged",
and a `Log` for each output in the files below them. A file that cannot be read becomes an `Unread`
with the reason, and all others are read.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

from paribus.border import exists, is_directory, printable
from paribus.core import Scalar, Unreadable, UserError, natural
from paribus.logs.log import Log, Unread
from paribus.logs.reading import is_log, read_files
from paribus.plan import Plan, read_plan
from paribus.readers.known import harnesses

_SOURCES = frozenset(
    (
        *("c", "cc", "cpp", "cxx", "cu", "cuh", "h", "hpp", "f", "f90", "for", "py", "ipynb"),
        *("pl", "r", "m", "go", "rs", "java", "js", "ts", "tex", "bib", "diff", "patch", "def"),
        *("sh", "bash", "csh", "zsh", "slurm", "sbatch", "pbs", "lsf", "j2", "cmake", "mk"),
        *("toml", "ini", "cfg", "conf"),  # not yaml: HPCG 3.0 writes its results so
    )
)
_DOCUMENTS = frozenset(
    ("readme", "license", "makefile", "cmakelists", "dockerfile", "containerfile")
)
"""Names of sources, scripts, settings and documents: beside outputs they quote titles.

One that is given by itself is read all the same.
"""


class _File(NamedTuple):
    """One file to be read: `name` is its path below the folder of its arm.

    `written` is in seconds since the epoch, `size` in bytes.
    """

    arm: str
    name: str
    path: str
    written: float
    size: int


def are_logs(paths: Sequence[Path]) -> bool:
    """Return whether `paths` are to be read as logs, rather than as tables of numbers."""
    return any(is_directory(path) or is_log(path) for path in paths)


def arms_of(
    paths: Sequence[Path], fix: str = "give the folder of another arm beside it"
) -> tuple[str, ...]:
    """Return a name for each path's arm: the part of the path that no other path has.

    Raises UserError, with `fix`, for a path that is given twice.

    >>> arms_of([Path("logs/host/osu.log"), Path("logs/bridged/osu.log")])
    ('host', 'bridged')
    """
    parts = [Path(os.path.abspath(path)).parts for path in paths]  # noqa: PTH100 - links keep their names
    twice = [path for path, part in zip(paths, parts, strict=True) if parts.count(part) > 1]
    if twice:
        raise UserError("is given twice", place=_shown(twice[0]), fix=fix)
    length = next(n for n in range(1, 999) if len({part[-n:] for part in parts}) == len(parts))
    same = 0
    while same < length - 1 and len({part[-same - 1] for part in parts}) == 1:
        same += 1
    names = ["/".join(part[-length : len(part) - same]) for part in parts]
    stems = [
        Path(name).stem if path.is_file() and not same else name
        for name, path in zip(names, paths, strict=True)
    ]
    return tuple(stems if len(set(stems)) == len(stems) else names)


def find_logs(paths: Sequence[Path]) -> tuple[tuple[str, ...], list[Log], list[Unread]]:
    """Return the names of the arms, all logs, and what could not be read.

    Each of `paths` is the file or folder of one arm. Two kinds hold several arms: the directory of
    a study, and a single file of some harnesses. What lies below another path of the list belongs
    to the arm of that path only. Raises UserError for a path that does not exist.
    """
    if missing := [path for path in paths if not exists(path)]:
        raise UserError("does not exist", place=_shown(missing[0]), fix="check the spelling")
    arms: dict[str, None] = {}
    unread: list[Unread] = []
    logs: list[Log] = []
    files: list[_File] = []
    seen: dict[tuple[int, int], str] = {}
    others = {os.path.abspath(path) for path in paths}  # noqa: PTH100 - as in arms_of
    for path_arm, path in zip(arms_of(paths), paths, strict=True):
        study_arms, arm_of_log = _arms_of_study(path)
        arms |= dict.fromkeys([f"{path_arm}/{arm}" for arm in study_arms] or [path_arm])
        for name, place, status in _files(path_arm, path, others, unread):
            arm = path_arm
            if study_arms:
                if name not in arm_of_log or not name.endswith(".out"):
                    continue
                arm = f"{path_arm}/{arm_of_log[name]}"
            before = seen.setdefault((status.st_dev, status.st_ino), place)
            if before is not place:
                same = _shown(Path(before))
                unread.append(Unread(Unreadable.SAME_FILE, same, arm=arm, name=name))
                continue
            written = _rounded(status.st_mtime)
            files.append(_File(arm, name, place, written, status.st_size))
    contents = read_files([(file.path, file.size) for file in files])
    for file, content in zip(files, contents, strict=True):
        logs += _logs(file, content.found)
        unread += [
            replace(why, arm=file.arm, name=file.name, path=file.path) for why in content.problems
        ]
    if len(files) == 1:
        arms, logs, unread = _arms_within_file(arms, logs, unread)
    order = {arm: at for at, arm in enumerate(arms)}
    logs.sort(key=lambda log: order[log.arm])
    return tuple(arms), logs, unread


def _arms_within_file(
    arms: dict[str, None], logs: list[Log], unread: list[Unread]
) -> tuple[dict[str, None], list[Log], list[Unread]]:
    """Return the arms within the only file, with its logs as those of these arms.

    Of a file of hyperfine each command is an arm, and so no parameter of its logs. Everything is
    returned as it is if the file holds one arm only.
    """
    inside = dict.fromkeys([log.within for log in logs] + [one.within for one in unread])
    if len(inside) < 2 or not all(inside):
        return arms, logs, unread
    key = harnesses()[logs[0].reading.benchmark].arms if logs else ""

    def without_key(parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return {name: value for name, value in parameters.items() if name != key}

    for at, log in enumerate(logs):
        reading = replace(log.reading, parameters=without_key(log.reading.parameters))
        logs[at] = replace(log, arm=log.within, reading=reading)
    return inside, logs, [replace(one, arm=one.within, of=without_key(one.of)) for one in unread]


def _arms_of_study(path: Path) -> tuple[list[str], Mapping[str, str]]:
    """Return the arms of a study, and the arm of each launch by the name of its log.

    The warm-up is left out, and of a launch that was tried again every attempt but the last. Both
    are empty if `path` is neither the directory of a study nor its folder of logs.
    """
    directory = next((p for p in (path, path.parent) if (p / "plan.json").is_file()), None)
    if directory is None or (directory is not path and path.name != "logs"):
        return [], {}
    frozen = read_plan(directory)
    found = sorted(((directory / "logs").glob("*.out")), key=lambda one: natural(one.name))
    named = [re.match("([0-9]+)(?:-[0-9]+)?-?(.*)", one.name) for one in found]
    last = {f"{int(one[1][:9]):04d}": one for one in named if one}
    logs = {number: one[2] for number, one in last.items()}
    # The warm-up may have led to another order than the frozen one: the true order is the one
    # that agrees with the names of more logs.
    led_to = frozen.design.after(frozen, math.inf)
    orders = [_counted(one, logs) for one in (frozen, led_to)]
    arms = max(
        orders, key=lambda order: sum(logs.get(n, "").startswith(arm) for n, arm in order.items())
    )
    names = {last[number].string: arm for number, arm in arms.items() if number in last}
    return [arm.name for arm in frozen.study.arms], names


def _counted(plan: Plan, logs: Mapping[str, str]) -> dict[str, str]:
    """Return the arm of each launch that counts, by its number as in the names of `logs`."""
    most = max(map(int, logs), default=0)
    launches = takewhile(lambda one: one.number <= most, chain.from_iterable(plan.blocks()))
    return {
        f"{launch.number:04d}": launch.arm
        for launch in launches
        if launch.block and (launch.place or not plan.session)
    }


# --- files -----------------------------------------------------------------------------------


def _files(
    arm: str, path: Path, others: set[str], unread: list[Unread]
) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield name, path and status of each file of an arm that may be a log, log2 before log10.

    Adds to `unread` why others are skipped; hidden files are skipped without a word. `others` are
    the paths of all arms.
    """

    def skip(name: str, code: Unreadable, detail: str = "") -> None:
        unread.append(Unread(code, detail, arm=arm, name=name))

    found = [(path.name, str(path))]
    if path.is_dir():
        base = path / "logs" if (path / "plan.json").is_file() else path
        found = sorted(_walk(base, others, skip), key=lambda one: natural(one[0]))
    for name, file in found:
        try:
            status = os.stat(file)  # noqa: PTH116 - of thousands, each is no Path before it is read
        except OSError as error:
            skip(name, Unreadable.CANNOT_BE_READ, error.strerror or "")
            continue
        if not stat.S_ISREG(status.st_mode):
            skip(name, Unreadable.NO_FILE)
        elif file != str(path) and _is_source(Path(name)):
            skip(name, Unreadable.NO_LOG)
        else:
            yield name, file, status


def _is_source(name: Path) -> bool:
    return name.suffix[1:].lower() in _SOURCES or name.stem.lower() in _DOCUMENTS


def _walk(
    base: Path, others: set[str], skip: Callable[[str, Unreadable, str], None]
) -> Iterator[tuple[str, str]]:
    """Yield name and path of all that is no folder below `base`, without the paths of `others`."""

    def failed(error: OSError) -> None:
        name = os.path.relpath(error.filename, top)
        skip(name, Unreadable.CANNOT_BE_READ, error.strerror or "")

    top = os.path.abspath(base)  # noqa: PTH100 - as in arms_of
    for folder, folders, names in os.walk(top, onerror=failed):
        inside = f"{folder[len(top) + 1 :]}/" if folder != top else ""
        for name in folders:
            if (Path(folder) / name).is_symlink():
                skip(inside + name, Unreadable.LINK_TO_FOLDER, "")
        folders[:] = [n for n in folders if n[0] != "." and f"{folder}/{n}" not in others]
        for name in names:
            if name[0] != "." and f"{folder}/{name}" not in others:
                yield inside + name, f"{folder}/{name}"


def _logs(file: _File, found: Sequence[Log]) -> Iterator[Log]:
    """Yield the logs that were found in a file, completed by what is known of the file."""
    tools = [log.reading.benchmark for log in found]
    for log in found:
        yield replace(
            log,
            arm=file.arm,
            name=f"{file.name}#{log.part}" if log.part else file.name,
            path=file.path,
            written=file.written,
            at=_rounded(log.date[0]) if log.date else file.written,
            alone=tools.count(log.reading.benchmark) == 1,
        )


def _rounded(at: float) -> float:
    """Return a time rounded to 1 us, as dates are written."""
    return round(at * 1e6) / 1e6


def _shown(path: Path) -> str:
    return printable(str(path))
