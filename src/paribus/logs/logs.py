"""Logs of tools that ran elsewhere: found in files and folders, and whose they are.

A file that cannot be read costs only itself: it is named, with the
reason, and the rest goes on.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, takewhile
from pathlib import Path

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

_File = tuple[str, str, str, float, int]
"""Arm, name, path, when it was written, and bytes."""


def are_logs(paths: Sequence[Path]) -> bool:
    """Return whether `paths` are to be read as logs, rather than as tables of numbers."""
    return any(is_directory(path) or is_log(path) for path in paths)


def arms_of(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return what the arms are called: what distinguishes their paths.

    Raises UserError when two paths are one.

    >>> arms_of([Path("logs/host/osu.log"), Path("logs/bridged/osu.log")])
    ('host', 'bridged')
    """
    parts = [Path(os.path.abspath(path)).parts for path in paths]  # noqa: PTH100 - links keep their names
    twice = [path for path, part in zip(paths, parts, strict=True) if parts.count(part) > 1]
    if twice:
        raise UserError(
            "is given twice",
            place=_shown(twice[0]),
            fix="give the folder of another arm beside it",
        )
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
    """Return the arms, the logs below `paths` (one for each arm), and what could not be read.

    A path that lies below another belongs to its own arm only. Raises UserError for a path that
    does not exist.
    """
    if missing := [path for path in paths if not exists(path)]:
        raise UserError("does not exist", place=_shown(missing[0]), fix="check the spelling")
    arms: dict[str, None] = {}
    unread: list[Unread] = []
    logs: list[Log] = []
    files: list[_File] = []
    seen: dict[tuple[int, int], str] = {}
    others = {os.path.abspath(path) for path in paths}  # noqa: PTH100 - as in arms_of
    for whole, path in zip(arms_of(paths), paths, strict=True):
        inside, of_study = _arms_of_study(path)
        arms |= dict.fromkeys([f"{whole}/{arm}" for arm in inside] or [whole])
        for name, file, status in _files(whole, path, others, unread):
            arm = whole
            if inside:
                if name not in of_study or not name.endswith(".out"):
                    continue
                arm = f"{whole}/{of_study[name]}"
            before = seen.setdefault((status.st_dev, status.st_ino), file)
            if before is not file:
                same = _shown(Path(before))
                unread.append(Unread(Unreadable.SAME_FILE, same, arm=arm, name=name))
                continue
            files.append((arm, name, file, status.st_mtime, status.st_size))
    held = read_files([(path, size) for _, _, path, _, size in files])
    for (arm, name, file, written, _), one in zip(files, held, strict=True):
        logs += _logs(arm, name, file, written, one.found)
        unread += [replace(why, arm=arm, name=name, path=file) for why in one.problems]
    if len(files) == 1:
        arms, logs, unread = _as_arms(arms, logs, unread)
    order = {arm: at for at, arm in enumerate(arms)}
    logs.sort(key=lambda log: order[log.arm])
    return tuple(arms), logs, unread


def _as_arms(
    arms: dict[str, None], logs: list[Log], unread: list[Unread]
) -> tuple[dict[str, None], list[Log], list[Unread]]:
    """Return the arms that one file holds, and what it holds of each: those of some harnesses.

    Everything as it is where it holds one arm only.
    """
    within = [one.within for one in logs] + [one.within for one in unread]
    inside = dict.fromkeys(within)
    if len(inside) < 2 or not all(inside):
        return arms, logs, unread
    key = harnesses()[logs[0].reading.benchmark].arms if logs else ""

    def less(parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
        return {name: value for name, value in parameters.items() if name != key}

    for at, log in enumerate(logs):
        reading = replace(log.reading, parameters=less(log.reading.parameters))
        logs[at] = replace(log, arm=log.within, reading=reading)
    return inside, logs, [replace(one, arm=one.within, of=less(one.of)) for one in unread]


def _arms_of_study(path: Path) -> tuple[list[str], Mapping[str, str]]:
    """Return the arms of a study, and that of each launch by the name of its log.

    The warm-up is not among them, nor an attempt after which the launch was made again. Nothing
    where `path` is no directory of a study, nor its logs.
    """
    directory = next((p for p in (path, path.parent) if (p / "plan.json").is_file()), None)
    if directory is None or (directory is not path and path.name != "logs"):
        return [], {}
    frozen = read_plan(directory)
    found = sorted(((directory / "logs").glob("*.out")), key=lambda one: natural(one.name))
    named = [re.match("([0-9]+)(?:-[0-9]+)?-?(.*)", one.name) for one in found]
    last = {f"{int(one[1][:9]):04d}": one for one in named if one}
    logs = {number: one[2] for number, one in last.items()}
    # The warm-up may have led to another order than the frozen one: the names of the logs show.
    led_to = frozen.design.after(frozen, math.inf)
    followed = [_counted(one, logs) for one in (frozen, led_to)]
    arms = max(
        followed, key=lambda of: sum(logs.get(n, "").startswith(arm) for n, arm in of.items())
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
    """Yield name, path and status of the regular files of an arm, log2 before log10.

    Says why others are skipped, but for hidden ones.
    """
    if path.is_dir():
        base = path / "logs" if (path / "plan.json").is_file() else path
        found = sorted(_walk(arm, base, others, unread), key=lambda one: natural(one[0]))
    else:
        found = [(path.name, str(path))]
    for name, file in found:
        try:
            status = os.stat(file)  # noqa: PTH116 - of thousands, each is no Path before it is read
        except OSError as error:
            why = error.strerror or ""
            unread.append(Unread(Unreadable.CANNOT_BE_READ, why, arm=arm, name=name))
            continue
        if not stat.S_ISREG(status.st_mode):
            unread.append(Unread(Unreadable.NO_FILE, arm=arm, name=name))
        elif file != str(path) and _is_source(Path(name)):
            unread.append(Unread(Unreadable.NO_LOG, arm=arm, name=name))
        else:
            yield name, file, status


def _is_source(name: Path) -> bool:
    return name.suffix[1:].lower() in _SOURCES or name.stem.lower() in _DOCUMENTS


def _walk(
    arm: str, base: Path, others: set[str], unread: list[Unread]
) -> Iterator[tuple[str, str]]:
    """Yield name and path of everything below a folder but folders and what is another arm's."""

    def failed(error: OSError) -> None:
        name = os.path.relpath(error.filename, top)
        why = error.strerror or ""
        unread.append(Unread(Unreadable.CANNOT_BE_READ, why, arm=arm, name=name))

    top = os.path.abspath(base)  # noqa: PTH100 - as in arms_of
    for folder, folders, names in os.walk(top, onerror=failed):
        inside = f"{folder[len(top) + 1 :]}/" if folder != top else ""
        for name in folders:
            if (Path(folder) / name).is_symlink():
                why = Unreadable.LINK_TO_FOLDER
                unread.append(Unread(why, arm=arm, name=inside + name))
        folders[:] = [n for n in folders if n[0] != "." and f"{folder}/{n}" not in others]
        for name in names:
            if name[0] != "." and f"{folder}/{name}" not in others:
                yield inside + name, f"{folder}/{name}"


def _logs(arm: str, name: str, path: str, written: float, found: Sequence[Log]) -> Iterator[Log]:
    """Yield the logs that a file holds, as those of an arm."""
    of = [one.reading.benchmark for one in found]
    for one in found:
        yield replace(
            one,
            arm=arm,
            name=f"{name}#{one.part}" if one.part else name,
            path=path,
            written=written,
            at=one.date[0] if one.date else written,
            alone=of.count(one.reading.benchmark) == 1,
        )


def _shown(path: Path) -> str:
    return printable(str(path))
