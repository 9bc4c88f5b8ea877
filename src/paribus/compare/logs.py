"""Logs of tools that ran elsewhere: found, recognised by what they say, and read.

Nothing in a log is executed. A file that cannot be read costs only itself: it is named, with the
reason, and the rest goes on.
"""

from __future__ import annotations

import gc
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from io import FileIO
from itertools import chain, takewhile
from multiprocessing import get_context
from pathlib import Path

from paribus.benchmarks import nvidia_topo
from paribus.benchmarks._tool import FAILED, HEAD, line_at, plain
from paribus.compare.recognise import readings, tools
from paribus.errors import ParseError, UserError
from paribus.model import Reading
from paribus.study.plan import read_plan
from paribus.units import count

MOST_BYTES = 256 << 20
"""A longer file is no log of these tools, and is not read."""

MOST_WORKERS = 8
SHARE = 8 << 20
"""Bytes that are worth a process: some hundred thousand lines, half a second of reading."""

BEFORE = (
    *FAILED,
    "This test requires ",
    "Unrecognized argument",
    "Unable to find the Infiniband/RoCE device",
    "are you sure there is a netserver listening",
    "iperf3: error - ",
    ">>> Need at least ",
    "cannot open file hpccinf.txt",
)
"""What launchers say of a launch that failed, and tools before they say their name."""

FAILED_LAUNCH = "is of a launch that failed:"

_PACKED = (
    (b"\x1f\x8b", "is compressed: unpack it first (gunzip)"),
    (b"\x28\xb5\x2f\xfd", "is compressed: unpack it first (unzstd)"),
    (b"\xfd7zXZ", "is compressed: unpack it first (unxz)"),
    (b"BZh", "is compressed: unpack it first (bunzip2)"),
    (b"PK\x03\x04", "is an archive: unpack it first (unzip)"),
    (b"\xff\xfe", "is not UTF-8 but UTF-16"),
    (b"\xfe\xff", "is not UTF-8 but UTF-16"),
)


@dataclass(frozen=True, slots=True)
class Log:
    """One output that was read: whose it is, and what it says.

    `name` is the file's path below its arm's folder, with #2 for the second output in one file;
    `at` is when the file was written or, if `dated`, when the log itself says that it was measured
    (seconds since the epoch). `alone` is False for one of several outputs of a tool in one file.
    `written` is when the file was, and `zoned` whether the date's time zone is known.
    """

    arm: str
    name: str
    path: Path
    at: float
    dated: bool
    alone: bool
    reading: Reading
    written: float = 0.0
    zoned: bool = False


_File = tuple[str, str, str, float, int]
"""Arm, name, path, when it was written, and bytes."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a part of one, that was not read, and why; `tool` if one was recognised in it.

    `name` is that of a Log.
    """

    arm: str
    name: str
    why: str
    tool: str = ""

    @property
    def lost(self) -> bool:
        """Return whether a launch failed before its tool said which it is."""
        return self.why.startswith(FAILED_LAUNCH)


def are_logs(paths: Sequence[Path]) -> bool:
    """Return whether `paths` are to be read as logs, rather than as tables of numbers."""
    return any(path.is_dir() or (path.is_file() and _is_log(path)) for path in paths)


def arms_of(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return what the arms are called: what tells their paths apart.

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
            mend="give the folder of another arm beside it",
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
                number = name.partition("-")[0]
                if not name.endswith(".out") or number not in of_study:
                    continue
                arm = f"{whole}/{of_study[number]}"
            before = seen.setdefault((status.st_dev, status.st_ino), file)
            if before is not file:
                unread.append(Unread(arm, name, f"is the same file as {_shown(Path(before))}"))
                continue
            files.append((arm, name, file, status.st_mtime, status.st_size))
    for found, refused in _each(files):
        logs += found
        unread += refused
    order = {arm: at for at, arm in enumerate(arms)}
    logs.sort(key=lambda log: order[log.arm])
    return tuple(arms), logs, unread


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts log2 before log10, and for which run01 is run1."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(p[:18]), "") if i % 2 else (-1, p) for i, p in enumerate(parts))


def _arms_of_study(path: Path) -> tuple[list[str], Mapping[str, str]]:
    """Return the arms of a study, and that of each launch by its number, as its logs name it.

    The warm-up is not among them. Nothing where `path` is no directory of a study, nor its logs.
    """
    directory = next((p for p in (path, path.parent) if (p / "plan.json").is_file()), None)
    if directory is None or (directory is not path and path.name != "logs"):
        return [], {}
    plan = read_plan(directory)
    named = [re.match("[0-9]+", p.name) for p in (directory / "logs").glob("*.out")]
    most = max((int(number[0][:9]) for number in named if number), default=0)
    launches = chain.from_iterable(plan.blocks())
    counted = takewhile(lambda launch: launch.number <= most, launches)
    session = plan.session > 0
    return [arm.name for arm in plan.study.arms], {
        f"{launch.number:04d}": launch.arm
        for launch in counted
        if launch.block and (launch.place or not session)
    }


# --- files -----------------------------------------------------------------------------------


def _files(
    arm: str, path: Path, others: set[str], unread: list[Unread]
) -> Iterator[tuple[str, str, os.stat_result]]:
    """Yield name, path and status of the regular files of an arm, log2 before log10.

    Says why others are passed over; hidden ones without a word.
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
            unread.append(Unread(arm, name, f"cannot be read: {error.strerror}"))
            continue
        if not stat.S_ISREG(status.st_mode):
            unread.append(Unread(arm, name, "is no file but a pipe or a device"))
        else:
            yield name, file, status


def _walk(
    arm: str, base: Path, others: set[str], unread: list[Unread]
) -> Iterator[tuple[str, str]]:
    """Yield name and path of everything below a folder but folders and what is another arm's."""

    def failed(error: OSError) -> None:
        name = os.path.relpath(error.filename, top)
        unread.append(Unread(arm, name, f"cannot be read: {error.strerror}"))

    top = os.path.abspath(base)  # noqa: PTH100 - as in arms_of
    for folder, folders, names in os.walk(top, onerror=failed):
        inside = f"{folder[len(top) + 1 :]}/" if folder != top else ""
        for name in folders:
            if (Path(folder) / name).is_symlink():
                unread.append(Unread(arm, inside + name, "is a link to a folder"))
        folders[:] = [n for n in folders if n[0] != "." and f"{folder}/{n}" not in others]
        for name in names:
            if name[0] != "." and f"{folder}/{name}" not in others:
                yield inside + name, f"{folder}/{name}"


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(tools(plain(file.read(HEAD).decode(errors="replace"))))
    except OSError:
        return False


def _each(files: Sequence[_File]) -> Iterator[tuple[list[Log], list[Unread]]]:
    """Yield what each file holds, in their order: read on several cores where they are many."""
    workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS, sum(f[-1] for f in files) // SHARE)
    done = 0
    if workers > 1:
        try:
            # Forked where no thread can hold a lock: to import the readers again takes longer.
            alone = len([*Path("/proc/self/task").iterdir()]) == 1
            way = "fork" if alone else "spawn"
            with ProcessPoolExecutor(workers, get_context(way), gc.disable) as pool:
                for read in pool.map(_read, files, chunksize=1 + len(files) // (32 * workers)):
                    yield read
                    done += 1
        except (BrokenProcessPool, OSError):
            pass  # no room for more processes: the rest is read here
    yield from map(_read, files[done:])


def _read(one: _File) -> tuple[list[Log], list[Unread]]:
    """Return what one file holds, of each tool that it is recognised to be of."""
    arm, name, file, written, size = one
    try:
        text, likely, why = _text(file, size)
    except OSError as error:
        text, likely, why = "", [], f"cannot be read: {error.strerror}"
    if why:
        return [], [Unread(arm, name, why)]
    found, problems = readings(text, likely)
    of = [reading.benchmark for _, reading in found]
    logs = []
    for part, reading in found:
        at = reading.facts.get("log.started", written)
        dated = "log.started" in reading.facts
        alone = of.count(reading.benchmark) == 1
        called = f"{name}#{part}" if part else name
        zoned = bool(reading.facts.get("log.zoned"))
        logs.append(Log(arm, called, Path(file), at, dated, alone, reading, written, zoned))
    return logs, [Unread(arm, name, why, tool) for tool, why in problems]


def _text(file: str, size: int) -> tuple[str, list[str], str]:
    """Return the text of a file and the tools it may be of, or why it is not read.

    Of what is no log only the beginning is looked at.
    """
    if size > MOST_BYTES:
        return "", [], f"is larger than {MOST_BYTES >> 20} MiB"
    if not size:
        return "", [], "is empty"
    with FileIO(file) as opened:
        raw = opened.read(HEAD)
        for magic, why in _PACKED:
            if raw.startswith(magic):
                return "", [], why
        if b"\0" in raw:
            return "", [], "is binary"
        text = plain(raw.decode(errors="replace"))
        likely = tools(text)
        if not likely:
            return "", [], _no_tool(text)
        if size > len(raw):
            text = plain((raw + opened.readall()).decode(errors="replace"))
    return text, likely, ""


def _no_tool(text: str) -> str:
    """Return why a text is of no tool: a launch may have failed before its tool said its name."""
    if nvidia_topo.recognise(text):
        return _wiring(text)
    found = [at for mark in BEFORE if (at := text.find(mark)) >= 0]
    if not found:
        return "is no output of a tool that is known here"
    return f"{FAILED_LAUNCH} {line_at(text, min(found)).strip()[:160]!r}"


def _wiring(text: str) -> str:
    """Return how many pairs of GPUs and adapters each kind of link joins."""
    try:
        facts = nvidia_topo.read(text)
    except ParseError as error:
        return f"is a damaged output of nvidia-smi topo -m: {error.cause}"
    links = Counter(str(v) for k, v in facts.items() if k != "gpu.topology.gpus")
    told = ", ".join(f"{n} {link}" for link, n in sorted(links.items())) or "no pair"
    gpus = count(int(facts["gpu.topology.gpus"]), "GPU")
    return f"is no benchmark but the wiring of {gpus} (nvidia-smi topo -m; pairs by link: {told})"


def _shown(path: Path) -> str:
    text = str(path)
    return text if text.isprintable() else repr(text)
